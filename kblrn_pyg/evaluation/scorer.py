"""What evaluation needs of a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.data.same import how_different


class Scorer(Protocol):
    r"""What evaluation needs of a model: scores of all tails and of all heads.

    On a CPU several threads ask for scores at once.
    """

    training: bool

    @property
    def num_nodes(self) -> int:
        """The number of entities."""

    @property
    def num_relations(self) -> int:
        """The number of relations."""

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        """Scores every entity as the tail of each query, ``[B, num_nodes]``."""

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Scores every entity as the head of each query, ``[B, num_nodes]``."""

    def parameters(self) -> Iterator[Any]:
        """The parameters, whose device is that of the queries."""

    def train(self, mode: bool = True) -> Any:
        """Switches training mode on or off."""


@contextmanager
def evaluating(model: Scorer) -> Iterator[None]:
    r"""Switches off training mode and gradients for a while.

    Args:
        model (KBLRN): The model.
    """
    was_training = model.training
    model.train(False)
    try:
        # Not inference mode: what a model keeps from here must stay usable in
        # training.
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def device_of(model: Scorer) -> torch.device:
    """Returns where the parameters of a model are."""
    parameter = next(iter(model.parameters()), None)
    return torch.device("cpu") if parameter is None else parameter.device


def kb_for(model: Scorer, data: HeteroData | Data, name: str = "data") -> HeteroData:
    r"""Brings data into the form that a model knows it by.

    Data over other entities or relations than those of the model is refused.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): See :meth:`~kblrn_pyg.data.as_kb`.
        name (str, optional): What errors call the data.
    """
    kb = as_kb(data, model.num_relations)
    sizes = (kb["entity"].num_nodes, len(kb.edge_types))
    if (model.num_nodes, model.num_relations) != sizes:
        raise ValueError(
            f"'model' must be over the entities and relations of '{name}', {sizes} "
            f"(got {(model.num_nodes, model.num_relations)})"
        )
    learned_from = getattr(model, "kb", None)
    found = None if learned_from is None else how_different(learned_from, kb)
    if found is not None:
        raise ValueError(
            f"'{name}' must have the entities and relations of 'model' in the same "
            f"order (got {found})"
        )
    return kb
