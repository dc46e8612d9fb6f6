"""The number of pairs for which a body holds, in the whole knowledge base."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.walking import reach_parallel


class Scratch(NamedTuple):
    r"""The working memory of one thread; nothing in it has to be cleared between calls.

    Args:
        clock: The serial number of the last walk.
        stamp: The serial number of the walk that reached an entity last.
        onward: For each entity, its group of a second code, plus one; 0
            everywhere between calls.
    """

    clock: np.ndarray
    stamp: np.ndarray
    onward: np.ndarray


def new_scratch(num_entities: int) -> Scratch:
    r"""Creates the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
    """
    stamp, onward = np.zeros((2, num_entities), np.int64)
    return Scratch(np.zeros(1, np.int64), stamp, onward)


@njit(cache=True, nogil=True)
def body_sizes(adjacency, domains, bodies, rule_code, leave, scratch):
    """Counts the pairs of each body, and those of each rule under PCA.

    Body ``i`` belongs to the rules ``bodies.ptr[i] .. bodies.ptr[i + 1] - 1``, for
    each of which ``rule_code`` names the code that a pair's first entity must have
    in ``domains``. Bodies for which ``leave`` is true are not counted. Bodies that
    share their second code should be adjacent.
    """
    rule_ptr, first, second, parallel, choices = bodies
    clock, stamp, onward = scratch
    reached, common = np.zeros(len(stamp), np.int64), np.empty(len(stamp), np.int64)
    sizes = np.zeros(len(first), np.int64)
    pca_sizes = np.zeros(len(rule_code), np.int64)
    serial = clock[0]
    current = -1  # the code whose groups 'onward' holds
    for i in range(len(first)):
        if leave[i]:
            continue
        if second[i] != current:
            set_onward(adjacency, current, onward, False)
            set_onward(adjacency, second[i], onward, True)
            current = second[i]
        begin, end = adjacency.code_ptr[first[i]], adjacency.code_ptr[first[i] + 1]
        for group in range(begin, end):
            source = adjacency.group_entity[group]
            serial += 1
            if second[i] < 0:
                count = _num_neighbours(adjacency, group, source, choices)
            elif parallel[i]:
                other = onward[source] - 1
                count = reach_parallel(
                    adjacency, group, other, source, choices, serial, stamp, common
                )
            else:
                count = _num_reached(
                    adjacency, group, onward, source, choices, serial, stamp
                )
            reached[source] = count
            sizes[i] += count
        for k in range(rule_ptr[i], rule_ptr[i + 1]):
            code = rule_code[k]
            for j in range(domains.code_ptr[code], domains.code_ptr[code + 1]):
                pca_sizes[k] += reached[domains.group_entity[j]]
        for group in range(begin, end):
            reached[adjacency.group_entity[group]] = 0
    set_onward(adjacency, current, onward, False)
    clock[0] = serial
    return sizes, pca_sizes


@njit(cache=True, nogil=True)
def set_onward(adjacency, code, onward, on):
    """Sets, for each entity, its group of a code, plus one; or resets it to 0."""
    if code < 0:
        return
    for group in range(adjacency.code_ptr[code], adjacency.code_ptr[code + 1]):
        onward[adjacency.group_entity[group]] = group + 1 if on else 0


@njit(cache=True, nogil=True)
def _num_neighbours(adjacency, group, source, choices):
    start, end = adjacency.group_start[group], adjacency.group_start[group + 1]
    if choices.equal_ends:
        return end - start
    return np.sum(adjacency.neighbour[start:end] != source)


@njit(cache=True, nogil=True)
def _num_reached(adjacency, group, onward, source, choices, serial, stamp):
    neighbour, start = adjacency.neighbour, adjacency.group_start
    if choices.equal_ends and choices.equal_middle:
        # Often at most one middle leads on: then nothing is reached twice.
        num_steps, only = 0, 0
        for i in range(start[group], start[group + 1]):
            step = onward[neighbour[i]] - 1
            if step >= 0:
                num_steps += 1
                only = step
        if num_steps <= 1:
            return num_steps * (start[only + 1] - start[only])
    count = 0
    for i in range(start[group], start[group + 1]):
        x = neighbour[i]
        step = onward[x] - 1
        if step < 0 or (x == source and not choices.equal_middle):
            continue
        for j in range(start[step], start[step + 1]):
            target = neighbour[j]
            if stamp[target] == serial:
                continue
            if target == source and not choices.equal_ends:
                continue
            if target == x and not choices.equal_middle:
                continue
            stamp[target] = serial
            count += 1
    return count


@njit(cache=True, nogil=True)
def walked_steps(adjacency, first, second, enough):
    """Counts the pairs of each two-hop body, once for each middle.

    This needs no walk, because each middle contributes a product. One-hop bodies,
    and those that cannot have more than ``enough`` pairs, get 0.
    """
    code_ptr, entity = adjacency.code_ptr, adjacency.group_entity
    start = adjacency.group_start
    most = _most_neighbours(adjacency)
    steps = np.zeros(len(first), np.int64)
    for i in range(len(first)):
        if second[i] < 0:
            continue
        back = first[i] ^ 1  # from the middles to where paths begin
        num_first = start[code_ptr[back + 1]] - start[code_ptr[back]]
        num_second = start[code_ptr[second[i] + 1]] - start[code_ptr[second[i]]]
        # Looking at all middles takes longer, and most bodies are small.
        if min(num_first * most[second[i]], num_second * most[back]) <= enough:
            continue
        a, b = code_ptr[back], code_ptr[second[i]]
        while a < code_ptr[back + 1] and b < code_ptr[second[i] + 1]:
            if entity[a] < entity[b]:
                a += 1
            elif entity[a] > entity[b]:
                b += 1
            else:
                steps[i] += (start[a + 1] - start[a]) * (start[b + 1] - start[b])
                a += 1
                b += 1
    return steps


@njit(cache=True, nogil=True)
def _most_neighbours(adjacency):
    """Returns the length of the longest list of neighbours of each code."""
    code_ptr, start = adjacency.code_ptr, adjacency.group_start
    most = np.zeros(len(code_ptr) - 1, np.int64)
    for code in range(len(most)):
        for group in range(code_ptr[code], code_ptr[code + 1]):
            most[code] = max(most[code], start[group + 1] - start[group])
    return most


@njit(cache=True, nogil=True)
def steps_from(adjacency, code, onward):
    """Does the same as :meth:`walked_steps` for each code group of a first code."""
    neighbour, start = adjacency.neighbour, adjacency.group_start
    begin, end = adjacency.code_ptr[code], adjacency.code_ptr[code + 1]
    steps = np.zeros(end - begin, np.int64)
    for group in range(begin, end):
        for i in range(start[group], start[group + 1]):
            step = onward[neighbour[i]] - 1
            if step >= 0:
                steps[group - begin] += start[step + 1] - start[step]
    return steps


@njit(cache=True, nogil=True)
def reached_from(adjacency, groups, choices, scratch):
    """Counts what a two-hop body reaches from some code groups of its first code.

    ``scratch.onward`` must be set to its second code.
    """
    clock, stamp, onward = scratch
    count = np.empty(len(groups), np.int64)
    for k in range(len(groups)):
        clock[0] += 1
        source = adjacency.group_entity[groups[k]]
        count[k] = _num_reached(
            adjacency, groups[k], onward, source, choices, clock[0], stamp
        )
    return count
