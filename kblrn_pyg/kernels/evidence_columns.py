"""The most confident rules for selected entities, shared by all queries of a batch.

Most rules of a large knowledge base predict entities that no query of a batch needs.
Therefore, the features of the needed entities (the columns) are listed once per batch,
and the rules of a query are looked up in this list.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import first_not_below
from kblrn_pyg.kernels.columns import reach_columns
from kblrn_pyg.kernels.constant_rules import longer, rules_over
from kblrn_pyg.kernels.entity_features import Features, find_feature, has_feature
from kblrn_pyg.kernels.evidence import HEAD, PATH, TAIL, longer_rows

# Looking up whether an entity has a feature takes as long as marking this many.
_LOOKUP = 8


class Columns(NamedTuple):
    r"""The entities of columns, and their features.

    Args:
        entity: The entity of each column.
        column_of: The column of each entity, -1 for none.
        feature: The features that any of them has, sorted.
        ptr: Where the columns that have each of these begin.
        holder: These columns.
    """

    entity: np.ndarray
    column_of: np.ndarray
    feature: np.ndarray
    ptr: np.ndarray
    holder: np.ndarray


def features_of_columns(
    features: Features, entity: np.ndarray, column_of: np.ndarray
) -> Columns:
    r"""Lists the features of the entities of columns.

    Args:
        features (Features): The features of all entities.
        entity (numpy.ndarray): The entity of each column.
        column_of (numpy.ndarray): The column of each entity, -1 for none.
    """
    feature, column = _flat(features, entity)
    order = np.argsort(feature, kind="stable")
    found, first = np.unique(feature[order], return_index=True)
    return Columns(
        entity, column_of, found, np.append(first, len(order)), column[order]
    )


@njit(cache=True, nogil=True)
def _flat(features, entity):
    """Lists the features of each column, one by one, and the column of each."""
    total = 0
    for c in entity:
        total += features.ptr[c + 1] - features.ptr[c]
    feature, column = np.empty(total, np.int64), np.empty(total, np.int64)
    size = 0
    for k in range(len(entity)):
        for i in range(features.ptr[entity[k]], features.ptr[entity[k] + 1]):
            feature[size], column[size] = features.feature[i], k
            size += 1
    return feature, column


@njit(cache=True, nogil=True)
def column_evidence(evidence, reach, side, asked, columns, mark):
    """Finds the evidence of queries for the entities of columns.

    ``reach`` are the paths and their last steps to columns. ``side`` is 0 if tails
    are asked for, 1 if heads are; ``asked`` are the entity and the relation of each
    query, equal ones and those of a relation side by side. ``mark`` is false for
    each feature, also after the call. Returns where the entries of each query
    begin, their columns, and three numbers for each.
    """
    entity, rel = asked
    wanted = columns.entity
    best = np.zeros((len(wanted), 3), np.float32)
    stamp, out = np.full(len(wanted), -1), np.empty(len(wanted), np.int64)
    serial, target = 0, np.empty(0, np.int64)
    ptr = np.zeros(len(entity) + 1, np.int64)
    column, value, size = np.empty(1024, np.int64), np.empty((1024, 3), np.float32), 0
    num_rules = 0
    for q in range(len(entity)):
        code = 2 * rel[q] + side
        if size + len(wanted) > len(column):
            column = longer(column, size, len(wanted))
            value = longer_rows(value, size, len(wanted))
        if q > 0 and entity[q] == entity[q - 1] and rel[q] == rel[q - 1]:
            last = size - ptr[q - 1]
            column[size : size + last] = column[ptr[q - 1] : size]
            value[size : size + last] = value[ptr[q - 1] : size]
            size += last
            ptr[q + 1] = size
            continue
        if q == 0 or rel[q] != rel[q - 1]:
            target, num_rules = _targets(evidence, code, wanted)
        given = evidence, code, entity[q], best
        of_columns = columns.column_of, target, num_rules
        _from_known(given, HEAD + side, of_columns, mark)
        _from_candidates(given, TAIL - side, columns)
        paths = reach, rel[q], evidence.path_strength
        serial = _from_paths(paths, entity[q], best, serial, stamp, out)
        size = _take(best, column, value, size)
        ptr[q + 1] = size
    return ptr, column[:size], value[:size]


@njit(cache=True, nogil=True)
def _targets(evidence, code, wanted):
    """Returns the feature that each column is predicted by, and their rules' number."""
    target, total = np.empty(len(wanted), np.int64), 0
    back_ptr = evidence.rules.back_ptr
    for k in range(len(wanted)):
        target[k] = find_feature(evidence.features, code, wanted[k])
        if target[k] >= 0:
            total += back_ptr[target[k] + 1] - back_ptr[target[k]]
    return target, total


