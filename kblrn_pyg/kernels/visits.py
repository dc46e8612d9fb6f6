"""Compares queries with their own candidates, and computes the gradients.

Every query has different candidates, so the rows of the embedding table are needed
in random order, which causes cache misses. This module visits the candidates entity
by entity instead and compares one row of the table with all queries that sampled it.
Only the queries of one batch are then accessed at random, and they fit into the
cache of a core.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Visits(NamedTuple):
    r"""The queries that sampled each entity.

    Args:
        ptr: Where the visits of each entity begin.
        place: The visits, as positions in the flat array of candidates.
        num_candidates: The number of candidates of a query.
    """

    ptr: np.ndarray
    place: np.ndarray
    num_candidates: int


@njit(cache=True, nogil=True)
def sort_visits(candidates, num_entities):
    """Sorts the positions of all candidates by entity."""
    num_queries, num_candidates = candidates.shape
    ptr = np.zeros(num_entities + 1, np.int64)
    for q in range(num_queries):
        for j in range(num_candidates):
            ptr[candidates[q, j] + 1] += 1
    for entity in range(num_entities):
        ptr[entity + 1] += ptr[entity]
    free = ptr[:-1].copy()
    place = np.empty(num_queries * num_candidates, np.int64)
    for q in range(num_queries):
        for j in range(num_candidates):
            entity = candidates[q, j]
            place[free[entity]] = q * num_candidates + j
            free[entity] += 1
    return Visits(ptr, place, num_candidates)


@njit(cache=True, nogil=True, fastmath=True)
def _dot(a, b):
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _distance(a, b):
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += abs(a[k] - b[k])
    return total


@njit(cache=True, nogil=True)
def score_visits(entities, visits, query, table, by_distance, score):
    """Compares entities, given by their bounds, with the queries that drew them.

    They are compared by their dot product, or by their negative distance in the L1
    norm.
    """
    begin, end = entities
    for entity in range(begin, end):
        row = table[entity]
        for i in range(visits.ptr[entity], visits.ptr[entity + 1]):
            place = visits.place[i]
            of_query = query[place // visits.num_candidates]
            if by_distance:
                score[place] = -_distance(of_query, row)
            else:
                score[place] = _dot(of_query, row)


@njit(cache=True, nogil=True, fastmath=True)
def add_visit_gradients(
    entities, visits, query, table, by_distance, score_grad, query_grad, table_grad
):
    """Adds the gradients of what :meth:`score_visits` compares.

    The code avoids views of rows, because their reference counting would take as
    long as the sums.
    """
    size = query.shape[1]
    one, huge = query.dtype.type(1), query.dtype.type(1e30)
    begin, end = entities
    for entity in range(begin, end):
        for i in range(visits.ptr[entity], visits.ptr[entity + 1]):
            place = visits.place[i]
            q, g = place // visits.num_candidates, score_grad[place]
            if by_distance:
                for k in range(size):
                    # The sign of the difference, twice as fast as comparing.
                    apart = (query[q, k] - table[entity, k]) * huge
                    towards = g * min(max(apart, -one), one)
                    query_grad[q, k] -= towards
                    table_grad[entity, k] += towards
            else:
                for k in range(size):
                    query_grad[q, k] += g * table[entity, k]
                for k in range(size):
                    table_grad[entity, k] += g * query[q, k]
