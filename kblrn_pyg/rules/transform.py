"""Mining as a step of a PyG pipeline."""

from typing import Any

from torch_geometric.data import HeteroData
from torch_geometric.transforms import BaseTransform

from kblrn_pyg.rules.mine import mine_rules


class MineRules(BaseTransform):
    r"""Mines the rules of a knowledge base and keeps them as :obj:`data.rules`,
    from where :meth:`RuleSet.of_data` takes them. As a :obj:`pre_transform`, it
    runs once and its result is saved with the data set.

    Args:
        **kwargs (optional): The arguments of :meth:`mine_rules`.

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> from kblrn_pyg.rules import RuleSet
        >>> data = Families(pre_transform=MineRules(max_hops=1))[0]
        >>> RuleSet.of_data(data).max_hops
        1
    """

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    def forward(self, data: HeteroData) -> HeteroData:
        data.rules = mine_rules(data, **self.kwargs).to_dict()
        return data

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.kwargs.items())
        return f"{self.__class__.__name__}({arguments})"
