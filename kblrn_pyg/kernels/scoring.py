"""Adds path and difference features to rows of scores, with gradients."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.walking import NO_LIMIT, first_steps, reach


class Differences(NamedTuple):
    r"""The numerical features of all relations, and the numbers of entities.

    Args:
        ptr: Where the features of each relation begin.
        attribute: The attribute of each feature.
        value: The number of each attribute and entity, NaN where unknown.
        column_value: The number of each attribute and column of scores.
        known_ptr: Where the columns with a number begin, for each attribute.
        known: These columns.
        use_sign: Whether the activation is the sign instead of an RBF.
    """

    ptr: np.ndarray
    attribute: np.ndarray
    value: np.ndarray
    column_value: np.ndarray
    known_ptr: np.ndarray
    known: np.ndarray
    use_sign: bool


@njit(cache=True, nogil=True)
def activation(difference, centre, width, use_sign):
    """The radial basis function of a difference, or its sign."""
    if use_sign:
        return np.sign(difference)
    z = (difference - centre) / width
    return math.exp(-z * z)


@njit(cache=True, nogil=True)
def add_paths(kept, entity, rel, weight, scores, backward, scratch):
    """Adds the weight of every body that holds to the score of its candidate.

    ``kept`` is what ``PathFeatures.walk_arguments`` returns. If ``backward``,
    ``weight`` and ``scores`` are gradients, and those of the weights are added to.
    """
    paths, walks, place = kept
    adjacency, bodies = paths
    clock, stamp, out = scratch
    for q in range(len(entity)):
        row = scores[q]
        if place[q] >= 0:
            for run in range(walks.run_ptr[place[q]], walks.run_ptr[place[q] + 1]):
                walk = walks.walk[run]
                bounds = walks.ptr[walk], walks.ptr[walk + 1]
                _add_run(walks.rule[run], walks.reached, bounds, weight, row, backward)
            continue
        u = entity[q]
        for rule in range(bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]):
            group = first_steps(adjacency, bodies, rule, u)
            if group < 0:
                continue
            clock[0] += 1
            count = reach(paths, rule, u, group, clock[0], NO_LIMIT, stamp, out)
            _add_run(rule, out, (0, count), weight, row, backward)


@njit(cache=True, nogil=True, inline="always")
def _add_run(rule, reached, bounds, weight, score, backward):
    """Adds a weight to the scores of all that a rule reaches, or their gradients.

    Runs are short: calls, and slices of ``reached`` instead of bounds, take time.
    """
    begin, end = bounds
    if backward:
        total = 0.0
        for i in range(begin, end):
            total += score[reached[i]]
        weight[rule] += total
    else:
        of_rule = weight[rule]
        for i in range(begin, end):
            score[reached[i]] += of_rule


@njit(cache=True, nogil=True)
def add_differences(features, sign, entity, rel, numbers, scores):
    """Adds weight times activation for every number that an entity has.

    ``sign`` is 1 if the known entities are heads, -1 if they are tails;
    ``numbers`` are the weight, centre and width of each feature.
    """
    weight, centre, width = numbers
    known_ptr = features.known_ptr
    for q in range(len(entity)):
        for i in range(features.ptr[rel[q]], features.ptr[rel[q] + 1]):
            attribute = features.attribute[i]
            own = features.value[attribute][entity[q]]
            value = features.column_value[attribute]
            if math.isnan(own):
                continue
            for k in range(known_ptr[attribute], known_ptr[attribute + 1]):
                candidate = features.known[k]
                difference = sign * (own - value[candidate])
                scores[q, candidate] += weight[i] * activation(
                    difference, centre[i], width[i], features.use_sign
                )


@njit(cache=True, nogil=True)
def difference_gradient(features, sign, entity, rel, numbers, grad, grads):
    """Adds the gradients of weights, centres and widths to the rows of ``grads``."""
    weight, centre, width = numbers
    known_ptr = features.known_ptr
    for q in range(len(entity)):
        for i in range(features.ptr[rel[q]], features.ptr[rel[q] + 1]):
            attribute = features.attribute[i]
            own = features.value[attribute][entity[q]]
            value = features.column_value[attribute]
            if math.isnan(own):
                continue
            for k in range(known_ptr[attribute], known_ptr[attribute + 1]):
                candidate = features.known[k]
                difference = sign * (own - value[candidate])
                add_difference_gradient(
                    features.use_sign,
                    difference,
                    weight[i],
                    centre[i],
                    width[i],
                    grad[q, candidate],
                    grads,
                    i,
                )


@njit(cache=True, nogil=True)
def add_difference_gradient(
    use_sign, difference, weight, centre, width, grad, grads, i
):
    """Adds the gradients of one activation to column ``i``.

    Those of centre and width are added if ``grads`` has rows for them.
    """
    phi = activation(difference, centre, width, use_sign)
    grads[0, i] += grad * phi
    if len(grads) > 1:
        off = (difference - centre) / width
        grads[1, i] += grad * weight * phi * 2 * off / width
        grads[2, i] += grad * weight * phi * 2 * off * off / width
