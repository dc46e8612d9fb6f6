"""The interface of models for evaluation, and the scores that they return."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.validate import how_different


class ScoringModel(Protocol):
    r"""The interface of models for evaluation: the scores of all tails and all
    heads.

    On a CPU, several threads request scores at once. If the model has a context
    manager :obj:`encoded()`, it is entered before they start.
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
def evaluating(model: ScoringModel) -> Iterator[None]:
    r"""Switches training mode and gradients off, and encodes the model once.

    Args:
        model (KBLRN): The model.
    """
    was_training = model.training
    model.train(False)
    try:
        # Not inference mode: what a model keeps from here must stay usable in
        # training.
        with torch.no_grad(), getattr(model, "encoded", nullcontext)():
            yield
    finally:
        model.train(was_training)


def device_of(model: ScoringModel) -> torch.device:
    """Returns the device of the parameters of a model."""
    parameter = next(iter(model.parameters()), None)
    return torch.device("cpu") if parameter is None else parameter.device


def kb_for(
    model: ScoringModel, data: HeteroData | Data, name: str = "data"
) -> HeteroData:
    r"""Converts data to the form that a model uses.

    Data over other entities or relations than those of the model is refused.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): See :meth:`~kblrn_pyg.data.as_kb`.
        name (str, optional): The name in error messages.
            (default: :obj:`"data"`)
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


def listed(splits: Iterable[HeteroData | Data], name: str) -> list[HeteroData | Data]:
    r"""Returns splits as a list, and refuses a single one.

    Args:
        splits (iterable): The splits.
        name (str): The name in error messages.
    """
    if isinstance(splits, HeteroData | Data):
        raise ValueError(f"'{name}' must be a list of them (got one)")
    return list(splits)


def score_rows(
    model: ScoringModel, queries: Queries, relations: list[str]
) -> np.ndarray:
    r"""Does the same as :meth:`score_on_device`, and moves the scores to the CPU.

    Args:
        model (KBLRN): The model, in evaluation mode; see :meth:`evaluating`.
        queries (Queries): The queries.
        relations (list): The names of all relations, for errors.
    """
    scores = score_on_device(model, queries, relations)
    return np.ascontiguousarray(scores.cpu().numpy())


def score_on_device(
    model: ScoringModel, queries: Queries, relations: list[str]
) -> Tensor:
    r"""Scores all entities as answers to queries, all at once.

    Args:
        model (KBLRN): The model, in evaluation mode; see :meth:`evaluating`.
        queries (Queries): The queries.
        relations (list): The names of all relations, for errors.

    Returns:
        A row for each query, in single or double precision and without NaN; if
        entities are split among processes, those of this process.
    """
    asked = queries.to(device_of(model))
    if getattr(model, "shard", None) is not None:
        whole: Any = model
        scores = whole.score_all(asked, whole.own_entities())
    elif queries.side == "head":
        scores = model.score_heads(asked.rel_type, asked.entity)
    else:
        scores = model.score_tails(asked.entity, asked.rel_type)
    return checked_scores(model, queries, relations, scores)


def checked_scores(
    model: ScoringModel, queries: Queries, relations: list[str], scores: Any
) -> Tensor:
    r"""Refuses scores that cannot be ranked; see :meth:`score_on_device`.

    Args:
        model (KBLRN): The model.
        queries (Queries): The queries.
        relations (list): The names of all relations, for errors.
        scores (torch.Tensor): A row of scores for each query.
    """
    shard = getattr(model, "shard", None)
    shape = [len(queries), model.num_nodes if shard is None else shard.size]
    if not isinstance(scores, Tensor) or list(scores.size()) != shape:
        found = list(scores.size()) if isinstance(scores, Tensor) else type(scores)
        raise ValueError(
            f"the scores of the model must have the shape {shape} (got {found})"
        )
    if scores.is_complex() or scores.layout != torch.strided:
        raise ValueError(
            "the scores of the model must be real numbers in a dense tensor (got "
            f"{scores.dtype}, {scores.layout})"
        )
    # The maximum of a row is NaN if any score is, and takes no memory to find.
    is_nan = scores.amax(dim=1).isnan()
    if is_nan.any():
        query = queries.text(int(is_nan.nonzero()[0]), relations)
        raise ValueError(f"the scores of the model must be numbers (got NaN: {query})")
    if scores.dtype not in (torch.float32, torch.float64):
        scores = scores.float()
    return scores.detach()
