"""The probabilities that the page shows, computed from scores."""

import numpy as np
import torch
from numpy.typing import NDArray

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.predict.answers import judged

CALIBRATED = "that the triple is true, calibrated"
SOFTMAX = "share of the softmax over all entities, not calibrated"


def measure_of(model: KBLRN, asks_all: bool) -> str:
    r"""Describes the bars of the page.

    Args:
        model (KBLRN): The model.
        asks_all (bool): Whether all experts are used; a calibration applies to
            their sum only.
    """
    return CALIBRATED if asks_all and model.calibration is not None else SOFTMAX


def shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Returns the softmax probability of each entity.

    Args:
        scores (numpy.ndarray): The score of each entity.
    """
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def calibrated(
    model: KBLRN, queries: Queries, answers: NDArray[np.int64], asks_all: bool
) -> list[float] | list[None]:
    r"""Returns the probability that triples are true, if the model is calibrated.

    Args:
        model (KBLRN): The model.
        queries (Queries): One query.
        answers (numpy.ndarray): Some answers to it.
        asks_all (bool): See :meth:`measure_of`.
    """
    if model.calibration is None or not asks_all:
        return [None] * len(answers)
    entity, rel_type = (
        column.expand(len(answers)) for column in (queries.entity, queries.rel_type)
    )
    repeated = Queries(entity, rel_type, queries.side)
    with torch.no_grad():
        _, found = judged(model, repeated, torch.from_numpy(answers))
    assert found is not None
    return found
