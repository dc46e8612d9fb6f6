"""Which entities a body reaches from an entity, and which bodies hold for a pair."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import find_group

# The number of steps along a list that take as long as finding a group.
_LOOK_UP_COST = 8


class Bodies(NamedTuple):
    r"""The bodies of all rules, walked from one end.

    Args:
        ptr: Where the rules of each relation begin.
        first: The first code of each body.
        second: The second code, -1 for one-hop bodies.
        parallel: Whether both codes lead from one end to the other.
    """

    ptr: np.ndarray
    first: np.ndarray
    second: np.ndarray
    parallel: np.ndarray


@njit(cache=True, nogil=True)
def first_steps(adjacency, bodies, rule, source):
    """Returns the code group of the first steps of a body, -1 if it has none.

    Most bodies have none. Asking here, before ``reach`` is called with all its
    arguments, halves the time of a walk.
    """
    code = bodies.first[rule]
    return find_group(adjacency.code_ptr, adjacency.group_entity, code, source)


@njit(cache=True, nogil=True)
def reach(adjacency, bodies, rule, source, group, choices, serial, stamp, out):
    """Writes the distinct entities that the body of a rule reaches to ``out``.

    ``group`` is that of its first steps. ``stamp`` has an entry for each entity;
    those whose stamp is ``serial`` or more are left out. Returns their number.
    """
    second = bodies.second[rule]
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
        return _reach_parallel(
            adjacency, group, second, source, choices, serial, stamp, out
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
def _reach_parallel(adjacency, group, second, source, choices, serial, stamp, out):
    neighbour, start = adjacency.neighbour, adjacency.group_start
    other = find_group(adjacency.code_ptr, adjacency.group_entity, second, source)
    if other < 0:
        return 0
    count = 0
    i, j = start[group], start[other]
    while i < start[group + 1] and j < start[other + 1]:
        if neighbour[i] < neighbour[j]:
            i += 1
        elif neighbour[i] > neighbour[j]:
            j += 1
        else:
            target = neighbour[i]
            i += 1
            j += 1
            if stamp[target] >= serial:
                continue
            if target != source or choices.equal_ends:
                out[count] = target
                count += 1
    return count


@njit(cache=True, nogil=True)
def count_reached(adjacency, rules, source, rel, choices, stamp, out):
    """Counts the (candidate, rule) pairs of each query; see :meth:`fill_reached`."""
    counts = np.zeros(len(source), np.int64)
    serial = 0
    for q in range(len(source)):
        for rule in range(rules.ptr[rel[q]], rules.ptr[rel[q] + 1]):
            group = first_steps(adjacency, rules, rule, source[q])
            if group < 0:
                continue
            serial += 1
            counts[q] += reach(
                adjacency, rules, rule, source[q], group, choices, serial, stamp, out
            )
    return counts


@njit(cache=True, nogil=True)
def fill_reached(
    adjacency, rules, source, rel, choices, begin, candidate, rule_id, stamp
):
    """Writes the (candidate, rule) pairs of each query, rule by rule.

    ``stamp`` must be -1 everywhere. Query ``q`` writes from ``begin[q]`` on.
    """
    serial = 0
    for q in range(len(source)):
        k = begin[q]
        for rule in range(rules.ptr[rel[q]], rules.ptr[rel[q] + 1]):
            group = first_steps(adjacency, rules, rule, source[q])
            if group < 0:
                continue
            serial += 1
            place = candidate[k:]
            count = reach(
                adjacency, rules, rule, source[q], group, choices, serial, stamp, place
            )
            rule_id[k : k + count] = rule
            k += count


@njit(cache=True, nogil=True)
def is_step(adjacency, source, code, target, own_head, own_rel, own_tail):
    """Tells whether there is a step other than the own fact, walked either way."""
    group = find_group(adjacency.code_ptr, adjacency.group_entity, code, source)
    if group < 0:
        return False
    low, high = adjacency.group_start[group], adjacency.group_start[group + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if adjacency.neighbour[middle] < target:
            low = middle + 1
        else:
            high = middle
    if low == end or adjacency.neighbour[low] != target:
        return False
    return not _is_own(source, code, target, own_head, own_rel, own_tail)


@njit(cache=True, nogil=True)
def _is_own(source, code, target, own_head, own_rel, own_tail):
    if code >> 1 != own_rel:
        return False
    if code & 1:
        return source == own_tail and target == own_head
    return source == own_head and target == own_tail


@njit(cache=True, nogil=True)
def middles(adjacency, first, second, head, tail, choices, own, limit, out):
    """Writes the middle entities of a two-hop body that holds, at most ``limit``.

    ``own`` is a fact that does not count; relation -1 means none.
    """
    own_head, own_rel, own_tail = own
    group = find_group(adjacency.code_ptr, adjacency.group_entity, first, head)
    back = find_group(adjacency.code_ptr, adjacency.group_entity, second ^ 1, tail)
    if group < 0 or back < 0:
        return 0
    neighbour, start = adjacency.neighbour, adjacency.group_start
    count = 0
    i, j = start[group], start[back]
    while i < start[group + 1] and j < start[back + 1] and count < limit:
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
        if _is_own(head, first, x, own_head, own_rel, own_tail):
            continue
        if _is_own(x, second, tail, own_head, own_rel, own_tail):
            continue
        out[count] = x
        count += 1
    return count


@njit(cache=True, nogil=True)
def holds(adjacency, first, second, parallel, head, tail, choices, own, out):
    """Tells whether a body holds for a pair without the own fact."""
    if head == tail and not choices.equal_ends:
        return False
    own_head, own_rel, own_tail = own
    if second >= 0 and not parallel:
        return middles(adjacency, first, second, head, tail, choices, own, 1, out) > 0
    if not is_step(adjacency, head, first, tail, own_head, own_rel, own_tail):
        return False
    return second < 0 or is_step(
        adjacency, head, second, tail, own_head, own_rel, own_tail
    )


@njit(cache=True, nogil=True)
def pair_rules(adjacency, rules, head, rel, tail, choices, leave_own, ptr, rule_id):
    """Finds the rules that hold for each fact.

    Called with an empty ``rule_id`` it counts into ``ptr[1:]``, called with a
    large enough one it writes from ``ptr[i]`` on.
    """
    fill = len(rule_id) > 0
    out = np.empty(1, np.int64)
    for i in range(len(head)):
        own = (head[i], rel[i] if leave_own else -1, tail[i])
        k = ptr[i]
        for rule in range(rules.ptr[rel[i]], rules.ptr[rel[i] + 1]):
            if holds(
                adjacency,
                rules.first[rule],
                rules.second[rule],
                rules.parallel[rule],
                head[i],
                tail[i],
                choices,
                own,
                out,
            ):
                if fill:
                    rule_id[k] = rule
                    k += 1
                else:
                    ptr[i + 1] += 1


@njit(cache=True, nogil=True)
def own_rules(adjacency, bodies, choices, head, rel, tail, maybe, ptr, rule_id):
    """Finds the rules that hold for each fact by that fact alone.

    Only facts marked in ``maybe`` are looked at; for ``ptr`` and ``rule_id``, see
    :meth:`pair_rules`.
    """
    fill = len(rule_id) > 0
    out = np.empty(1, np.int64)
    for i in range(len(head)):
        if not maybe[i]:
            continue
        h, r, t = head[i], rel[i], tail[i]
        k = ptr[i]
        for rule in range(bodies.ptr[r], bodies.ptr[r + 1]):
            first, second = bodies.first[rule], bodies.second[rule]
            if first >> 1 != r and second >> 1 != r:
                continue
            body = (adjacency, first, second, bodies.parallel[rule], h, t, choices)
            if holds(*body, (-1, -1, -1), out) and not holds(*body, (h, r, t), out):
                if fill:
                    rule_id[k] = rule
                    k += 1
                else:
                    ptr[i + 1] += 1
