"""The bodies of rules that hold for a pair of entities, and their middle entities."""

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import find_group, seek
from kblrn_pyg.kernels.walking import first_steps

# No fact is left aside.
NO_FACT = (-1, -1, -1)


@njit(cache=True, nogil=True)
def middles(paths, rule, head, tail, groups, own, out):
    """Writes the middles of a two-hop body, at most as many as fit into ``out``.

    ``groups`` are those of its first steps, and of its last ones backwards; ``own``
    is a fact that does not count, relation -1 means none. The kernel iterates over
    the shorter list of neighbours and searches the longer one, so a hub at either
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
def holds(paths, rule, head, tail, own, out):
    """Returns whether a body holds for a pair without the own fact.

    ``out`` is working memory with room for one entity.
    """
    group = first_steps(paths.adjacency, paths.bodies, rule, head)
    return group >= 0 and holds_from(paths, rule, head, group, tail, own, out)


@njit(cache=True, nogil=True)
def holds_from(paths, rule, head, group, tail, own, out):
    """Does the same as :meth:`holds`, given the group of the first steps."""
    groups = group, last_steps(paths.adjacency, paths.bodies, rule, tail)
    return holds_between(paths, rule, head, tail, groups, own, out)


@njit(cache=True, nogil=True)
def holds_between(paths, rule, head, tail, groups, own, out):
    """Does the same as :meth:`holds`, given the groups of the steps from both ends.

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

    ``kept`` is what ``PathFeatures.walk_arguments`` returns. If ``leave_own``, a
    fact does not count for itself. If ``only_own``, the rules are those that hold
    only because of the fact itself. Cached walks support neither. Returns where the
    rules of each fact begin, and the rules.
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


@njit(cache=True, nogil=True)
def last_steps(adjacency, bodies, rule, target):
    """Returns the code group of the steps back from the end to the middle of a body.

    It is -1 if there are none, or no middle.
    """
    code = bodies.second[rule]
    if code < 0 or bodies.parallel[rule]:
        return -1
    return find_group(adjacency.code_ptr, adjacency.group_entity, code ^ 1, target)


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
    """Returns whether a walk reaches an entity; to the end, by many of it at once."""
    is_in = False
    entity = walks.reached.dtype.type(entity)
    for i in range(walks.ptr[walk], walks.ptr[walk + 1]):
        is_in |= walks.reached[i] == entity
    return is_in


@njit(cache=True, nogil=True)
def _is_step(adjacency, source, code, target, own):
    """Returns whether there is a step other than the own fact, walked either way."""
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
