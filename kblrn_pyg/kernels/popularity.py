"""The frequency of entities as heads and tails of relations."""

import numpy as np
from numba import njit

from kblrn_pyg.kernels.entity_features import find_feature


@njit(cache=True, nogil=True)
def usual_counts(features, code, entity):
    """Returns the number of entities that have a step over a code to an entity, and
    the number of those that have one to any."""
    every = features.code_ptr[-1] + code
    whole = features.holder_ptr[every + 1] - features.holder_ptr[every]
    feature = find_feature(features, code, entity)
    if feature < 0:
        return np.int64(0), whole
    return features.holder_ptr[feature + 1] - features.holder_ptr[feature], whole


@njit(cache=True, nogil=True)
def popularity(evidence, code, entity, leave_own):
    """Returns how usual a step over a code to an entity is, of those over the code."""
    if not leave_own:
        feature = find_feature(evidence.features, code, entity)
        return np.float32(0) if feature < 0 else evidence.popularity[feature]
    some, whole = usual_counts(evidence.features, code, entity)
    if some <= 1:  # whole may be one, too
        return np.float32(0)
    return np.float32((some - 1) / (whole - 1 + evidence.choices.shrinkage))


@njit(cache=True, nogil=True)
def add_popularity(evidence, side, asked, weight, columns, scores):
    """Adds the weighted popularity of entities to rows of scores.

    ``asked`` are the entity, the relation and the row of each query. ``weight`` has
    two numbers for each relation: that of the popularity of tails, and of heads.
    ``columns`` are the entities of scores; if there are fewer than scores, these are
    of all entities.
    """
    entity, rel, rows = asked
    is_all = len(columns) < scores.shape[1]
    place, usual = np.empty(0, np.int64), np.empty(0, np.float32)
    for q in range(len(entity)):
        code, row = 2 * rel[q] + side, scores[rows[q]]
        row += weight[rel[q], 1 - side] * popularity(
            evidence, code ^ 1, entity[q], False
        )
        if q == 0 or rel[q] != rel[q - 1]:
            place, usual = _usual_entities(evidence, code, columns, is_all)
        of_side = weight[rel[q], side]
        for i in range(len(place)):
            row[place[i]] += of_side * usual[i]


@njit(cache=True, nogil=True)
def popularity_gradient(evidence, side, asked, columns, grad, by_weight):
    """Adds the gradients of the two weights of each relation."""
    entity, rel, rows = asked
    is_all = len(columns) < grad.shape[1]
    place, usual = np.empty(0, np.int64), np.empty(0, np.float32)
    for q in range(len(entity)):
        code, row = 2 * rel[q] + side, grad[rows[q]]
        of_known = popularity(evidence, code ^ 1, entity[q], False)
        by_weight[rel[q], 1 - side] += _sum(row) * of_known
        if q == 0 or rel[q] != rel[q - 1]:
            place, usual = _usual_entities(evidence, code, columns, is_all)
        total = 0.0
        for i in range(len(place)):
            total += row[place[i]] * usual[i]
        by_weight[rel[q], side] += total


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz"})
def _sum(row):
    """Adds up numbers in any order, several at once."""
    total = 0.0
    for i in range(len(row)):
        total += row[i]
    return total


@njit(cache=True, nogil=True)
def usual_candidates(evidence, side, asked, candidates):
    """Returns how frequent the tail and the head of the triple of a candidate are."""
    entity, rel = asked
    value = np.zeros((*candidates.shape, 2), np.float32)
    for q in range(len(entity)):
        code = 2 * rel[q] + side
        of_known = popularity(evidence, code ^ 1, entity[q], False)
        for j in range(candidates.shape[1]):
            usual = popularity(evidence, code, candidates[q, j], False)
            value[q, j, side], value[q, j, 1 - side] = usual, of_known
    return value


@njit(cache=True, nogil=True)
def _usual_entities(evidence, code, columns, is_all):
    """Returns the columns that steps over a code lead to, and how frequent they are."""
    features = evidence.features
    low, high = features.code_ptr[code ^ 1], features.code_ptr[(code ^ 1) + 1]
    if is_all:
        return features.entity[low:high], evidence.popularity[low:high]
    place = np.empty(len(columns), np.int64)
    usual = np.empty(len(columns), np.float32)
    count = 0
    for i in range(len(columns)):
        feature = find_feature(features, code, columns[i])
        if feature >= 0:
            place[count], usual[count] = i, evidence.popularity[feature]
            count += 1
    return place[:count], usual[:count]
