"""Piecewise linear functions of comparisons between the numbers of two entities.

A layer has a value at each of its knots, is linear between them, and constant
outside. Differences are evaluated in the order of the candidates' numbers, so that
knots and candidates are traversed together, without a search.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

# How the numbers of two entities compare: their difference, or the distance of two
# points in space, whose three coordinates are in consecutive columns.
DIFFERENCE, DISTANCE = 0, 1

# How many pieces distances are cut into, to find knots without a search.
_PIECES = 256


class Layers(NamedTuple):
    r"""The layers of all relations, and the numbers that they compare.

    Args:
        ptr: Where the layers of each relation begin.
        kind: The kind of comparison of each layer.
        head: The column of the head's numbers, for each layer.
        tail: The column of the tail's numbers, for each layer.
        knot_ptr: Where the knots of each layer begin.
        knot: The knots, ascending.
        value: The number of each column and entity, NaN where unknown.
        known_ptr: Where the columns of scores with a number begin, for each column.
        known: These columns of scores, those of differences by ascending number.
        known_value: Their numbers.
    """

    ptr: np.ndarray
    kind: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    knot_ptr: np.ndarray
    knot: np.ndarray
    value: np.ndarray
    known_ptr: np.ndarray
    known: np.ndarray
    known_value: np.ndarray


@njit(cache=True, nogil=True)
def add_layers(layers, is_tail, entity, rel, numbers, scores):
    """Adds the layers of every candidate to the rows of scores.

    ``is_tail`` tells whether candidates are tails; ``numbers`` are the values at
    knots, and the values of each layer where only the head's, and where only the
    tail's number is unknown.
    """
    table, missing = numbers
    for q in range(len(entity)):
        row, base = scores[q], 0.0
        for i in range(layers.ptr[rel[q]], layers.ptr[rel[q] + 1]):
            mine, other = _sides(layers, i, is_tail)
            begin, end = layers.known_ptr[other], layers.known_ptr[other + 1]
            if math.isnan(layers.value[mine, entity[q]]):
                of_unknown = missing[i, 1 - is_tail]
                for k in range(begin, end):
                    row[layers.known[k]] += of_unknown
                continue
            # All candidates get this, and those with numbers the difference.
            of_unknown = missing[i, is_tail]
            base += of_unknown
            if layers.kind[i] == DIFFERENCE:
                own = layers.value[mine, entity[q]]
                _add_sorted(layers, i, is_tail, own, begin, end, table, of_unknown, row)
                continue
            own = point_of(layers, mine, entity[q])
            _add_distances(layers, i, own, other, table, of_unknown, row)
        if base != 0:
            for c in range(len(row)):
                row[c] += base


@njit(cache=True, nogil=True)
def layer_gradient(layers, is_tail, entity, rel, grad, table_grad, missing_grad):
    """Adds the gradients of the values at knots, and of those of unknown numbers."""
    for q in range(len(entity)):
        row, total = grad[q], math.nan
        for i in range(layers.ptr[rel[q]], layers.ptr[rel[q] + 1]):
            mine, other = _sides(layers, i, is_tail)
            begin, end = layers.known_ptr[other], layers.known_ptr[other + 1]
            if math.isnan(layers.value[mine, entity[q]]):
                for k in range(begin, end):
                    missing_grad[i, 1 - is_tail] += row[layers.known[k]]
                continue
            if math.isnan(total):
                total = 0.0
                for c in range(len(row)):
                    total += row[c]
            known = 0.0
            if layers.kind[i] == DIFFERENCE:
                own = layers.value[mine, entity[q]]
                known = _sorted_gradient(
                    layers, i, is_tail, own, begin, end, row, table_grad
                )
            else:
                own = point_of(layers, mine, entity[q])
                known = _distance_gradient(layers, i, own, other, row, table_grad)
            missing_grad[i, is_tail] += total - known


@njit(cache=True, nogil=True)
def score_layers(layers, is_tail, entity, rel, candidates, numbers, scores):
    """Adds the layers of some candidates of each query."""
    table, missing = numbers
    for q in range(len(entity)):
        for i in range(layers.ptr[rel[q]], layers.ptr[rel[q] + 1]):
            mine, other = _sides(layers, i, is_tail)
            first, last = layers.knot_ptr[i], layers.knot_ptr[i + 1]
            is_known = not math.isnan(layers.value[mine, entity[q]])
            for j in range(candidates.shape[1]):
                c = candidates[q, j]
                if math.isnan(layers.value[other, c]):
                    scores[q, j] += missing[i, is_tail] if is_known else 0.0
                elif is_known:
                    x = compare(layers, i, is_tail, entity[q], c)
                    scores[q, j] += value_at(layers.knot, first, last, x, table)
                else:
                    scores[q, j] += missing[i, 1 - is_tail]


@njit(cache=True, nogil=True)
def layer_gradient_of(
    layers, is_tail, entity, rel, candidates, grad, table_grad, missing_grad
):
    """Adds the gradients of ``score_layers``."""
    for q in range(len(entity)):
        for i in range(layers.ptr[rel[q]], layers.ptr[rel[q] + 1]):
            mine, other = _sides(layers, i, is_tail)
            first, last = layers.knot_ptr[i], layers.knot_ptr[i + 1]
            is_known = not math.isnan(layers.value[mine, entity[q]])
            for j in range(candidates.shape[1]):
                c = candidates[q, j]
                if math.isnan(layers.value[other, c]):
                    missing_grad[i, is_tail] += grad[q, j] if is_known else 0.0
                elif is_known:
                    x = compare(layers, i, is_tail, entity[q], c)
                    add_gradient_at(layers.knot, first, last, x, grad[q, j], table_grad)
                else:
                    missing_grad[i, 1 - is_tail] += grad[q, j]


@njit(cache=True, nogil=True)
def compare(layers, i, is_tail, entity, candidate):
    """Returns the comparison of two entities' numbers, both of which are known."""
    mine, other = _sides(layers, i, is_tail)
    if layers.kind[i] == DISTANCE:
        own = point_of(layers, mine, entity)
        return _distance(own, point_of(layers, other, candidate))
    difference = layers.value[mine, entity] - layers.value[other, candidate]
    return difference if is_tail else -difference


