"""Walks that are kept: what the rules of a query reach, found once for all epochs."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Walks(NamedTuple):
    r"""What the rules of some queries reach.

    A run is all that one rule reaches from the entity of one query, if anything.

    Args:
        run_ptr: Where the runs of each query begin.
        rule: The rule of each run.
        ptr: Where the entities of each run begin.
        reached: The entities.
    """

    run_ptr: np.ndarray
    rule: np.ndarray
    ptr: np.ndarray
    reached: np.ndarray


@njit(cache=True, nogil=True)
def recall_asked(walks, run, stamp, out):
    """Writes the entities of a run whose stamp is negative to ``out``.

    Returns their number. ``out`` must have room for one more.
    """
    count = 0
    for i in range(walks.ptr[run], walks.ptr[run + 1]):
        entity = walks.reached[i]
        out[count] = entity
        count += stamp[entity] < 0
    return count
