"""Walks that are kept: what the rules of a query reach, found once for all epochs."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.walking import NO_LIMIT, first_steps, reach

# A stamp that no serial number reaches: an entity that nobody asks about.
UNASKED = np.iinfo(np.int64).max


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
    """Writes the entities of a run that are asked about to ``out``.

    Returns their number. ``out`` must have room for one more.
    """
    count = 0
    for i in range(walks.ptr[run], walks.ptr[run + 1]):
        entity = walks.reached[i]
        out[count] = entity
        count += stamp[entity] != UNASKED
    return count


@njit(cache=True, nogil=True)
def count_walks(paths, source, rel, limit, scratch):
    """Counts the runs of each query, and the entities in them.

    The latter is -1 for a query that reaches more than ``limit`` entities, or one
    of whose rules would take more steps than that to walk.
    """
    adjacency, bodies = paths
    clock, stamp, out = scratch
    num_runs = np.zeros(len(source), np.int32)
    num_reached = np.zeros(len(source), np.int32)
    for q in range(len(source)):
        for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
            group = first_steps(adjacency, bodies, rule, source[q])
            if group < 0:
                continue
            clock[0] += 1
            count = reach(paths, rule, source[q], group, clock[0], limit, stamp, out)
            num_runs[q] += count > 0
            num_reached[q] += count
            if count < 0 or num_reached[q] > limit:
                num_reached[q] = -1
                break
    return num_runs, num_reached


@njit(cache=True, nogil=True)
def write_walks(paths, source, rel, run, begin, walks, scratch):
    """Writes the walks of queries to arrays that have just the room for them.

    ``run`` and ``begin`` are where the runs and the entities of each query begin.
    """
    adjacency, bodies = paths
    clock, stamp, out = scratch
    for q in range(len(source)):
        i, k = run[q], begin[q]
        for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
            group = first_steps(adjacency, bodies, rule, source[q])
            if group < 0:
                continue
            clock[0] += 1
            count = reach(paths, rule, source[q], group, clock[0], NO_LIMIT, stamp, out)
            if count > 0:
                walks.reached[k : k + count] = out[:count]
                k += count
                walks.rule[i], walks.ptr[i + 1] = rule, k
                i += 1
