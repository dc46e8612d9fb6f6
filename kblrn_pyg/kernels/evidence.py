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
    has_feature,
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
def best_rule(evidence, code, known, candidate, leave_own):
    """Returns the strongest rule by which ``known`` has a step to a candidate.

    That is its feature, its support, its body and its strength; the feature is -1
    if there is none. If ``leave_own``, ``known`` is not an example of itself.
    """
    features, rules = evidence.features, evidence.rules
    target = find_feature(features, code, candidate)
    found = -1, 0, 0, np.float32(0)
    if target < 0:
        return found
    begin, end = features.ptr[known], features.ptr[known + 1]
    leaves = leave_own and has_feature(features, known, target)
    mirror = -1
    if leaves and known == candidate:
        mirror = find_feature(features, code ^ 1, known)
    first, last = rules.back_ptr[target], rules.back_ptr[target + 1]
    if end - begin <= last - first:
        for i in range(begin, end):
            f = features.feature[i]
            if f != mirror:
                found = _stronger(evidence, f, target, known, leaves, found)
        return found
    for i in range(first, last):
        # Leaving out an example makes no rule stronger.
        if rules.back_strength[i] <= found[3]:
            continue
        f = rules.source[i]
        if f != mirror and has_feature(features, known, f):
            found = _stronger(evidence, f, target, known, leaves, found)
    return found


@njit(cache=True, nogil=True)
def _stronger(evidence, feature, target, known, leaves, found):
    """Returns a rule if there is one that is stronger than what was found, or that."""
    rules, choices = evidence.rules, evidence.choices
    end = rules.ptr[feature + 1]
    j = first_not_below(rules.target, rules.ptr[feature], end, target)
    if j == end or rules.target[j] != target:
        return found
    support, body, strength = rules.support[j], rules.body[j], rules.strength[j]
    if leaves and rules.counted[known]:
        support, body = support - 1, body - 1
        if support < choices.least:
            return found
        strength = strength_of(support, body, choices)
    if strength > found[3]:
        return np.int64(feature), np.int64(support), np.int64(body), strength
    return found


@njit(cache=True, nogil=True)
def strength_of(support, body, choices):
    """Returns how far a rule is believed."""
    confidence = support / (body + choices.shrinkage)
    return np.float32(math.log1p(confidence / choices.floor))


@njit(cache=True, nogil=True)
def popularity(evidence, code, entity, leave_own):
    """Returns how usual a step over a code to an entity is, of those over the code."""
    features = evidence.features
    feature = find_feature(features, code, entity)
    if feature < 0:
        return np.float32(0)
    if not leave_own:
        return evidence.popularity[feature]
    every = features.code_ptr[-1] + code
    some = features.holder_ptr[feature + 1] - features.holder_ptr[feature] - 1
    whole = features.holder_ptr[every + 1] - features.holder_ptr[every] - 1
    return np.float32(some / (whole + evidence.choices.shrinkage))


@njit(cache=True, nogil=True)
def pair_evidence(evidence, facts, found, leave_own):
    """Returns what is weighed of each triple, :obj:`NUM_WEIGHTS` numbers.

    ``found`` are where the path rules that hold for each triple begin, and these. If
    ``leave_own``, a triple that is a fact is not an example of itself.
    """
    features = evidence.features
    ptr, rules = found
    value = np.zeros((len(facts[0]), NUM_WEIGHTS), np.float32)
    for i in range(len(value)):
        h, r, t = facts[0][i], facts[1][i], facts[2][i]
        own = find_feature(features, 2 * r, t)
        is_own = leave_own and own >= 0 and has_feature(features, h, own)
        head = best_rule(evidence, 2 * r, h, t, leave_own)[3]
        tail = best_rule(evidence, 2 * r + 1, t, h, leave_own)[3]
        path = np.float32(0)
        for k in range(ptr[i], ptr[i + 1]):
            path = max(path, path_strength(evidence, rules[k], is_own))
        value[i, 0], value[i, 1] = head, tail
        value[i, 2], value[i, 3] = max(head, path), max(tail, path)
        value[i, USUAL] = popularity(evidence, 2 * r, t, is_own)
        value[i, USUAL + 1] = popularity(evidence, 2 * r + 1, h, is_own)
    return value


