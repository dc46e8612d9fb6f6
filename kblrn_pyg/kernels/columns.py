"""Paths that end at selected entities only, shared by all queries of a batch."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import find_group, seek
from kblrn_pyg.kernels.walking import first_steps


class Arrivals(NamedTuple):
    r"""The last steps of paths to the entities of columns.

    Args:
        entity: The entity of each column.
        code_ptr: Where the groups of each code begin.
        group_entity: The entity that the steps of each group leave, sorted within
            a code.
        group_start: Where the columns of each group begin.
        column: The columns where they arrive, sorted within a group.
    """

    entity: np.ndarray
    code_ptr: np.ndarray
    group_entity: np.ndarray
    group_start: np.ndarray
    column: np.ndarray


class Hits(NamedTuple):
    r"""The columns that the rules of queries reach.

    A run is all columns that one rule of some equal queries reaches, if there are
    any.

    Args:
        first: The first query of each run.
        last: The end of the queries of each run.
        rule: The rule of each run.
        ptr: Where the columns of each run begin.
        column: The columns.
    """

    first: np.ndarray
    last: np.ndarray
    rule: np.ndarray
    ptr: np.ndarray
    column: np.ndarray


def arrivals_at(adjacency, bodies, entity: np.ndarray) -> Arrivals:
    r"""Finds the last steps of bodies to some entities.

    Args:
        adjacency (Adjacency): The facts that bodies may use.
        bodies (Bodies): The bodies.
        entity (numpy.ndarray): The entities, without duplicates.
    """
    num_entities = adjacency.num_entities
    is_last = np.zeros(adjacency.num_codes, np.bool_)
    is_single = (bodies.second < 0) | bodies.parallel
    is_last[bodies.first[is_single]] = True
    is_last[bodies.second[bodies.second >= 0]] = True
    key, column = _last_steps(adjacency, entity, is_last)
    order = np.argsort(key, kind="stable")
    key, column = key[order], column[order]
    is_first = np.ones(len(key), np.bool_)
    is_first[1:] = key[1:] != key[:-1]
    start = np.append(np.flatnonzero(is_first), len(key))
    key = key[is_first]
    codes = np.arange(adjacency.num_codes + 1)
    code_ptr = np.searchsorted(key, codes * num_entities)
    return Arrivals(entity, code_ptr, key % max(num_entities, 1), start, column)


@njit(cache=True, nogil=True)
def _last_steps(adjacency, entity, is_last):
    """Returns ``code * num_entities + source`` of each step, and where it arrives."""
    num_entities = len(adjacency.pair_ptr) - 1
    size = 0
    for u in entity:
        begin, end = adjacency.pair_ptr[u], adjacency.pair_ptr[u + 1]
        size += adjacency.pair_start[end] - adjacency.pair_start[begin]
    key, column = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for j in range(len(entity)):
        u = entity[j]
        for pair in range(adjacency.pair_ptr[u], adjacency.pair_ptr[u + 1]):
            source = adjacency.pair_neighbour[pair]
            for i in range(adjacency.pair_start[pair], adjacency.pair_start[pair + 1]):
                code = adjacency.pair_code[i] ^ 1  # walked the other way
                if is_last[code]:
                    key[count], column[count] = code * num_entities + source, j
                    count += 1
    return key[:count], column[:count]


@njit(cache=True, nogil=True)
def add_to_columns(paths, arrivals, entity, rel, row, weight, scores):
    """Adds the weight of every body that holds to the scores of its columns.

    ``row`` is the row of scores of each query; equal queries should be adjacent.
    The kernel iterates over the middles of a path that the query leads to, or over
    those that lead to a column, whichever are fewer. Returns the :class:`Hits`.
    """
    bodies = paths.bodies
    stamp = np.full(len(arrivals.entity), -1)
    out = np.empty(len(arrivals.entity), np.int64)
    runs, ptr = np.empty((64, 3), np.int64), np.zeros(65, np.int64)
    columns = np.empty(1024, np.int64)
    num_runs, size, serial, q = 0, 0, 0, 0
    while q < len(entity):
        last = q + 1
        while last < len(entity) and entity[last] == entity[q] and rel[last] == rel[q]:
            last += 1
        for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
            count = reach_columns(paths, arrivals, rule, entity[q], serial, stamp, out)
            serial += 1
            if count == 0:
                continue
            if size + count > len(columns):
                columns = _longer(columns, size, count)
            if num_runs == len(runs):
                runs = _longer(runs, num_runs, 1)
                ptr = _longer(ptr, num_runs + 1, num_runs)
            for i in range(q, last):
                for k in range(count):
                    scores[row[i], out[k]] += weight[rule]
            columns[size : size + count] = out[:count]
            size += count
            runs[num_runs, 0], runs[num_runs, 1], runs[num_runs, 2] = q, last, rule
            ptr[num_runs + 1] = size
            num_runs += 1
        q = last
    first, behind, rule = runs[:num_runs].T
    return Hits(first, behind, rule, ptr[: num_runs + 1], columns[:size])


@njit(cache=True, nogil=True)
def column_gradients(hits, row, grad):
    """Returns the gradient that each run gives the weight of its rule."""
    total = np.zeros(len(hits.rule))
    for run in range(len(total)):
        for i in range(hits.first[run], hits.last[run]):
            of_query = grad[row[i]]
            for k in range(hits.ptr[run], hits.ptr[run + 1]):
                total[run] += of_query[hits.column[k]]
    return total


@njit(cache=True, nogil=True)
def reach_columns(paths, arrivals, rule, source, serial, stamp, out):
    """Writes the distinct columns that a body reaches, and returns their number."""
    adjacency, bodies = paths
    first, second = bodies.first[rule], bodies.second[rule]
    if second < 0:
        return _arrive(arrivals, first, source, bodies.choices, out)
    if bodies.parallel[rule]:
        count = _arrive(arrivals, first, source, bodies.choices, out)
        return _also(arrivals, second, source, out, count)
    i, end = arrivals.code_ptr[second], arrivals.code_ptr[second + 1]
    if i == end:
        return 0
    group = first_steps(adjacency, bodies, rule, source)
    if group < 0:
        return 0
    j, last = adjacency.group_start[group], adjacency.group_start[group + 1]
    count = 0
    while True:
        # Both lists of middles are sorted: leap to where they may meet.
        i = seek(arrivals.group_entity, i, end, adjacency.neighbour[j])
        if i == end:
            break
        x = arrivals.group_entity[i]
        j = seek(adjacency.neighbour, j, last, x)
        if j == last:
            break
        if adjacency.neighbour[j] != x:
            continue
        if x != source or bodies.choices.equal_middle:
            count = _leave(
                arrivals, i, source, bodies.choices, serial, stamp, out, count
            )
        i += 1
        j += 1
        if i == end or j == last:
            break
    return count


@njit(cache=True, nogil=True)
def _leave(arrivals, group, source, choices, serial, stamp, out, count):
    """Goes on from a middle to the columns behind it."""
    x = arrivals.group_entity[group]
    for k in range(arrivals.group_start[group], arrivals.group_start[group + 1]):
        column = arrivals.column[k]
        target = arrivals.entity[column]
        if stamp[column] == serial:
            continue
        if target == source and not choices.equal_ends:
            continue
        if target == x and not choices.equal_middle:
            continue
        stamp[column] = serial
        out[count] = column
        count += 1
    return count


@njit(cache=True, nogil=True)
def _arrive(arrivals, code, source, choices, out):
    """Writes the columns that one step leads to."""
    group = find_group(arrivals.code_ptr, arrivals.group_entity, code, source)
    if group < 0:
        return 0
    count = 0
    for k in range(arrivals.group_start[group], arrivals.group_start[group + 1]):
        column = arrivals.column[k]
        if arrivals.entity[column] != source or choices.equal_ends:
            out[count] = column
            count += 1
    return count


@njit(cache=True, nogil=True)
def _also(arrivals, code, source, out, count):
    """Keeps the columns that another step leads to, too."""
    group = find_group(arrivals.code_ptr, arrivals.group_entity, code, source)
    if group < 0:
        return 0
    i, end = arrivals.group_start[group], arrivals.group_start[group + 1]
    kept = 0
    for k in range(count):
        i = seek(arrivals.column, i, end, out[k])
        if i == end:
            break
        if arrivals.column[i] == out[k]:
            out[kept] = out[k]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def _longer(array, size, more):
    longer = np.empty((2 * (size + more), *array.shape[1:]), array.dtype)
    longer[:size] = array[:size]
    return longer
