"""The most confident rules, with constants or with paths, that support triples."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels import walking
from kblrn_pyg.kernels.constant_rules import ConstantRules, longer, rules_over
from kblrn_pyg.kernels.entity_features import Features, find_feature
from kblrn_pyg.kernels.walking import NO_LIMIT, first_steps, reach

# What there may be for a triple: the strongest rule with constants for its head, for
# its tail, and the strongest path.
HEAD, TAIL, PATH = range(3)
# The number of weights of a relation: of the rule for the head and for the tail, of
# either or the path, whichever is stronger, and of how usual the tail and the head are.
NUM_WEIGHTS = 6
USUAL = 4  # the first of the last two


class Choices(NamedTuple):
    r"""The parameters of evidence.

    The strength of a rule is :math:`\log (1 + c / \epsilon)` for the confidence
    :math:`c = \textrm{support} / (\textrm{body} + \beta)`.

    Args:
        least: The minimum support of a rule.
        shrinkage: The constant :math:`\beta`, which lowers the confidence of rules
            with few examples.
        floor: The constant :math:`\epsilon`, below which differences count little.
    """

    least: int
    shrinkage: float
    floor: float


class Evidence(NamedTuple):
    r"""All data that is needed to find evidence.

    Args:
        features: The features of entities.
        rules: The rules with constants.
        popularity: The fraction of the entities with a code that have each feature.
        path_support: The support of each path rule.
        path_body: The size of its body.
        path_strength: Its strength.
        choices: The parameters.
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
        found: The entities that there are rules of each kind for.
        walking: That of walks.
    """

    best: np.ndarray
    found: np.ndarray
    walking: walking.Scratch


def new_scratch(num_entities: int) -> Scratch:
    r"""Creates the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
    """
    return Scratch(
        np.zeros((3, num_entities), np.float32),
        # One more, where those are written that are there already. Numba looks at the
        # sign of an index, unless its type has none.
        np.empty((3, num_entities + 1), np.uint32),
        walking.new_scratch(num_entities),
    )


@njit(cache=True, nogil=True, inline="always")
def _note(c, strength, best, found, count):
    """Notes that a rule supports an entity, and counts entities."""
    found[count] = c
    count += best[c] == 0
    best[c] = max(best[c], strength)
    return count


@njit(cache=True, nogil=True)
def _from_known(evidence, code, known, best, found):
    """Notes the rules of features of ``known``, and counts entities."""
    features, rules = evidence.features, evidence.rules
    count = 0
    for i in range(features.ptr[known], features.ptr[known + 1]):
        begin, end = rules_over(rules, features.feature[i], code)
        for j in range(begin, end):
            count = _note(rules.answer[j], rules.strength[j], best, found, count)
    return count


@njit(cache=True, nogil=True)
def _from_candidates(evidence, target, best, found):
    """Notes the rules to a target, for all that they hold for, and counts entities."""
    features, rules = evidence.features, evidence.rules
    count = 0
    for j in range(rules.back_ptr[target], rules.back_ptr[target + 1]):
        f, strength = rules.source[j], rules.back_strength[j]
        for i in range(features.holder_ptr[f], features.holder_ptr[f + 1]):
            count = _note(features.holder[i], strength, best, found, count)
    return count


@njit(cache=True, nogil=True)
def _from_paths(evidence, kept, rel, known, scratch):
    """Notes the rules with paths, for all that they reach, and counts entities."""
    paths, walks, place = kept
    best, found = scratch.best[PATH], scratch.found[PATH]
    strength, count = evidence.path_strength, 0
    if place >= 0:
        for run in range(walks.run_ptr[place], walks.run_ptr[place + 1]):
            walk, of_rule = walks.walk[run], strength[walks.rule[run]]
            if of_rule == 0:
                continue
            for i in range(walks.ptr[walk], walks.ptr[walk + 1]):
                count = _note(walks.reached[i], of_rule, best, found, count)
        return count
    clock, stamp, out = scratch.walking
    bodies = paths.bodies
    for rule in range(bodies.ptr[rel], bodies.ptr[rel + 1]):
        group = first_steps(paths.adjacency, bodies, rule, known)
        if group < 0 or strength[rule] == 0:
            continue
        clock[0] += 1
        number = reach(paths, rule, known, group, clock[0], NO_LIMIT, stamp, out)
        for i in range(number):
            count = _note(out[i], strength[rule], best, found, count)
    return count


@njit(cache=True, nogil=True)
def _collect(evidence, kept, side, entity, rel, scratch):
    """Fills the working memory with all evidence of a query.

    Returns how many entities there is evidence of each kind for.
    """
    code, best, found = 2 * rel + side, scratch.best, scratch.found
    # Tails are asked for: the known entity is the head, and candidates are tails.
    known, other = HEAD + side, TAIL - side
    by_known = _from_known(evidence, code, entity, best[known], found[known])
    target, by_other = find_feature(evidence.features, code ^ 1, entity), 0
    if target >= 0:
        by_other = _from_candidates(evidence, target, best[other], found[other])
    by_path = _from_paths(evidence, kept, rel, entity, scratch)
    return (by_other, by_known, by_path) if side else (by_known, by_other, by_path)


@njit(cache=True, nogil=True)
def query_evidence(evidence, kept, side, asked, room, scratch):
    """Finds the evidence of queries for all entities.

    ``side`` is 0 if tails are asked for, 1 if heads are; ``room`` is the expected
    number of entries. Returns where the entries of each query begin, their
    entities, and three numbers for each.
    """
    paths, walks, places = kept
    entity, rel = asked
    ptr = np.zeros(len(entity) + 1, np.int64)
    column, value = np.empty(room, np.uint32), np.empty((room, 3), np.float32)
    size = 0
    for q in range(len(entity)):
        of_query = paths, walks, places[q]
        counts = _collect(evidence, of_query, side, entity[q], rel[q], scratch)
        most = counts[HEAD] + counts[TAIL] + counts[PATH]
        if size + most > len(column):
            column = longer(column, size, most)
            value = longer_rows(value, size, most)
        size = _take(scratch, counts, column, value, size)
        ptr[q + 1] = size
    return ptr, column[:size], value[:size]


@njit(cache=True, nogil=True)
def _take(scratch, counts, column, value, size):
    """Moves evidence from the working memory to entries, one for each entity."""
    first, second, third = scratch.best[HEAD], scratch.best[TAIL], scratch.best[PATH]
    for kind in range(3):
        found = scratch.found[kind]
        for i in range(counts[kind]):
            c = found[i]
            head, tail, path = first[c], second[c], third[c]
            # What has been taken because of another kind is overwritten.
            column[size] = c
            value[size, HEAD], value[size, TAIL], value[size, PATH] = head, tail, path
            size += max(head, tail, path) > 0
            first[c], second[c], third[c] = 0, 0, 0
    return size


@njit(cache=True, nogil=True)
def candidate_evidence(evidence, kept, side, asked, candidates, scratch):
    """Returns three numbers for each candidate of each query.

    Adjacent equal queries are processed once.
    """
    paths, walks, places = kept
    entity, rel = asked
    value = np.zeros((*candidates.shape, 3), np.float32)
    counts = 0, 0, 0
    for q in range(len(entity)):
        if q == 0 or entity[q] != entity[q - 1] or rel[q] != rel[q - 1]:
            _forget(scratch, counts)
            of_query = paths, walks, places[q]
            counts = _collect(evidence, of_query, side, entity[q], rel[q], scratch)
        for j in range(candidates.shape[1]):
            for kind in range(3):
                value[q, j, kind] = scratch.best[kind, candidates[q, j]]
    _forget(scratch, counts)
    return value


@njit(cache=True, nogil=True)
def _forget(scratch, counts):
    for kind in range(3):
        for i in range(counts[kind]):
            scratch.best[kind, scratch.found[kind, i]] = 0


@njit(cache=True, nogil=True)
def strength_of(support, body, choices):
    """Returns the strength of a rule."""
    confidence = support / (body + choices.shrinkage)
    return np.float32(math.log1p(confidence / choices.floor))


@njit(cache=True, nogil=True)
def add_evidence(found, rel, rows, weight, scores):
    """Adds weighted numbers to the scores of their columns."""
    ptr, column, value = found
    for q in range(len(rel)):
        own, row = weight[rel[q]], scores[rows[q]]
        # Read once, as writing to scores might change weights for all that is known.
        by_head, by_tail, by_first, by_second = own[0], own[1], own[2], own[3]
        for i in range(ptr[q], ptr[q + 1]):
            head, tail, path = value[i, HEAD], value[i, TAIL], value[i, PATH]
            either = by_first * max(head, path) + by_second * max(tail, path)
            row[column[i]] += by_head * head + by_tail * tail + either


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
