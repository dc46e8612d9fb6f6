"""The surest rules, with constants or with paths, that speak for triples."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels import walking
from kblrn_pyg.kernels.constant_rules import (
    ConstantRules,
    Features,
    find_feature,
    first_not_below,
    longer,
)
from kblrn_pyg.kernels.walking import NO_LIMIT, first_steps, reach

# What there may be for a triple: the strongest rule with constants for its head, for
# its tail, and the strongest path.
HEAD, TAIL, PATH = range(3)
# The number of weights of a relation: of the rule for the head and for the tail, of
# either or the path, whichever is stronger, and of how usual the tail and the head are.
NUM_WEIGHTS = 6
USUAL = 4  # the first of the last two


class Choices(NamedTuple):
    r"""What counts as evidence.

    The strength of a rule is :math:`\log (1 + c / \epsilon)` for the confidence
    :math:`c = \textrm{support} / (\textrm{body} + \beta)`.

    Args:
        least: The least support of a rule.
        shrinkage: What :math:`\beta` is: rules of few examples are believed less.
        floor: What :math:`\epsilon` is: below it, differences count little.
    """

    least: int
    shrinkage: float
    floor: float


class Evidence(NamedTuple):
    r"""All that is needed to look for evidence.

    Args:
        features: The features of entities.
        rules: The rules with constants.
        popularity: The fraction of the entities with a code that have each feature.
        path_support: The support of each path rule.
        path_body: The size of its body.
        path_strength: How far it is believed.
        choices: What counts.
    """

    features: Features
    rules: ConstantRules
    popularity: np.ndarray
    path_support: np.ndarray
    path_body: np.ndarray
    path_strength: np.ndarray
    choices: Choices


class Scratch(NamedTuple):
    r"""The working memory of one thread; all of ``best`` is zero between calls.

    Args:
        best: The strength of the strongest rule of each kind, for each entity.
        found: The entities that have any.
        walking: That of walks.
    """

    best: np.ndarray
    found: np.ndarray
    walking: walking.Scratch


def new_scratch(num_entities: int) -> Scratch:
    r"""Makes the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
    """
    return Scratch(
        np.zeros((num_entities, 3), np.float32),
        # One more, where those are written that are there already.
        np.empty(num_entities + 1, np.int64),
        walking.new_scratch(num_entities),
    )


@njit(cache=True, nogil=True)
def _from_known(evidence, code, known, kind, best, found):
    """Writes the strength of the strongest rules of features of ``known``."""
    features, rules = evidence.features, evidence.rules
    low, high = features.code_ptr[code ^ 1], features.code_ptr[(code ^ 1) + 1]
    count = 0
    for i in range(features.ptr[known], features.ptr[known + 1]):
        f = features.feature[i]
        end = rules.ptr[f + 1]
        j = first_not_below(rules.target, rules.ptr[f], end, low)
        while j < end and rules.target[j] < high:
            c = features.entity[rules.target[j]]
            found[count] = c
            count += best[c, kind] == 0
            best[c, kind] = max(best[c, kind], rules.strength[j])
            j += 1
    return count


@njit(cache=True, nogil=True)
def _from_candidates(evidence, target, kind, best, found, count):
    """Writes the strength of the strongest rules to a target, for all they hold for."""
    features, rules = evidence.features, evidence.rules
    for j in range(rules.back_ptr[target], rules.back_ptr[target + 1]):
        f, strength = rules.source[j], rules.back_strength[j]
        for i in range(features.holder_ptr[f], features.holder_ptr[f + 1]):
            c = features.holder[i]
            found[count] = c
            count += best[c, kind] == 0 and best[c, TAIL - kind] == 0
            best[c, kind] = max(best[c, kind], strength)
    return count


@njit(cache=True, nogil=True)
def _from_paths(evidence, kept, rel, known, scratch, count):
    """Writes the strength of the strongest paths, for all that they reach."""
    paths, walks, place = kept
    clock, stamp, out = scratch.walking
    best, found, strength = scratch.best, scratch.found, evidence.path_strength
    if place >= 0:
        for run in range(walks.run_ptr[place], walks.run_ptr[place + 1]):
            walk, of_rule = walks.walk[run], strength[walks.rule[run]]
            for i in range(walks.ptr[walk], walks.ptr[walk + 1]):
                count = _note_path(walks.reached[i], of_rule, best, found, count)
        return count
    bodies = paths.bodies
    for rule in range(bodies.ptr[rel], bodies.ptr[rel + 1]):
        group = first_steps(paths.adjacency, bodies, rule, known)
        if group < 0:
            continue
        clock[0] += 1
        number = reach(paths, rule, known, group, clock[0], NO_LIMIT, stamp, out)
        for i in range(number):
            count = _note_path(out[i], strength[rule], best, found, count)
    return count


@njit(cache=True, nogil=True, inline="always")
def _note_path(c, strength, best, found, count):
    found[count] = c
    is_new = best[c, HEAD] == 0 and best[c, TAIL] == 0 and best[c, PATH] == 0
    best[c, PATH] = max(best[c, PATH], strength)
    return count + (is_new and strength > 0)


@njit(cache=True, nogil=True)
def _collect(evidence, kept, side, entity, rel, scratch):
    """Fills the working memory with all evidence of a query, and counts entities."""
    best, found = scratch.best, scratch.found
    code = 2 * rel + side
    # Tails are asked for: the known entity is the head, and candidates are tails.
    known, other = HEAD + side, TAIL - side
    count = _from_known(evidence, code, entity, known, best, found)
    target = find_feature(evidence.features, code ^ 1, entity)
    if target >= 0:
        count = _from_candidates(evidence, target, other, best, found, count)
    return _from_paths(evidence, kept, rel, entity, scratch, count)


@njit(cache=True, nogil=True)
def _forget(scratch, count):
    for i in range(count):
        for kind in range(3):
            scratch.best[scratch.found[i], kind] = 0


@njit(cache=True, nogil=True)
def query_evidence(evidence, kept, side, asked, scratch):
    """Finds the evidence of queries for all entities.

    ``side`` is 0 if tails are asked for, 1 if heads are. Returns where the entries of
    each query begin, their entities, and three numbers for each.
    """
    paths, walks, places = kept
    entity, rel = asked
    ptr = np.zeros(len(entity) + 1, np.int64)
    column, value = np.empty(1024, np.int64), np.empty((1024, 3), np.float32)
    size = 0
    for q in range(len(entity)):
        of_query = paths, walks, places[q]
        count = _collect(evidence, of_query, side, entity[q], rel[q], scratch)
        if size + count > len(column):
            column = longer(column, size, count)
            value = longer_rows(value, size, count)
        for i in range(count):
            c = scratch.found[i]
            column[size] = c
            for kind in range(3):
                value[size, kind] = scratch.best[c, kind]
            size += 1
        _forget(scratch, count)
        ptr[q + 1] = size
    return ptr, column[:size], value[:size]


@njit(cache=True, nogil=True)
def candidate_evidence(evidence, kept, side, asked, candidates, scratch):
    """Returns three numbers for each candidate of each query.

    Equal queries that stand together are looked at once.
    """
    paths, walks, places = kept
    entity, rel = asked
    value = np.zeros((*candidates.shape, 3), np.float32)
    count = 0
    for q in range(len(entity)):
        if q == 0 or entity[q] != entity[q - 1] or rel[q] != rel[q - 1]:
            _forget(scratch, count)
            of_query = paths, walks, places[q]
            count = _collect(evidence, of_query, side, entity[q], rel[q], scratch)
        for j in range(candidates.shape[1]):
            for kind in range(3):
                value[q, j, kind] = scratch.best[candidates[q, j], kind]
    _forget(scratch, count)
    return value


@njit(cache=True, nogil=True)
def strength_of(support, body, choices):
    """Returns how far a rule is believed."""
    confidence = support / (body + choices.shrinkage)
    return np.float32(math.log1p(confidence / choices.floor))


@njit(cache=True, nogil=True)
def add_evidence(found, rel, rows, weight, scores):
    """Adds weighted numbers to the scores of their columns."""
    ptr, column, value = found
    for q in range(len(rel)):
        own, row = weight[rel[q]], scores[rows[q]]
        for i in range(ptr[q], ptr[q + 1]):
            head, tail, path = value[i, HEAD], value[i, TAIL], value[i, PATH]
            either = own[2] * max(head, path) + own[3] * max(tail, path)
            row[column[i]] += own[0] * head + own[1] * tail + either


@njit(cache=True, nogil=True)
def evidence_gradient(found, rel, rows, grad, by_weight):
    """Adds the gradients of the weights of evidence of each relation."""
    ptr, column, value = found
    for q in range(len(rel)):
        by_head, by_tail, by_first, by_second = 0.0, 0.0, 0.0, 0.0
        row = grad[rows[q]]
        for i in range(ptr[q], ptr[q + 1]):
            one = row[column[i]]
            head, tail, path = value[i, HEAD], value[i, TAIL], value[i, PATH]
            by_head += one * head
            by_tail += one * tail
            by_first += one * max(head, path)
            by_second += one * max(tail, path)
        own = by_weight[rel[q]]
        own[0] += by_head
        own[1] += by_tail
        own[2] += by_first
        own[3] += by_second


@njit(cache=True, nogil=True)
def longer_rows(array, size, more):
    """Returns a copy of the first rows, with room for more."""
    longer = np.empty((2 * (size + more), array.shape[1]), array.dtype)
    longer[:size] = array[:size]
    return longer
