"""The entities that the bodies of rules reach from an entity."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import Adjacency, find_group
from kblrn_pyg.kernels.mining import Choices

# For walks that are walked to their end, however long they are.
NO_LIMIT = np.iinfo(np.int64).max

# The number of steps along a list that take as long as finding a group.
_LOOK_UP_COST = 8


class Bodies(NamedTuple):
    r"""The bodies of all rules, walked from one end.

    Args:
        ptr: Where the rules of each relation begin.
        first: The first code of each body.
        second: The second code, -1 for one-hop bodies.
        parallel: Whether both codes lead from one end to the other.
        choices: The semantics of bodies.
    """

    ptr: np.ndarray
    first: np.ndarray
    second: np.ndarray
    parallel: np.ndarray
    choices: Choices


class Paths(NamedTuple):
    r"""All data that is needed to walk the bodies of rules from one end.

    Args:
        adjacency: The facts that bodies may use.
        bodies: The bodies.
    """

    adjacency: Adjacency
    bodies: Bodies


class Scratch(NamedTuple):
    r"""The working memory of one thread; nothing in it has to be cleared between calls.

    Args:
        clock: The serial number of the last walk.
        stamp: The serial number of the walk that reached an entity last.
        out: What a walk reaches.
    """

    clock: np.ndarray
    stamp: np.ndarray
    out: np.ndarray


def new_scratch(num_entities: int) -> Scratch:
    r"""Creates the working memory of one thread.

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

    Most bodies have none. Checking this here, before ``reach`` is called with all
    its arguments, halves the time of a walk.
    """
    code = bodies.first[rule]
    return find_group(adjacency.code_ptr, adjacency.group_entity, code, source)


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
    """Does the same as :meth:`reach` for two groups of steps to the same entities."""
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
