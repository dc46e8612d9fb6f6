"""The facts of a knowledge base as sorted neighbour lists."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Adjacency(NamedTuple):
    r"""All steps of a knowledge base, in two orders.

    Steps from :obj:`u` over code :obj:`c` are a *code group* of :obj:`u`; those
    from :obj:`u` to :obj:`v` over any code are a *pair group*.

    Args:
        code_ptr: Where the code groups of each entity begin.
        group_code: The code of each code group.
        group_start: Where the neighbours of each code group begin.
        neighbour: The neighbours, sorted within a code group.
        by_code_ptr: Where the code groups of each code begin.
        by_code_group: The code groups, ordered by code, then entity.
        by_code_entity: The entity of each of them.
        pair_ptr: Where the pair groups of each entity begin.
        pair_neighbour: The neighbour of each pair group, sorted by entity.
        pair_start: Where the codes of each pair group begin.
        pair_code: The codes, sorted within a pair group.
    """

    code_ptr: np.ndarray
    group_code: np.ndarray
    group_start: np.ndarray
    neighbour: np.ndarray
    by_code_ptr: np.ndarray
    by_code_group: np.ndarray
    by_code_entity: np.ndarray
    pair_ptr: np.ndarray
    pair_neighbour: np.ndarray
    pair_start: np.ndarray
    pair_code: np.ndarray


def build_adjacency(
    head: np.ndarray,
    rel: np.ndarray,
    tail: np.ndarray,
    num_entities: int,
    num_relations: int,
    self_loops: bool = True,
) -> Adjacency:
    r"""Sorts the facts of a knowledge base; repeated ones count once.

    Args:
        head (numpy.ndarray): The head of each fact.
        rel (numpy.ndarray): The relation of each fact.
        tail (numpy.ndarray): The tail of each fact.
        num_entities (int): The number of entities.
        num_relations (int): The number of relations.
        self_loops (bool, optional): Whether facts from an entity to itself
            stay. (default: :obj:`True`)
    """
    if not self_loops:
        keep = head != tail
        head, rel, tail = head[keep], rel[keep], tail[keep]
    return Adjacency(*_build(head, rel, tail, num_entities, 2 * num_relations))


@njit(cache=True, nogil=True)
def _build(head, rel, tail, num_entities, num_codes):
    """One pass scatters the steps to their sources, which are then sorted alone.

    That keeps the sorting inside the cache, however large the graph is.
    """
    begin = np.zeros(num_entities + 1, np.int64)
    for i in range(len(head)):
        begin[head[i] + 1] += 1
        begin[tail[i] + 1] += 1
    for u in range(num_entities):
        begin[u + 1] += begin[u]
    free = begin[:-1].copy()
    keys = np.empty(2 * len(head), np.int64)
    for i in range(len(head)):
        h, t, code = head[i], tail[i], 2 * rel[i]
        keys[free[h]] = code * num_entities + t
        free[h] += 1
        keys[free[t]] = (code + 1) * num_entities + h
        free[t] += 1
    end = _sort_distinct(begin, keys)
    code_ptr, group_code, group_start, neighbour = _group(
        begin, end, keys, num_entities
    )
    by_code = _groups_by_code(code_ptr, group_code, num_codes)
    _swap_parts(begin, end, keys, num_entities, num_codes)
    pairs = _group(begin, end, keys, num_codes)
    return code_ptr, group_code, group_start, neighbour, *by_code, *pairs


@njit(cache=True, nogil=True)
def _sort_distinct(begin, keys):
    """Sorts the keys of each entity, drops repeated ones, and returns the ends."""
    end = np.empty(len(begin) - 1, np.int64)
    for u in range(len(end)):
        part = keys[begin[u] : begin[u + 1]]
        part.sort()
        count = 0
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                part[count] = part[i]  # never ahead of i
                count += 1
        end[u] = begin[u] + count
    return end


@njit(cache=True, nogil=True)
def _swap_parts(begin, end, keys, base, new_base):
    """Turns keys ``major * base + minor`` into ``minor * new_base + major``."""
    for u in range(len(end)):
        part = keys[begin[u] : end[u]]
        for i in range(len(part)):
            major = part[i] // base
            part[i] = (part[i] - major * base) * new_base + major
        part.sort()


@njit(cache=True, nogil=True)
def _group(begin, end, keys, base):
    """Two-level offsets of the sorted keys ``major * base + minor`` of entities."""
    num_entities = len(end)
    ptr = np.zeros(num_entities + 1, np.int64)
    num_rows = 0
    for u in range(num_entities):
        last = -1
        groups = 0
        for i in range(begin[u], end[u]):
            major = keys[i] // base
            if major != last:
                groups += 1
                last = major
        ptr[u + 1] = ptr[u] + groups
        num_rows += end[u] - begin[u]
    major_of_group = np.empty(ptr[num_entities], np.int64)
    start = np.empty(ptr[num_entities] + 1, np.int64)
    minor = np.empty(num_rows, np.int64)
    row = 0
    for u in range(num_entities):
        last = -1
        group = ptr[u] - 1
        for i in range(begin[u], end[u]):
            major = keys[i] // base
            if major != last:
                group += 1
                major_of_group[group] = major
                start[group] = row
                last = major
            minor[row] = keys[i] - major * base
            row += 1
    start[ptr[num_entities]] = num_rows
    return ptr, major_of_group, start, minor


@njit(cache=True, nogil=True)
def _groups_by_code(code_ptr, group_code, num_codes):
    ptr = np.zeros(num_codes + 1, np.int64)
    for code in group_code:
        ptr[code + 1] += 1
    for code in range(num_codes):
        ptr[code + 1] += ptr[code]
    free = ptr[:-1].copy()
    by_code = np.empty(len(group_code), np.int64)
    entity = np.empty(len(group_code), np.int64)
    for u in range(len(code_ptr) - 1):
        for group in range(code_ptr[u], code_ptr[u + 1]):
            place = free[group_code[group]]
            by_code[place], entity[place] = group, u
            free[group_code[group]] += 1
    return ptr, by_code, entity


@njit(cache=True, nogil=True)
def facts_of(by_code_ptr, by_code_group, by_code_entity, group_start, neighbour, code):
    """Returns the two ends of all steps over a code, ordered by source."""
    begin, end = by_code_ptr[code], by_code_ptr[code + 1]
    size = 0
    for i in range(begin, end):
        group = by_code_group[i]
        size += group_start[group + 1] - group_start[group]
    source = np.empty(size, np.int64)
    target = np.empty(size, np.int64)
    k = 0
    for i in range(begin, end):
        group = by_code_group[i]
        for j in range(group_start[group], group_start[group + 1]):
            source[k], target[k] = by_code_entity[i], neighbour[j]
            k += 1
    return source, target


@njit(cache=True, nogil=True)
def find_group(ptr, keys, entity, key):
    """Returns the group of an entity that has a key, or -1."""
    low, high = ptr[entity], ptr[entity + 1]
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < ptr[entity + 1] and keys[low] == key:
        return low
    return -1
