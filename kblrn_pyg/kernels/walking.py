"""Which entities a body reaches from an entity, and which bodies hold for a pair."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import Adjacency, find_group
from kblrn_pyg.kernels.mining import Choices

# For walks that are walked to their end, however long they are.
NO_LIMIT = np.iinfo(np.int64).max

# No fact is left aside.
NO_FACT = (-1, -1, -1)

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


class Paths(NamedTuple):
    r"""All that is needed to walk the bodies of rules from one end.

    Args:
        adjacency: The facts that bodies may use.
        bodies: The bodies.
    """

    adjacency: Adjacency
    bodies: Bodies


class Scratch(NamedTuple):
    r"""The working memory of one thread; nothing in it has to be wiped between calls.

    Args:
        clock: The serial number of the last walk.
        stamp: The serial number of the walk that reached an entity last.
        out: What a walk reaches.
    """

    clock: np.ndarray
    stamp: np.ndarray
    out: np.ndarray


def new_scratch(num_entities: int) -> Scratch:
    r"""Makes the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
    """
    return Scratch(
        np.zeros(1, np.int64),
        np.zeros(num_entities, np.int64),
        np.empty(num_entities, np.int64),
    )


@njit(cache=True, nogil=True)
def first_steps(adjacency, bodies, rule, source):
    """Returns the code group of the first steps of a body, -1 if it has none.

    Most bodies have none. Asking here, before ``reach`` is called with all its
    arguments, halves the time of a walk.
    """
    code = bodies.first[rule]
    return find_group(adjacency.code_ptr, adjacency.group_entity, code, source)


@njit(cache=True, nogil=True)
def last_steps(adjacency, bodies, rule, target):
    """Returns the code group of the steps back from the end to the middle of a body.

    It is -1 if there are none, or no middle.
    """
    code = bodies.second[rule]
    if code < 0 or bodies.parallel[rule]:
        return -1
    return find_group(adjacency.code_ptr, adjacency.group_entity, code ^ 1, target)


@njit(cache=True, nogil=True)
def reach(paths, rule, source, group, serial, limit, stamp, out):
    """Writes the distinct entities that the body of a rule reaches to ``out``.

    ``group`` is that of its first steps. ``stamp`` has an entry for each entity;
    those whose stamp is ``serial`` or more are left out. Returns their number,
    or -1 if the walk would take more than ``limit`` steps.
    """
    adjacency, bodies = paths
    second, choices = bodies.second[rule], bodies.choices
    neighbour, start = adjacency.neighbour, adjacency.group_start
    num_steps = start[group + 1] - start[group]
    if num_steps > limit:
        return -1
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
        if other >= 0 and num_steps + start[other + 1] - start[other] > limit:
            return -1
        return reach_parallel(
            adjacency, group, other, source, choices, serial, stamp, out
        )
    count = 0
    # Many middles: follow them through the sorted list of all entities that can
    # go on. Few middles: look each one up.
    onward, end = adjacency.code_ptr[second], adjacency.code_ptr[second + 1]
    num_steps *= _LOOK_UP_COST
    follow = end - onward <= num_steps
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
        num_steps += start[onward + 1] - start[onward]
        if num_steps > limit:
            return -1
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
def walk_queries(paths, source, rel, scratch):
    """Finds the (candidate, rule) pairs of each query, rule by rule.

    Returns where the pairs of each query begin, the candidates and the rules.
    """
    adjacency, bodies = paths
    clock, stamp, out = scratch
    ptr = np.zeros(len(source) + 1, np.int64)
    candidate = rule_id = np.empty(0, np.int64)
    for is_counted in (False, True):
        if is_counted:
            ptr = np.cumsum(ptr)
            candidate, rule_id = (
                np.empty(ptr[-1], np.int64),
                np.empty(ptr[-1], np.int64),
            )
        for q in range(len(source)):
            k = ptr[q]
            u = source[q]
            for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
                group = first_steps(adjacency, bodies, rule, u)
                if group < 0:
                    continue
                clock[0] += 1
                to = candidate[k:] if is_counted else out
                count = reach(paths, rule, u, group, clock[0], NO_LIMIT, stamp, to)
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
    return _leads_to(adjacency, source, code, group, target, own)


@njit(cache=True, nogil=True)
def _leads_to(adjacency, source, code, group, target, own):
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
def middles(paths, rule, head, tail, groups, own, out):
    """Writes the middles of a two-hop body, no more than ``out`` has room for.

    ``groups`` are those of its first steps, and of its last ones backwards; ``own``
    is a fact that does not count, relation -1 means none. The shorter list of
    neighbours is gone through and the longer one searched, so that a hub at either
    end costs little.
    """
    adjacency, bodies = paths
    first, second = bodies.first[rule], bodies.second[rule]
    group, back = groups
    if back < 0:
        return 0
    neighbour, start = adjacency.neighbour, adjacency.group_start
    if start[group + 1] - start[group] <= start[back + 1] - start[back]:
        shorter, longer = group, back
    else:
        shorter, longer = back, group
    at, end = start[longer], start[longer + 1]
    count = 0
    for i in range(start[shorter], start[shorter + 1]):
        x = neighbour[i]
        at = seek(neighbour, at, end, x)
        if at == end or count == len(out):
            break
        if neighbour[at] != x:
            continue
        if (x == head or x == tail) and not bodies.choices.equal_middle:
            continue
        if _is_own(head, first, x, own) or _is_own(x, second, tail, own):
            continue
        out[count] = x
        count += 1
    return count


@njit(cache=True, nogil=True)
def seek(values, begin, end, least):
    """Returns the first place of a value not below ``least``, by growing strides."""
    stride, high = 1, begin
    while high < end and values[high] < least:
        begin = high + 1
        high += stride
        stride *= 2
    high = min(high, end)
    while begin < high:
        middle = (begin + high) >> 1
        if values[middle] < least:
            begin = middle + 1
        else:
            high = middle
    return begin


@njit(cache=True, nogil=True)
def holds(paths, rule, head, tail, own, out):
    """Tells whether a body holds for a pair without the own fact.

    ``out`` is working memory with room for one entity.
    """
    group = first_steps(paths.adjacency, paths.bodies, rule, head)
    return group >= 0 and holds_from(paths, rule, head, group, tail, own, out)


@njit(cache=True, nogil=True)
def holds_from(paths, rule, head, group, tail, own, out):
    """Does what :meth:`holds` does, given the group of the first steps."""
    groups = group, last_steps(paths.adjacency, paths.bodies, rule, tail)
    return holds_between(paths, rule, head, tail, groups, own, out)


@njit(cache=True, nogil=True)
def holds_between(paths, rule, head, tail, groups, own, out):
    """Does what :meth:`holds` does, given the groups of the steps from both ends.

    Those from the tail, backwards, are not asked for unless there is a middle.
    """
    adjacency, bodies = paths
    if head == tail and not bodies.choices.equal_ends:
        return False
    first, second = bodies.first[rule], bodies.second[rule]
    if second >= 0 and not bodies.parallel[rule]:
        return middles(paths, rule, head, tail, groups, own, out) > 0
    if not _leads_to(adjacency, head, first, groups[0], tail, own):
        return False
    return second < 0 or _is_step(adjacency, head, second, tail, own)


@njit(cache=True, nogil=True)
def pair_rules(kept, facts, leave_own, only_own):
    """Finds the rules that hold for each fact.

    ``kept`` is what ``PathFeatures.walk_arguments`` returns. If ``leave_own``, a fact
    does not count for itself. If ``only_own``, the rules are those that hold by the
    fact itself alone. What was kept knows of neither. Returns where the rules of
    each fact begin, and the rules.
    """
    paths, walks, place = kept
    adjacency, bodies = paths
    heads, relations, tails = facts
    ptr = np.zeros(len(heads) + 1, np.int64)
    found = []
    out = np.empty(1, np.int64)
    # The group of each code of a head and of a tail, and whose it is: rules share
    # steps, and looking up their groups takes most of the time.
    size = len(adjacency.code_ptr) - 1
    from_head, head_of = np.empty(size, np.int64), np.full(size, -1)
    from_tail, tail_of = np.empty(size, np.int64), np.full(size, -1)
    for i in range(len(heads)):
        h, r, t = own = heads[i], relations[i], tails[i]
        if place[i] >= 0:
            for run in range(walks.run_ptr[place[i]], walks.run_ptr[place[i] + 1]):
                if _is_in(walks, walks.walk[run], t):
                    found.append(walks.rule[run])
            ptr[i + 1] = len(found)
            continue
        left_out = own if leave_own else (h, -1, t)
        for rule in range(bodies.ptr[r], bodies.ptr[r + 1]):
            first, second = bodies.first[rule], bodies.second[rule]
            if only_own and first >> 1 != r and second >> 1 != r:
                continue
            group, back = _look_up(adjacency, first, h, from_head, head_of), -1
            if group < 0:
                continue
            if second >= 0 and not bodies.parallel[rule]:
                back = _look_up(adjacency, second ^ 1, t, from_tail, tail_of)
                if back < 0:
                    continue
            groups = group, back
            if not holds_between(paths, rule, h, t, groups, left_out, out):
                continue
            if only_own and holds_between(paths, rule, h, t, groups, own, out):
                continue
            found.append(rule)
        ptr[i + 1] = len(found)
    return ptr, np.array(found, np.int64)


@njit(cache=True, nogil=True, inline="always")
def _look_up(adjacency, code, entity, groups, entity_of):
    """Finds a group, unless it was the last one that was asked for of its code."""
    if entity_of[code] != entity:
        entity_of[code] = entity
        groups[code] = find_group(
            adjacency.code_ptr, adjacency.group_entity, code, entity
        )
    return groups[code]


@njit(cache=True, nogil=True)
def _is_in(walks, walk, entity):
    """Tells whether a walk reaches an entity; to the end, by many of it at once."""
    is_in = False
    entity = walks.reached.dtype.type(entity)
    for i in range(walks.ptr[walk], walks.ptr[walk + 1]):
        is_in |= walks.reached[i] == entity
    return is_in
