"""How many pairs a body holds for, in the whole knowledge base."""

import numpy as np
from numba import njit

from kblrn_pyg.kernels.walking import reach_parallel


@njit(cache=True, nogil=True)
def body_sizes(adjacency, domains, bodies, rule_code, stamp, onward):
    """Counts the pairs of each body, and those of each rule under PCA.

    Body ``i`` belongs to the rules ``bodies.ptr[i] .. bodies.ptr[i + 1] - 1``, for
    each of which ``rule_code`` names the code that a pair's first entity must have
    in ``domains``. ``stamp`` must be -1 and ``onward`` 0 everywhere; ``onward`` is
    left so. Bodies that share their second code should be adjacent.
    """
    rule_ptr, first, second, parallel, choices = bodies
    reached, common = np.zeros(len(stamp), np.int64), np.empty(len(stamp), np.int64)
    sizes = np.zeros(len(first), np.int64)
    pca_sizes = np.zeros(len(rule_code), np.int64)
    serial = 0
    current = -1  # the code whose groups 'onward' holds
    for i in range(len(first)):
        if second[i] != current:
            _set_onward(adjacency, current, onward, False)
            _set_onward(adjacency, second[i], onward, True)
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
    _set_onward(adjacency, current, onward, False)
    return sizes, pca_sizes


@njit(cache=True, nogil=True)
def _set_onward(adjacency, code, onward, on):
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
