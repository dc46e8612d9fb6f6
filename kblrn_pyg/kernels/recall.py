"""Cached walks: what the rules of a query reach, computed once for all epochs."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels import walking
from kblrn_pyg.kernels.walking import NO_LIMIT, first_steps, reach

# A stamp that no serial number reaches: an entity that nobody asks about.
UNASKED = np.iinfo(np.int64).max


class Walks(NamedTuple):
    r"""What the rules of some queries reach.

    A walk consists of all entities that one body reaches from one entity, if any. A
    run is a rule of a query, and the walk of its body, which it shares with other
    rules.

    Args:
        run_ptr: Where the runs of each query begin.
        rule: The rule of each run.
        walk: The walk of each run.
        ptr: Where the entities of each walk begin.
        reached: The entities.
    """

    run_ptr: np.ndarray
    rule: np.ndarray
    walk: np.ndarray
    ptr: np.ndarray
    reached: np.ndarray


class Scratch(NamedTuple):
    r"""The working memory of one thread; nothing in it has to be cleared between calls.

    Args:
        walking: That of walks.
        walked: When each body was walked last, by the clock of walks.
        found: The number of entities that it reached, or the number of its walk.
        counted: When what it reached was counted last.
    """

    walking: walking.Scratch
    walked: np.ndarray
    found: np.ndarray
    counted: np.ndarray


def new_scratch(num_entities: int, num_bodies: int) -> Scratch:
    r"""Creates the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
        num_bodies (int): The number of different bodies.
    """
    return Scratch(
        walking.new_scratch(num_entities), *np.zeros((3, num_bodies), np.int64)
    )


@njit(cache=True, nogil=True)
def recall_asked(walks, walk, stamp, out):
    """Writes those entities of a walk that queries ask about to ``out``.

    Returns their number. ``out`` must have room for one more.
    """
    count = 0
    for i in range(walks.ptr[walk], walks.ptr[walk + 1]):
        entity = walks.reached[i]
        out[count] = entity
        count += stamp[entity] != UNASKED
    return count


@njit(cache=True, nogil=True)
def count_walks(paths, body, source, rel, limit, counts, scratch):
    """Counts the runs of each query, and the entities in them.

    Queries with the same source must stand together; ``body`` numbers the bodies
    of the rules. The second row of ``counts`` is -1 for a query that reaches more
    than ``limit`` entities, or one of whose rules would take more steps than that
    to walk. The other two are the walks that none of the queries before has, and
    the entities in them.
    """
    ptr = paths.bodies.ptr
    since = 0
    for q in range(len(source)):
        since = _begin(source, q, since, scratch)
        num_runs, num_reached, num_walks, num_new = 0, 0, 0, 0
        for rule in range(ptr[rel[q]], ptr[rel[q] + 1]):
            if scratch.walked[body[rule]] < since:
                count = _walk(paths, rule, body[rule], source[q], limit, scratch)
                scratch.found[body[rule]] = count
            count = scratch.found[body[rule]]
            num_runs += count > 0
            num_reached += count
            if count < 0 or num_reached > limit:
                num_reached = -1
                break
        end = ptr[rel[q] + 1] if num_reached >= 0 else ptr[rel[q]]
        for rule in range(ptr[rel[q]], end):
            count = scratch.found[body[rule]]
            if count > 0 and scratch.counted[body[rule]] < since:
                scratch.counted[body[rule]] = since
                num_walks += 1
                num_new += count
        counts[0, q], counts[1, q] = num_runs, num_reached
        counts[2, q], counts[3, q] = num_walks, num_new


@njit(cache=True, nogil=True)
def write_walks(paths, body, source, rel, places, walks, scratch):
    """Writes the walks of queries to arrays of exactly the required size.

    ``places`` contains where the runs, the new walks and their entities begin, for
    each query.
    """
    ptr, out = paths.bodies.ptr, scratch.walking.out
    num_rules = len(body) // 2  # those of the second side follow those of the first
    run, walk, begin = places
    since = 0
    for q in range(len(source)):
        since = _begin(source, q, since, scratch)
        i, w, k = run[q], walk[q], begin[q]
        for rule in range(ptr[rel[q]], ptr[rel[q] + 1]):
            if scratch.walked[body[rule]] < since:
                count = _walk(paths, rule, body[rule], source[q], NO_LIMIT, scratch)
                scratch.found[body[rule]] = -1
                if count > 0:
                    walks.reached[k : k + count] = out[:count]
                    k += count
                    walks.ptr[w + 1] = k
                    scratch.found[body[rule]] = w
                    w += 1
            if scratch.found[body[rule]] >= 0:
                walks.rule[i] = rule % num_rules
                walks.walk[i] = scratch.found[body[rule]]
                i += 1


@njit(cache=True, nogil=True)
def _begin(source, q, since, scratch):
    """Returns when the queries of a source began, by the clock of walks."""
    if q > 0 and source[q] == source[q - 1]:
        return since
    scratch.walking.clock[0] += 1
    return scratch.walking.clock[0]


@njit(cache=True, nogil=True)
def _walk(paths, rule, body, source, limit, scratch):
    """Walks a body, and notes when."""
    clock, stamp, out = scratch.walking
    clock[0] += 1
    scratch.walked[body] = clock[0]
    group = first_steps(paths.adjacency, paths.bodies, rule, source)
    if group < 0:
        return 0
    return reach(paths, rule, source, group, clock[0], limit, stamp, out)