@njit(cache=True, nogil=True)
def own_evidence(evidence, facts, found, found_left):
    """Returns what each fact adds to its own numbers, :obj:`NUM_WEIGHTS` of them.

    It is the difference of :meth:`pair_evidence` with and without ``leave_own``, in
    half the time. ``found`` and ``found_left`` are where the path rules that hold for
    each triple begin, and these: all, and those that hold without the triple.
    """
    features = evidence.features
    value = np.zeros((len(facts[0]), NUM_WEIGHTS), np.float32)
    for i in range(len(value)):
        h, r, t = facts[0][i], facts[1][i], facts[2][i]
        own = find_feature(features, 2 * r, t)
        if own < 0 or not has_feature(features, h, own):
            continue
        head, head_left = _best_strengths(evidence, 2 * r, h, t)
        tail, tail_left = _best_strengths(evidence, 2 * r + 1, t, h)
        path, path_left = np.float32(0), np.float32(0)
        for k in range(found[0][i], found[0][i + 1]):
            path = max(path, path_strength(evidence, found[1][k], False))
        for k in range(found_left[0][i], found_left[0][i + 1]):
            path_left = max(path_left, path_strength(evidence, found_left[1][k], True))
        value[i, 0], value[i, 1] = head - head_left, tail - tail_left
        value[i, 2] = max(head, path) - max(head_left, path_left)
        value[i, 3] = max(tail, path) - max(tail_left, path_left)
        for place, code, entity in ((USUAL, 2 * r, t), (USUAL + 1, 2 * r + 1, h)):
            usual = popularity(evidence, code, entity, False)
            value[i, place] = usual - popularity(evidence, code, entity, True)
    return value


@njit(cache=True, nogil=True)
def _best_strengths(evidence, code, known, candidate):
    """Returns the strength of the strongest rule by which ``known`` has a step to a
    candidate that it does have, and of the strongest if that is no example."""
    features, rules = evidence.features, evidence.rules
    target = find_feature(features, code, candidate)
    mirror = find_feature(features, code ^ 1, known) if known == candidate else -1
    begin, end = features.ptr[known], features.ptr[known + 1]
    first, last = rules.back_ptr[target], rules.back_ptr[target + 1]
    by_own = end - begin <= last - first
    whole, left = np.float32(0), np.float32(0)
    for i in range(end - begin if by_own else last - first):
        # Leaving out an example makes no rule stronger.
        if not by_own and rules.back_strength[first + i] <= left:
            continue
        f = features.feature[begin + i] if by_own else np.int64(rules.source[first + i])
        if not by_own and not has_feature(features, known, f):
            continue
        stop = rules.ptr[f + 1]
        j = first_not_below(rules.target, rules.ptr[f], stop, target)
        if j == stop or rules.target[j] != target:
            continue
        strength = rules.strength[j]
        whole = max(whole, strength)
        if f == mirror or strength <= left:
            continue
        if rules.counted[known]:
            if rules.support[j] - 1 < evidence.choices.least:
                continue
            strength = strength_of(
                rules.support[j] - 1, rules.body[j] - 1, evidence.choices
            )
        left = max(left, strength)
    return whole, left


@njit(cache=True, nogil=True)
def path_strength(evidence, rule, leave_own):
    """Returns how far a path rule is believed, maybe by its other examples."""
    if not leave_own:
        return evidence.path_strength[rule]
    support = evidence.path_support[rule] - 1
    body = max(evidence.path_body[rule] - 1, 1)
    if support < 1:
        return np.float32(0)
    return strength_of(support, body, evidence.choices)


@njit(cache=True, nogil=True)
def add_popularity(evidence, side, asked, weight, columns, scores):
    """Adds the weighted popularity of entities to rows of scores.

    ``asked`` are the entity, the relation and the row of each query. ``weight`` has
    two numbers for each relation: that of the popularity of tails, and of heads.
    ``columns`` are the entities of scores, none if these are all.
    """
    entity, rel, rows = asked
    place, usual = np.empty(0, np.int64), np.empty(0, np.float32)
    for q in range(len(entity)):
        code, row = 2 * rel[q] + side, scores[rows[q]]
        row += weight[rel[q], 1 - side] * popularity(
            evidence, code ^ 1, entity[q], False
        )
        if q == 0 or rel[q] != rel[q - 1]:
            place, usual = _usual_entities(evidence, code, columns)
        of_side = weight[rel[q], side]
        for i in range(len(place)):
            row[place[i]] += of_side * usual[i]


@njit(cache=True, nogil=True)
def popularity_gradient(evidence, side, asked, columns, grad, by_weight):
    """Adds the gradients of the two weights of each relation."""
    entity, rel, rows = asked
    place, usual = np.empty(0, np.int64), np.empty(0, np.float32)
    for q in range(len(entity)):
        code, row = 2 * rel[q] + side, grad[rows[q]]
        of_known = popularity(evidence, code ^ 1, entity[q], False)
        by_weight[rel[q], 1 - side] += np.sum(row) * of_known
        if q == 0 or rel[q] != rel[q - 1]:
            place, usual = _usual_entities(evidence, code, columns)
        total = 0.0
        for i in range(len(place)):
            total += row[place[i]] * usual[i]
        by_weight[rel[q], side] += total


@njit(cache=True, nogil=True)
def usual_candidates(evidence, side, asked, candidates):
    """Returns how usual the tail and the head of the triple of a candidate are."""
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
def _usual_entities(evidence, code, columns):
    """Returns the columns that steps over a code lead to, and how usual they are."""
    features = evidence.features
    low, high = features.code_ptr[code ^ 1], features.code_ptr[(code ^ 1) + 1]
    if len(columns) == 0:
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
