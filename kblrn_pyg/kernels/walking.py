"""Which entities a body reaches from an entity, and which bodies hold for a pair."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import find_group
from kblrn_pyg.kernels.mining import Choices

# The number of steps along a list that take as long as finding a group.
_LOOK_UP_COST = 8


class Bodies(NamedTuple):
    r"""The bodies of all rules, walked from one end.

    Args:
        ptr: Where the rules of each relation begin.
        first: The first code of each body.
        second: The second code, -1 for one-hop bodies.
        parallel: Whether both codes lead from one end to the other.
        choices: What counts as a body that holds.
    """

    ptr: np.ndarray
    first: np.ndarray
    second: np.ndarray
    parallel: np.ndarray
    choices: Choices


@njit(cache=True, nogil=True)
def first_steps(adjacency, bodies, rule, source):
    """Returns the code group of the first steps of a body, -1 if it has none.

    Most bodies have none. Asking here, before ``reach`` is called with all its
    arguments, halves the time of a walk.
    """
    code = bodies.first[rule]
    return find_group(adjacency.code_ptr, adjacency.group_entity, code, source)


@njit(cache=True, nogil=True)
def reach(adjacency, bodies, rule, source, group, serial, stamp, out):
    """Writes the distinct entities that the body of a rule reaches to ``out``.

    ``group`` is that of its first steps. ``stamp`` has an entry for each entity;
    those whose stamp is ``serial`` or more are left out. Returns their number.
    """
    second, choices = bodies.second[rule], bodies.choices
    neighbour, start = adjacency.neighbour, adjacency.group_start
    if second < 0:
        count = 0
        for i in range(start[group], start[group + 1]):
            target = neighbour[i]
            if stamp[target] >= serial:
                continue
            if target != source or choices.equal_ends:
                out[count] = target
                count += 1
        return count
    if bodies.parallel[rule]:
        other = find_group(adjacency.code_ptr, adjacency.group_entity, second, source)
        return reach_parallel(
            adjacency, group, other, source, choices, serial, stamp, out
        )
    count = 0
    # Many middles: follow them through the sorted list of all entities that can
    # go on. Few middles: look each one up.
    onward, end = adjacency.code_ptr[second], adjacency.code_ptr[second + 1]
    follow = end - onward <= _LOOK_UP_COST * (start[group + 1] - start[group])
    for i in range(start[group], start[group + 1]):
        x = neighbour[i]
        if follow:
            while onward < end and adjacency.group_entity[onward] < x:
                onward += 1
            if onward == end:
                break
            if adjacency.group_entity[onward] != x:
                continue
        else:
            onward = find_group(adjacency.code_ptr, adjacency.group_entity, second, x)
            if onward < 0:
                continue
        if x == source and not choices.equal_middle:
            continue
        for j in range(start[onward], start[onward + 1]):
            target = neighbour[j]
            if stamp[target] >= serial:
                continue
            if target == source and not choices.equal_ends:
                continue
            if target == x and not choices.equal_middle:
                continue
            stamp[target] = serial
            out[count] = target
            count += 1
    return count


@njit(cache=True, nogil=True)
def reach_parallel(adjacency, group, other, source, choices, serial, stamp, out):
    """Does what :meth:`reach` does for two groups of steps to the same entities."""
    neighbour, start = adjacency.neighbour, adjacency.group_start
    if other < 0:
        return 0
    count = 0
    i, j = start[group], start[other]
    while i < start[group + 1] and j < start[other + 1]:
        target = neighbour[i]
        if target < neighbour[j]:
            i += 1
        elif target > neighbour[j]:
            j += 1
        else:
            i += 1
            j += 1
            if stamp[target] >= serial:
                continue
            if target != source or choices.equal_ends:
                out[count] = target
                count += 1
    return count


@njit(cache=True, nogil=True)
def walk_queries(adjacency, bodies, choices, source, rel, stamp, out):
    """Finds the (candidate, rule) pairs of each query, rule by rule.

    ``stamp`` must be -1 everywhere, and ``out`` must have room for all entities.
    Returns where the pairs of each query begin, the candidates and the rules.
    """
    ptr = np.zeros(len(source) + 1, np.int64)
    candidate = rule_id = np.empty(0, np.int64)
    serial = 0
    for is_counted in (False, True):
        if is_counted:
            ptr = np.cumsum(ptr)
            candidate, rule_id = (
                np.empty(ptr[-1], np.int64),
                np.empty(ptr[-1], np.int64),
            )
        for q in range(len(source)):
            k = ptr[q]
            for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
                group = first_steps(adjacency, bodies, rule, source[q])
                if group < 0:
                    continue
                serial += 1
                to = candidate[k:] if is_counted else out
                count = reach(
                    adjacency,
                    bodies,
                    rule,
                    source[q],
                    group,
                    serial,
                    stamp,
                    to,
                )
                if is_counted:
                    rule_id[k : k + count] = rule
                    k += count
                else:
                    ptr[q + 1] += count
    return ptr, candidate, rule_id


@njit(cache=True, nogil=True)
def _is_step(adjacency, source, code, target, own):
    """Tells whether there is a step other than the own fact, walked either way."""
    group = find_group(adjacency.code_ptr, adjacency.group_entity, code, source)
    if group < 0:
        return False
    if find_group(adjacency.group_start, adjacency.neighbour, group, target) < 0:
        return False
    return not _is_own(source, code, target, own)


@njit(cache=True, nogil=True)
def _is_own(source, code, target, own):
    head, rel, tail = own
    if code >> 1 != rel:
        return False
    if code & 1:
        return source == tail and target == head
    return source == head and target == tail


@njit(cache=True, nogil=True)
def middles(adjacency, bodies, choices, rule, head, tail, own, out):
    """Writes the middles of a two-hop body, no more than ``out`` has room for.

    ``own`` is a fact that does not count; relation -1 means none.
    """
    first, second = bodies.first[rule], bodies.second[rule]
    group = find_group(adjacency.code_ptr, adjacency.group_entity, first, head)
    back = find_group(adjacency.code_ptr, adjacency.group_entity, second ^ 1, tail)
    if group < 0 or back < 0:
        return 0
    neighbour, start = adjacency.neighbour, adjacency.group_start
    count = 0
    i, j = start[group], start[back]
    while i < start[group + 1] and j < start[back + 1] and count < len(out):
        x = neighbour[i]
        if x < neighbour[j]:
            i += 1
            continue
        if x > neighbour[j]:
            j += 1
            continue
        i += 1
        j += 1
        if (x == head or x == tail) and not choices.equal_middle:
            continue
        if _is_own(head, first, x, own) or _is_own(x, second, tail, own):
            continue
        out[count] = x
        count += 1
    return count


@njit(cache=True, nogil=True)
def holds(adjacency, bodies, choices, rule, head, tail, own, out):
    """Tells whether a body holds for a pair without the own fact.

    ``out`` is working memory with room for one entity.
    """
    if head == tail and not choices.equal_ends:
        return False
    first, second = bodies.first[rule], bodies.second[rule]
    if second >= 0 and not bodies.parallel[rule]:
        return middles(adjacency, bodies, choices, rule, head, tail, own, out) > 0
    if not _is_step(adjacency, head, first, tail, own):
        return False
    return second < 0 or _is_step(adjacency, head, second, tail, own)


@njit(cache=True, nogil=True)
def pair_rules(adjacency, bodies, choices, facts, leave_own, only_own):
    """Finds the rules that hold for each fact.

    If ``leave_own``, a fact does not count for itself. If ``only_own``, the rules
    are those that hold by the fact itself alone. Returns where the rules of each
    fact begin, and the rules.
    """
    heads, relations, tails = facts
    ptr = np.zeros(len(heads) + 1, np.int64)
    found = []
    out = np.empty(1, np.int64)
    for i in range(len(heads)):
        h, r, t = own = heads[i], relations[i], tails[i]
        left_out = own if leave_own else (h, -1, t)
        for rule in range(bodies.ptr[r], bodies.ptr[r + 1]):
            first, second = bodies.first[rule], bodies.second[rule]
            if only_own and first >> 1 != r and second >> 1 != r:
                continue
            if not holds(adjacency, bodies, choices, rule, h, t, left_out, out):
                continue
            if only_own and holds(adjacency, bodies, choices, rule, h, t, own, out):
                continue
            found.append(rule)
        ptr[i + 1] = len(found)
    return ptr, np.array(found, np.int64)
