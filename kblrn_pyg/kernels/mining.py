"""Counting, for one head relation, the facts for which each body holds.

Only the pairs of the head relation are considered: for each of them, the neighbours
of its two ends are intersected. The work is that of a product of adjacency matrices
*masked* by the head relation.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import Adjacency, find_group


class Facts(NamedTuple):
    r"""The facts of one relation, ordered by their busier end.

    A pivot's neighbours are marked once for all facts that share it, so the
    busier end of a fact is its pivot.

    Args:
        relation: The relation.
        pivot: The busier end of each fact.
        other: The other end.
        pivot_is_tail: Whether the pivot is the tail.
    """

    relation: int
    pivot: np.ndarray
    other: np.ndarray
    pivot_is_tail: np.ndarray


class Scratch(NamedTuple):
    r"""Working memory of one thread, which is passed to successive calls.

    Args:
        mark: For each entity, its pair group at the present pivot, plus one.
        clock: The serial number last used; every call takes new ones, so that
            nothing has to be cleared between calls.
        stamp: For each body, the serial number of the fact last counted.
        counted: For each body, the facts counted.
        touched: The bodies counted for the present relation.
    """

    mark: np.ndarray
    clock: np.ndarray
    stamp: np.ndarray
    counted: np.ndarray
    touched: np.ndarray


class Choices(NamedTuple):
    r"""The semantics of rules, as kernels need them.

    Args:
        equal_ends: Whether head and tail may be one entity.
        equal_middle: Whether the middle may be the head or the tail.
        head_in_body: Whether the head's relation may occur in the body.
    """

    equal_ends: bool
    equal_middle: bool
    head_in_body: bool


def new_scratch(num_entities: int, num_bodies: int) -> Scratch:
    """Returns working memory for tables of at most ``num_bodies`` bodies."""
    return Scratch(
        np.zeros(num_entities, np.int64),
        np.zeros(1, np.int64),
        np.zeros(num_bodies, np.int64),
        np.empty(num_bodies, np.int32),
        np.empty(num_bodies, np.int32),
    )


def order_facts(relation: int, everything: Adjacency, adjacency: Adjacency) -> Facts:
    """Orders the facts of a relation by their pivots; see :class:`Facts`."""
    head, tail = everything.steps(2 * relation)
    ptr = adjacency.pair_ptr
    is_tail = ptr[tail + 1] - ptr[tail] >= ptr[head + 1] - ptr[head]
    pivot, other = np.where(is_tail, tail, head), np.where(is_tail, head, tail)
    # Both ends and the choice of the pivot in one number, which sorts fast.
    keys = (pivot * adjacency.num_entities + other) * 2 + is_tail
    keys.sort()
    pivot, other = np.divmod(keys >> 1, adjacency.num_entities)
    return Facts(relation, pivot, other, keys & 1 == 1)


@njit(cache=True, nogil=True)
def path_supports(facts, adjacency, codes, choices, least, scratch):
    """Counts the support of the two-hop bodies of a relation.

    ``codes`` are the least first code to count, the one behind the last, and the
    number of all codes: a table of all bodies may be too large to fill at once.

    Returns the keys ``(first - first_code) * num_codes + second`` of the bodies
    with a support of at least ``least``, and their supports.
    """
    first_code, last_code, num_codes = codes
    mark, clock, stamp, count, touched = scratch
    pair_ptr, neighbour = adjacency.pair_ptr, adjacency.pair_neighbour
    pair_start, pair_code = adjacency.pair_start, adjacency.pair_code
    relation, num_facts = facts.relation, len(facts.pivot)
    started, num_touched = clock[0], 0
    clock[0] += num_facts
    current = -1
    for i in range(num_facts):
        p, o = facts.pivot[i], facts.other[i]
        if p == o and not choices.equal_ends:
            continue
        if p != current:
            _unmark(mark, current, pair_ptr, neighbour)
            for group in range(pair_ptr[p], pair_ptr[p + 1]):
                mark[neighbour[group]] = group + 1
            current = p
        serial = started + 1 + i
        for near in range(pair_ptr[o], pair_ptr[o + 1]):
            x = neighbour[near]
            far = mark[x] - 1
            if far < 0 or (not choices.equal_middle and (x == p or x == o)):
                continue
            if facts.pivot_is_tail[i]:
                from_head, from_tail = near, far
            else:
                from_head, from_tail = far, near
            for j in range(pair_start[from_head], pair_start[from_head + 1]):
                first = pair_code[j]
                if first < first_code or first >= last_code:
                    continue
                if first >> 1 == relation and not choices.head_in_body:
                    continue
                row = (first - first_code) * num_codes
                for k in range(pair_start[from_tail], pair_start[from_tail + 1]):
                    second = pair_code[k] ^ 1  # walked towards the tail
                    if second >> 1 == relation and not choices.head_in_body:
                        continue
                    key = row + second
                    if stamp[key] == serial:
                        continue
                    if stamp[key] <= started:
                        count[key] = 0
                        touched[num_touched] = key
                        num_touched += 1
                    stamp[key] = serial
                    count[key] += 1
    _unmark(mark, current, pair_ptr, neighbour)
    return _at_least(touched[:num_touched], count, least)


@njit(cache=True, nogil=True)
def _unmark(mark, pivot, pair_ptr, neighbour):
    if pivot >= 0:
        for group in range(pair_ptr[pivot], pair_ptr[pivot + 1]):
            mark[neighbour[group]] = 0


@njit(cache=True, nogil=True)
def direct_supports(facts, adjacency, codes, choices, least, scratch):
    """Counts the support of the parallel bodies of a relation.

    A body of two equal codes stands for the one-hop body of that code. Arguments
    and results are as in :meth:`path_supports`.
    """
    first_code, last_code, num_codes = codes
    _, clock, stamp, count, touched = scratch
    pair_start, pair_code = adjacency.pair_start, adjacency.pair_code
    own = 2 * facts.relation
    started, num_touched = clock[0], 0
    clock[0] += 1
    for i in range(len(facts.pivot)):
        p, o = facts.pivot[i], facts.other[i]
        if p == o and not choices.equal_ends:
            continue
        h, t = (o, p) if facts.pivot_is_tail[i] else (p, o)
        group = find_group(adjacency.pair_ptr, adjacency.pair_neighbour, h, t)
        if group < 0:
            continue
        for j in range(pair_start[group], pair_start[group + 1]):
            first = pair_code[j]
            if first < first_code or first >= last_code:
                continue
            if first == own or (first == own + 1 and not choices.head_in_body):
                continue
            for k in range(j, pair_start[group + 1]):
                second = pair_code[k]
                if second == own or (second == own + 1 and not choices.head_in_body):
                    continue
                key = (first - first_code) * num_codes + second
                if stamp[key] <= started:
                    count[key] = 0
                    touched[num_touched] = key
                    num_touched += 1
                    stamp[key] = started + 1
                count[key] += 1
    return _at_least(touched[:num_touched], count, least)


@njit(cache=True, nogil=True)
def _at_least(touched, count, least):
    keys = touched[count[touched] >= least].astype(np.int64)
    return keys, count[keys].astype(np.int64)
