"""The most confident rules for single triples, optionally without the triple itself."""

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import first_not_below
from kblrn_pyg.kernels.entity_features import find_feature, has_feature
from kblrn_pyg.kernels.evidence import NUM_WEIGHTS, USUAL, strength_of
from kblrn_pyg.kernels.popularity import popularity


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
def pair_evidence(evidence, facts, found, leave_own):
    """Returns the :obj:`NUM_WEIGHTS` numbers of each triple that are weighted.

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
    """Returns the strength of a path rule, optionally without its own example."""
    if not leave_own:
        return evidence.path_strength[rule]
    support = evidence.path_support[rule] - 1
    body = max(evidence.path_body[rule] - 1, 1)
    if support < 1:
        return np.float32(0)
    return strength_of(support, body, evidence.choices)
