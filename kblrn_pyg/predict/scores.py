"""The scores and probabilities of all answers to queries."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation import score_rows
from kblrn_pyg.nn import KBLRN

Ids = NDArray[np.int64]
Scores = NDArray[np.floating]

# How many scores are held at once, in a handful of copies.
_SCORES = 1 << 22


def check_k(k: int) -> None:
    """Refuses a number of predictions that is not positive."""
    if k < 1:
        raise ValueError(f"'k' must be positive (got {k})")


def score_queries(
    model: KBLRN, queries: Queries
) -> Iterator[tuple[Queries, Scores, Scores]]:
    r"""Scores all entities as answers to queries, some of these at a time.

    Args:
        model (KBLRN): The model, in evaluation mode.
        queries (Queries): The queries.

    Returns:
        Some queries, their scores and their probabilities, both
        :obj:`[num_queries, num_nodes]`.
    """
    names = list(model.vocabulary.relations.identifiers)
    size = max(1, _SCORES // model.num_nodes)
    for begin in range(0, len(queries), size):
        part = queries[begin : begin + size]
        scores = score_rows(model, part, names)
        probability = torch.from_numpy(scores).softmax(dim=1)
        # One infinite score makes its whole row NaN.
        if probability[:, 0].isnan().any():
            raise ValueError("the scores of the model must be finite (got inf)")
        yield part, scores, probability.numpy()


def largest(values: Scores, k: int) -> Ids:
    r"""Returns the places of the largest values, those of ties in their order.

    Args:
        values (numpy.ndarray): The values.
        k (int): How many.

    Example:
        >>> largest(np.array([1.0, 3.0, 2.0, 3.0, 2.0]), 3).tolist()
        [1, 3, 2]
    """
    places = np.arange(len(values))
    if k < len(values):
        places = np.flatnonzero(values >= np.partition(values, -k)[-k])
    order = np.argsort(-values[places], kind="stable")
    return places[order[:k]]