@njit(cache=True, nogil=True)
def value_at(knot, begin, end, x, table):
    """Returns the value of a layer, given its first knot and what follows its last."""
    return _value_before(knot, begin, end, _place(knot, begin, end, x), x, table)


@njit(cache=True, nogil=True)
def add_gradient_at(knot, begin, end, x, grad, table_grad):
    """Adds the gradient of a layer's value to those of its knots."""
    k = _place(knot, begin, end, x)
    _add_gradient_before(knot, begin, end, k, x, grad, table_grad)


@njit(cache=True, nogil=True)
def _value_before(knot, begin, end, k, x, table):
    """Returns the value of a layer at a number, of which ``k`` is the next knot."""
    if k == begin:
        return table[begin]
    if k == end:
        return table[end - 1]
    part = (x - knot[k - 1]) / (knot[k] - knot[k - 1])
    return table[k - 1] + part * (table[k] - table[k - 1])


@njit(cache=True, nogil=True)
def _add_gradient_before(knot, begin, end, k, x, grad, table_grad):
    if k == begin:
        table_grad[begin] += grad
    elif k == end:
        table_grad[end - 1] += grad
    else:
        part = (x - knot[k - 1]) / (knot[k] - knot[k - 1])
        table_grad[k - 1] += (1 - part) * grad
        table_grad[k] += part * grad


@njit(cache=True, nogil=True, inline="always")
def _sides(layers, i, is_tail):
    """Returns the column of the query's entity, and that of candidates."""
    if is_tail:
        return layers.head[i], layers.tail[i]
    return layers.tail[i], layers.head[i]


@njit(cache=True, nogil=True, inline="always")
def _place(knot, begin, end, x):
    """Returns the first knot that is greater, by bisection.

    There is no branch, which would be guessed wrong half of the time.
    """
    size = end - begin
    while size > 0:
        half = (size + 1) // 2
        begin += half if knot[begin + half - 1] <= x else 0
        size -= half
    return begin


@njit(cache=True, nogil=True, inline="always")
def point_of(layers, column, entity):
    """Returns the three coordinates of an entity."""
    value = layers.value
    return value[column, entity], value[column + 1, entity], value[column + 2, entity]


@njit(cache=True, nogil=True, inline="always")
def _distance(point, other):
    x, y, z = point[0] - other[0], point[1] - other[1], point[2] - other[2]
    return math.sqrt(x * x + y * y + z * z)


@njit(cache=True, nogil=True)
def _guide(knot, begin, end):
    """Returns the first knot in or behind each of many even pieces of distances."""
    guide = np.empty(_PIECES + 1, np.int64)
    k = begin
    for piece in range(_PIECES + 1):
        low = piece * (knot[end - 1] / _PIECES)
        while k < end and knot[k] < low:
            k += 1
        # One less, as a piece may seem to begin earlier by rounding.
        guide[piece] = max(k - 1, begin)
    return guide


