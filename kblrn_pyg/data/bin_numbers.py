"""Numbers as facts: a transform that adds bins as entities."""

import copy

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.transforms import BaseTransform

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.intervals import Intervals, nested_intervals
from kblrn_pyg.settings import check_bins


class BinNumbers(BaseTransform):
    r"""Adds bins of numbers to a knowledge base as entities, and facts that link
    entities to the bins of their numbers, for models that only use facts, such as
    embeddings.

    The known values of an attribute are split at quantiles into two bins, four
    bins, and so on, see :meth:`quantile_intervals`. A relation named after the
    attribute, :obj:`"birth_year in"`, leads from an entity to its bin of every
    size, such as :obj:`"1900 ≤ birth_year < 1950"`. Entities without a number have
    no such fact. All splits of a data set have the same numbers, and so get the
    same bins. The queries of a validation or test set stay the same, while those of
    a training set include the new facts. Node types that :meth:`unify_types` kept
    are dropped.

    Args:
        num_bins (int, optional): The maximum number of bins of an attribute, a power
            of two. (default: :obj:`16`)

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> data = Families(transform=BinNumbers(num_bins=2))[0]
        >>> data["entity"].name[-2:]
        ['population < 13,500', 'population ≥ 13,500']
    """

    def __init__(self, num_bins: int = 16) -> None:
        check_bins("num_bins", num_bins)
        self.num_bins = num_bins

    def forward(self, data: HeteroData) -> HeteroData:
        data = copy.copy(data)
        for edge_type in data.edge_types:
            if edge_type[1] in {_relation(name) for name in data.attribute_names}:
                raise DataError(f"there is a relation {edge_type[1]!r} already")
        is_training = all(
            torch.equal(data[one].edge_index, data[one].edge_label_index)
            for one in data.edge_types
        )
        bins = nested_intervals(data, self.num_bins)
        first = data["entity"].num_nodes
        ptr, holder = bins.holders(data["entity"].x.detach().double().numpy())
        _add_entities(data, [name for a in _used(bins) for name in _names(bins, a)])
        for a in _used(bins):
            rows = range(int(bins.ptr[a]), int(bins.ptr[a + 1]))
            begin = len(bins.attributes) + rows.start
            own = slice(ptr[begin], ptr[begin + len(rows)])
            size = np.diff(ptr[begin : begin + len(rows) + 1])
            bin_of = np.repeat(first + np.array(rows), size)
            edges = torch.from_numpy(np.stack([holder[own], bin_of]))
            store = data["entity", _relation(bins.attributes[a]), "entity"]
            store.edge_index = edges
            store.edge_label_index = edges if is_training else edges[:, :0]
        return data

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}(num_bins={self.num_bins})"


def _relation(attribute: str) -> str:
    return f"{attribute} in"


def _used(bins: Intervals) -> list[int]:
    """Returns the attributes that have bins."""
    return np.flatnonzero(np.diff(bins.ptr)).tolist()


def _names(bins: Intervals, attribute: int) -> list[str]:
    number = int(bins.ptr[attribute + 1] - bins.ptr[attribute])
    name = bins.attributes[attribute]
    return [name.join(bins.around(attribute, i)) for i in range(number)]


def _add_entities(data: HeteroData, names: list[str]) -> None:
    """Adds entities without numbers."""
    entity = data["entity"]
    for key in ("name", "identifier"):
        if key not in entity:
            continue
        if taken := set(names) & set(entity[key]):
            raise DataError(f"there is an entity {min(taken)!r} already")
        entity[key] = [*entity[key], *names]
    unknown: Tensor = entity.x.new_full((len(names), entity.x.size(1)), torch.nan)
    entity.x = torch.cat([entity.x.detach(), unknown])
    entity.num_nodes = entity.num_nodes + len(names)
    if "type" in entity:
        del entity["type"]
    for key in ("type_names", "typed_relations"):
        if key in data:
            del data[key]
