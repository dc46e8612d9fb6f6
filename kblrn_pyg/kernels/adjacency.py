"""The facts of a knowledge base as sorted neighbour lists."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Adjacency(NamedTuple):
    r"""All steps of a knowledge base, in two orders.

    Steps over code :obj:`c` from :obj:`u` are a *code group* of :obj:`c`; those
    from :obj:`u` to :obj:`v` over any code are a *pair group*. Code groups of
    one code are adjacent in memory, so that walking a rule stays within the cache.

    Args:
        code_ptr: Where the code groups of each code begin.
        group_entity: The entity of each code group, sorted within a code.
        group_start: Where the neighbours of each code group begin.
        neighbour: The neighbours, sorted within a code group.
        pair_ptr: Where the pair groups of each entity begin.
        pair_neighbour: The neighbour of each pair group, sorted by entity.
        pair_start: Where the codes of each pair group begin.
        pair_code: The codes, sorted within a pair group.
    """

    code_ptr: np.ndarray
    group_entity: np.ndarray
    group_start: np.ndarray
    neighbour: np.ndarray
    pair_ptr: np.ndarray
    pair_neighbour: np.ndarray
    pair_start: np.ndarray
    pair_code: np.ndarray

    @property
    def num_entities(self) -> int:
        """The number of entities."""
        return len(self.pair_ptr) - 1

    @property
    def num_codes(self) -> int:
        """The number of codes."""
        return len(self.code_ptr) - 1

    def steps(self, code: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the two ends of all steps over a code, ordered by source."""
        begin, end = self.code_ptr[code], self.code_ptr[code + 1]
        start = self.group_start[begin : end + 1]
        source = np.repeat(self.group_entity[begin:end], np.diff(start))
        return source, self.neighbour[start[0] : start[-1]]


def build_adjacency(
    head: np.ndarray,
    rel: np.ndarray,
    tail: np.ndarray,
    num_entities: int,
    num_relations: int,
    self_loops: bool = True,
) -> Adjacency:
    """Sorts the facts of a knowledge base; repeated ones count once.

    Without ``self_loops``, facts from an entity to itself are left out.
    """
    if not self_loops:
        keep = head != tail
        head, rel, tail = head[keep], rel[keep], tail[keep]
    return Adjacency(*_build(head, rel, tail, num_entities, 2 * num_relations))


@njit(cache=True, nogil=True)
def _build(head, rel, tail, num_entities, num_codes):
    """Scatters the steps to their sources in one pass, then sorts each source.

    That keeps sorting inside the cache, however large the graph is.
    """
    begin = np.zeros(num_entities + 1, np.int64)
    for i in range(len(head)):
        begin[head[i] + 1] += 1
        begin[tail[i] + 1] += 1
    begin = np.cumsum(begin)
    free = begin[:-1].copy()
    keys = np.empty(2 * len(head), np.int64)
    for i in range(len(head)):
        h, t, code = head[i], tail[i], 2 * rel[i]
        keys[free[h]] = code * num_entities + t
        free[h] += 1
        keys[free[t]] = (code + 1) * num_entities + h
        free[t] += 1
    end = _sort_distinct(begin, keys)
    groups = _group(begin, end, keys, num_entities)
    _swap_parts(begin, end, keys, num_entities, num_codes)
    return *_sort_by_code(*groups, num_codes), *_group(begin, end, keys, num_codes)


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
    for u in range(num_entities):
        last = -1
        for i in range(begin[u], end[u]):
            major = keys[i] // base
            ptr[u + 1] += major != last
            last = major
    ptr = np.cumsum(ptr)
    major_of_group = np.empty(ptr[num_entities], np.int64)
    start = np.empty(ptr[num_entities] + 1, np.int64)
    minor = np.empty(np.sum(end - begin[:-1]), np.int64)
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
    start[ptr[num_entities]] = row
    return ptr, major_of_group, start, minor


@njit(cache=True, nogil=True)
def _sort_by_code(ptr, code, start, neighbour, num_codes):
    """Moves the groups of entities so that those of one code are adjacent."""
    code_ptr = np.zeros(num_codes + 1, np.int64)
    row_ptr = np.zeros(num_codes + 1, np.int64)
    for group in range(len(code)):
        code_ptr[code[group] + 1] += 1
        row_ptr[code[group] + 1] += start[group + 1] - start[group]
    code_ptr, row = np.cumsum(code_ptr), np.cumsum(row_ptr)
    free = code_ptr.copy()
    entity, begin = np.empty_like(code), np.empty_like(start)
    moved = np.empty_like(neighbour)
    for u in range(len(ptr) - 1):
        for group in range(ptr[u], ptr[u + 1]):
            c = code[group]
            entity[free[c]], begin[free[c]] = u, row[c]
            free[c] += 1
            for i in range(start[group], start[group + 1]):
                moved[row[c]] = neighbour[i]
                row[c] += 1
    begin[len(code)] = len(neighbour)
    return code_ptr, entity, begin, moved


@njit(cache=True, nogil=True)
def find_group(ptr, keys, owner, key):
    """Returns the group of a code, or of an entity, that has a key, or -1."""
    low, high = ptr[owner], ptr[owner + 1]
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    if low < ptr[owner + 1] and keys[low] == key:
        return low
    return -1


@njit(cache=True, nogil=True)
def seek(values, begin, end, least):
    """Returns the first position of a value not below ``least``, by growing
    strides."""
    stride, high = 1, begin
    while high < end and values[high] < least:
        begin = high + 1
        high += stride
        stride *= 2
    return first_not_below(values, begin, min(high, end), least)


@njit(cache=True, nogil=True)
def first_not_below(values, low, high, least):
    """Returns the first position of a value that is not below another one."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