@njit(cache=True, nogil=True, inline="always")
def _guided_place(knot, end, guide, x):
    """Returns the first knot that is greater, in few steps."""
    if x >= knot[end - 1]:
        return end
    k = guide[int(x * (_PIECES / knot[end - 1]))]
    while knot[k] <= x:
        k += 1
    return k


@njit(cache=True, nogil=True)
def _axes(layers, column):
    """Returns the coordinates of the candidates that have them."""
    ptr, value = layers.known_ptr, layers.known_value
    return (
        value[ptr[column] : ptr[column + 1]],
        value[ptr[column + 1] : ptr[column + 2]],
        value[ptr[column + 2] : ptr[column + 3]],
    )


@njit(cache=True, nogil=True)
def _add_distances(layers, i, own, other, table, of_unknown, row):
    """Adds a layer of distances."""
    begin, end = layers.knot_ptr[i], layers.knot_ptr[i + 1]
    first, knot, known = layers.known_ptr[other], layers.knot, layers.known
    xs, ys, zs = _axes(layers, other)
    guide = _guide(knot, begin, end)
    for k in range(len(xs)):
        x = _distance(own, (xs[k], ys[k], zs[k]))
        place = _guided_place(knot, end, guide, x)
        value = _value_before(knot, begin, end, place, x, table)
        row[known[first + k]] += value - of_unknown


@njit(cache=True, nogil=True)
def _distance_gradient(layers, i, own, other, row, table_grad):
    """Adds the gradient of a layer of distances; returns that of all candidates."""
    begin, end = layers.knot_ptr[i], layers.knot_ptr[i + 1]
    first, knot, known = layers.known_ptr[other], layers.knot, layers.known
    xs, ys, zs = _axes(layers, other)
    guide = _guide(knot, begin, end)
    everywhere = 0.0
    for k in range(len(xs)):
        x = _distance(own, (xs[k], ys[k], zs[k]))
        grad = row[known[first + k]]
        place = _guided_place(knot, end, guide, x)
        _add_gradient_before(knot, begin, end, place, x, grad, table_grad)
        everywhere += grad
    return everywhere


@njit(cache=True, nogil=True)
def _add_sorted(layers, i, is_tail, own, begin, end, table, of_unknown, row):
    """Adds a layer of differences, piece by piece."""
    first, last = layers.knot_ptr[i], layers.knot_ptr[i + 1]
    knot, known, known_value = layers.knot, layers.known, layers.known_value
    # Differences ascend: against the order of the numbers that are subtracted.
    j, step = (end - 1, -1) if is_tail else (begin, 1)
    left, sign = end - begin, 1.0 if is_tail else -1.0
    for k in range(first, last + 1):
        low = knot[max(k - 1, first)]
        at_low, slope = table[max(k - 1, first)] - of_unknown, 0.0
        if first < k < last:
            slope = (table[k] - table[k - 1]) / (knot[k] - knot[k - 1])
        high = knot[k] if k < last else math.inf
        while left > 0:
            x = sign * (own - known_value[j])
            if not x < high:
                break
            row[known[j]] += at_low + slope * (x - low)
            j += step
            left -= 1


@njit(cache=True, nogil=True)
def _sorted_gradient(layers, i, is_tail, own, begin, end, row, table_grad):
    """Adds the gradient of a layer of differences; returns that of all candidates."""
    first, last = layers.knot_ptr[i], layers.knot_ptr[i + 1]
    knot, known, known_value = layers.knot, layers.known, layers.known_value
    j, step = (end - 1, -1) if is_tail else (begin, 1)
    left, sign = end - begin, 1.0 if is_tail else -1.0
    everywhere = 0.0
    for k in range(first, last + 1):
        low = knot[max(k - 1, first)]
        high = knot[k] if k < last else math.inf
        total, moment = 0.0, 0.0
        while left > 0:
            x = sign * (own - known_value[j])
            if not x < high:
                break
            grad = row[known[j]]
            total += grad
            moment += grad * (x - low)
            j += step
            left -= 1
        everywhere += total
        if first < k < last:
            part = moment / (knot[k] - knot[k - 1])
            table_grad[k - 1] += total - part
            table_grad[k] += part
        else:
            table_grad[max(k - 1, first)] += total
    return everywhere