@njit(cache=True, nogil=True)
def _from_known(given, kind, of_columns, mark):
    """Writes the strength of the strongest rules of features of the known entity.

    Either the rules of these or the rules to the targets of columns are gone through,
    whichever are fewer; the features of hubs are many themselves.
    """
    evidence, code, known, best = given
    features, rules = evidence.features, evidence.rules
    column_of, target, num_rules = of_columns
    own = features.feature[features.ptr[known] : features.ptr[known + 1]]
    if _LOOKUP * num_rules <= len(own):
        for k in range(len(target)):
            for j in _rules_to(rules, target[k]):
                if has_feature(features, known, rules.source[j]):
                    best[k, kind] = max(best[k, kind], rules.back_strength[j])
        return
    begin, end, total = _rules_over(rules, own, code)
    if total <= num_rules:
        for i in range(len(own)):
            for j in range(begin[i], end[i]):
                k = column_of[rules.answer[j]]
                if k >= 0:
                    best[k, kind] = max(best[k, kind], rules.strength[j])
        return
    for f in own:
        mark[f] = True
    for k in range(len(target)):
        for j in _rules_to(rules, target[k]):
            if mark[rules.source[j]]:
                best[k, kind] = max(best[k, kind], rules.back_strength[j])
    for f in own:
        mark[f] = False


@njit(cache=True, nogil=True)
def _rules_to(rules, target):
    """Returns the positions of the rules to a target, none if there is no target."""
    if target < 0:
        return range(0, 0)
    return range(rules.back_ptr[target], rules.back_ptr[target + 1])


@njit(cache=True, nogil=True)
def _rules_over(rules, own, code):
    """Returns where the rules of features begin and end that predict a code."""
    begin, end = np.empty(len(own), np.int64), np.empty(len(own), np.int64)
    total = 0
    for i in range(len(own)):
        begin[i], end[i] = rules_over(rules, own[i], code)
        total += end[i] - begin[i]
    return begin, end, total


@njit(cache=True, nogil=True)
def _from_candidates(given, kind, columns):
    """Writes the strength of the strongest rules of features of columns."""
    evidence, code, known, best = given
    rules = evidence.rules
    target = find_feature(evidence.features, code ^ 1, known)
    if target < 0:
        return
    for j in range(rules.back_ptr[target], rules.back_ptr[target + 1]):
        f, strength = rules.source[j], rules.back_strength[j]
        at = first_not_below(columns.feature, 0, len(columns.feature), f)
        if at == len(columns.feature) or columns.feature[at] != f:
            continue
        for i in range(columns.ptr[at], columns.ptr[at + 1]):
            k = columns.holder[i]
            best[k, kind] = max(best[k, kind], strength)


@njit(cache=True, nogil=True)
def _from_paths(given, known, best, serial, stamp, out):
    """Writes the strength of the strongest paths to columns, and counts bodies."""
    (paths, arrivals), rel, strength = given
    for rule in range(paths.bodies.ptr[rel], paths.bodies.ptr[rel + 1]):
        count = reach_columns(paths, arrivals, rule, known, serial, stamp, out)
        serial += 1
        for i in range(count):
            k = out[i]
            best[k, PATH] = max(best[k, PATH], strength[rule])
    return serial


@njit(cache=True, nogil=True)
def _take(best, column, value, size):
    """Moves the columns that have any evidence to entries."""
    for k in range(len(best)):
        if best[k, HEAD] > 0 or best[k, TAIL] > 0 or best[k, PATH] > 0:
            column[size] = k
            for kind in range(3):
                value[size, kind] = best[k, kind]
                best[k, kind] = 0
            size += 1
    return size
