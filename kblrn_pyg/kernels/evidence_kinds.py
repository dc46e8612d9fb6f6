"""Evidence of different kinds, which is summed: the most confident rule of each kind.

The *kind* of a rule with constants is its body without the particular entity: the code
of the feature, or, for features with any entity, this code plus the number of codes.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import first_not_below
from kblrn_pyg.kernels.constant_rules import longer, rules_over
from kblrn_pyg.kernels.entity_features import find_feature, has_feature
from kblrn_pyg.kernels.evidence import strength_of

# Looking up the rules of a feature takes as long as passing this many rules.
_LOOKUP = 8
# The number of entries that a query usually has less than.
_ROOM = 1 << 14
# What of a fact: all of its evidence, what is left without it, or the difference.
WHOLE, LEFT, OWN = range(3)


class Kinds(NamedTuple):
    r"""The pairs of predicted codes and kinds that have any rule, each with a weight.

    Args:
        of: The kind of each feature. Features of a kind follow each other.
        ptr: Where the pairs of each predicted code begin.
        kind: The kind of each pair, sorted.
    """

    of: np.ndarray
    ptr: np.ndarray
    kind: np.ndarray


class KindEntries(NamedTuple):
    r"""The most confident rules of each kind that support the answers of queries.

    Args:
        ptr: Where the kinds of each query begin.
        pair: The pair that has the weight of each kind.
        end: Where its entries end; they begin where those of the previous one end.
        column: The column of each entry; the array may be longer than needed.
        strength: The strength of the most confident rule.
    """

    ptr: np.ndarray
    pair: np.ndarray
    end: np.ndarray
    column: np.ndarray
    strength: np.ndarray


class Scratch(NamedTuple):
    r"""The working memory of one thread; all of ``best`` is zero between calls.

    Args:
        best: The strength of the strongest rule of a kind, for each entity.
        found: The entities that have any.
        place: The column of each entity, -1 between calls.
        has: Whether an entity has each feature, nowhere between calls.
    """

    best: np.ndarray
    found: np.ndarray
    place: np.ndarray
    has: np.ndarray


def new_scratch(num_entities: int, num_features: int) -> Scratch:
    r"""Creates the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
        num_features (int): The number of features.
    """
    return Scratch(
        np.zeros(num_entities, np.float32),
        # One more, where those are written that are there already.
        np.empty(num_entities + 1, np.int64),
        np.full(num_entities, -1, np.int64),
        np.zeros(num_features, np.bool_),
    )


@njit(cache=True, nogil=True)
def find_pairs(features, rules, kind):
    """Lists the predicted codes and the kinds of rules, each pair once."""
    seen = np.full(len(features.code_ptr) - 1, -1, np.int64)
    codes, kinds = np.empty(1024, np.int32), np.empty(1024, np.int32)
    size = 0
    for f in range(len(kind)):
        for j in range(rules.ptr[f], rules.ptr[f + 1]):
            code = features.code[rules.target[j]]
            if seen[code] == kind[f]:
                continue
            seen[code] = kind[f]
            if size == len(codes):
                codes, kinds = longer(codes, size, 1), longer(kinds, size, 1)
            codes[size], kinds[size] = code, kind[f]
            size += 1
    return codes[:size], kinds[:size]


@njit(cache=True, nogil=True)
def _pair(kinds, code, kind):
    """Returns the pair of a predicted code and a kind, -1 if no rule has it."""
    end = kinds.ptr[code + 1]
    at = first_not_below(kinds.kind, kinds.ptr[code], end, kind)
    return at if at < end and kinds.kind[at] == kind else -1


@njit(cache=True, nogil=True)
def _note_known(evidence, code, features_of_kind, scratch):
    """Notes what some features of the known entity predict, and counts entities."""
    rules, best, found = evidence.rules, scratch.best, scratch.found
    count = 0
    for f in features_of_kind:
        begin, end = rules_over(rules, f, code)
        for j in range(begin, end):
            c = rules.answer[j]
            found[count] = c
            count += best[c] == 0
            best[c] = max(best[c], rules.strength[j])
    return count


@njit(cache=True, nogil=True)
def _note_candidates(evidence, first, end, scratch):
    """Notes who has what predicts a target by some rules, and counts entities."""
    features, rules = evidence.features, evidence.rules
    best, found = scratch.best, scratch.found
    count = 0
    for i in range(first, end):
        f, strength = rules.source[i], rules.back_strength[i]
        for k in range(features.holder_ptr[f], features.holder_ptr[f + 1]):
            c = features.holder[k]
            if best[c] == 0:  # the strongest of a kind comes first
                best[c] = strength
                found[count] = c
                count += 1
    return count


@njit(cache=True, nogil=True)
def _begin(evidence, code, entity):
    """Returns which features and which rules a query goes through."""
    features, rules = evidence.features, evidence.rules
    target = find_feature(features, code ^ 1, entity)
    first, last = np.int64(0), np.int64(0)
    if target >= 0:
        first, last = rules.back_ptr[target], rules.back_ptr[target + 1]
    return features.ptr[entity], features.ptr[entity + 1], first, last


@njit(cache=True, nogil=True)
def _next_kind(evidence, kinds, code, at, scratch):
    """Notes the most confident rules of the next kind, for all entities they support.

    Returns the pair that has the weight, -1 if no rule predicts, the number of
    entities, and where the next kind begins.
    """
    features, rules = evidence.features, evidence.rules
    i, end, j, last = at
    first = i
    if i < end:
        kind = kinds.of[features.feature[i]]
        while i < end and kinds.of[features.feature[i]] == kind:
            i += 1
        pair, count = _pair(kinds, code, kind), 0
        if pair >= 0:
            of_kind = features.feature[first:i]
            count = _note_known(evidence, code, of_kind, scratch)
        return pair, count, (i, end, j, last)
    first, kind = j, kinds.of[rules.source[j]]
    while j < last and kinds.of[rules.source[j]] == kind:
        j += 1
    count = _note_candidates(evidence, first, j, scratch)
    return _pair(kinds, code ^ 1, kind), count, (i, end, j, last)


@njit(cache=True, nogil=True)
def find_kinds(given, asked, columns, scratch):
    """Writes down the most confident rules of each kind, for all that they support.

    ``given`` are the evidence, its kinds, and the side: 0 if tails are asked for, 1
    if heads are. ``asked`` are the entity and the relation of each query. ``columns``
    are the column of each entity or -1, empty if every entity has its own; and a row
    of candidates for each query, empty if columns are the same for all; one that is
    there twice has its last column.
    """
    evidence, kinds, side = given
    entity, rel = asked
    column_of, candidates = columns
    best, found = scratch.best, scratch.found
    place = scratch.place if candidates.shape[1] else column_of
    ptr = np.zeros(len(entity) + 1, np.int64)
    pairs, ends = np.empty(64, np.int32), np.empty(64, np.int64)
    # Copying into longer arrays takes time, memory that nobody writes to does not.
    room = len(entity) * min(2 * len(best), _ROOM)
    column, strength = np.empty(room, np.int32), np.empty(room, np.float32)
    size = 0
    for q in range(len(entity)):
        ptr[q + 1], code = ptr[q], 2 * rel[q] + side
        for k in range(candidates.shape[1]):
            place[candidates[q, k]] = k
        at = _begin(evidence, code, entity[q])
        while at[0] < at[1] or at[2] < at[3]:
            pair, count, at = _next_kind(evidence, kinds, code, at, scratch)
            if size + count > len(column):
                column, strength = (
                    longer(column, size, count),
                    longer(strength, size, count),
                )
            for i in range(count):
                c = found[i]
                column[size] = place[c] if len(place) else c
                strength[size] = best[c]
                size += column[size] >= 0
                best[c] = 0
            if count:
                n = ptr[q + 1]
                if n == len(pairs):
                    pairs, ends = longer(pairs, n, 1), longer(ends, n, 1)
                pairs[n], ends[n] = pair, size
                ptr[q + 1] = n + 1
        for k in range(candidates.shape[1]):
            place[candidates[q, k]] = -1
    number = ptr[-1]
    return KindEntries(ptr, pairs[:number], ends[:number], column, strength)


@njit(cache=True, nogil=True)
def add_kinds(entries, weight, scores):
    """Adds the weighted strengths of the most confident rules of each kind to
    scores."""
    first = 0
    for q in range(len(scores)):
        row = scores[q]
        for g in range(entries.ptr[q], entries.ptr[q + 1]):
            of_pair = weight[entries.pair[g]]
            for i in range(first, entries.end[g]):
                row[entries.column[i]] += of_pair * entries.strength[i]
            first = entries.end[g]


@njit(cache=True, nogil=True)
def kinds_gradient(entries, grad):
    """Returns what is to be added to the gradients of the weights of ``pair``."""
    value = np.zeros(len(entries.pair))
    first = 0
    for q in range(len(grad)):
        row = grad[q]
        for g in range(entries.ptr[q], entries.ptr[q + 1]):
            for i in range(first, entries.end[g]):
                value[g] += row[entries.column[i]] * entries.strength[i]
            first = entries.end[g]
    return value


@njit(cache=True, nogil=True)
def add_up(pair, value, total):
    """Adds values to the totals of their pairs."""
    for i in range(len(pair)):
        total[pair[i]] += value[i]


@njit(cache=True, nogil=True)
def pair_kinds(evidence, kinds, facts, what, scratch):
    """Finds the most confident rule of each kind that supports each triple.

    ``what`` is :obj:`WHOLE`, :obj:`LEFT` or :obj:`OWN`. Returns where the entries of
    each triple begin, and their pairs, strengths and features; the first of the two
    ends is the head.
    """
    ptr = np.zeros(len(facts[0]) + 1, np.int64)
    pair, feature = np.empty(256, np.int32), np.empty(256, np.int32)
    entries, size = (pair, np.empty(256, np.float32), feature), 0
    given = evidence, kinds, what
    for i in range(len(facts[0])):
        h, r, t = facts[0][i], facts[1][i], facts[2][i]
        entries, size = _one_end(given, 2 * r, (h, t), scratch, entries, size)
        entries, size = _one_end(given, 2 * r + 1, (t, h), scratch, entries, size)
        ptr[i + 1] = size
    pair, strength, feature = entries
    return ptr, pair[:size], strength[:size], feature[:size]


@njit(cache=True, nogil=True)
def _one_end(given, code, ends, scratch, entries, size):
    """Writes what features of the first end say about a step to the other one."""
    evidence, kinds, what = given
    features, rules = evidence.features, evidence.rules
    known, other = ends
    target = find_feature(features, code, other)
    if target < 0:
        return entries, size
    is_fact = what != WHOLE and has_feature(features, known, target)
    if what == OWN and not is_fact:
        return entries, size
    mirror = -1
    if is_fact and known == other:  # the fact itself, from its other end
        mirror = find_feature(features, code ^ 1, known)
    leaves = is_fact and rules.counted[known]
    own = features.feature[features.ptr[known] : features.ptr[known + 1]]
    first, last = rules.back_ptr[target], rules.back_ptr[target + 1]
    by_own = _LOOKUP * len(own) <= last - first
    if not by_own:
        for f in own:
            scratch.has[f] = True
    kind, best, whole, left = -1, -1, np.float32(0), np.float32(0)
    # Both orders have the features of a kind side by side.
    for i in range(len(own) if by_own else last - first):
        f = own[i] if by_own else np.int64(rules.source[first + i])
        if not by_own and not scratch.has[f]:
            continue
        rule = _find_rule(rules, f, target) if by_own else -1
        if by_own and rule < 0:
            continue
        if kinds.of[f] != kind:
            value = _value(what, whole, left)
            if value != 0:
                pair = _pair(kinds, code, kind)
                entries, size = _write(pair, value, best, entries, size)
            kind, best, whole, left = kinds.of[f], -1, np.float32(0), np.float32(0)
        strength = rules.strength[rule] if by_own else rules.back_strength[first + i]
        if strength > whole:
            whole, best = strength, f
        # Leaving out an example makes no rule stronger.
        if strength > left and f != mirror:
            if leaves:
                rule = rule if by_own else _find_rule(rules, f, target)
                strength = _without_one(evidence, rule)
            left = max(left, strength)
    value = _value(what, whole, left)
    if value != 0:
        entries, size = _write(_pair(kinds, code, kind), value, best, entries, size)
    if not by_own:
        for f in own:
            scratch.has[f] = False
    return entries, size


@njit(cache=True, nogil=True)
def _find_rule(rules, feature, target):
    """Returns the rule from a feature to another one, or -1."""
    end = rules.ptr[feature + 1]
    at = first_not_below(rules.target, rules.ptr[feature], end, target)
    return at if at < end and rules.target[at] == target else -1


@njit(cache=True, nogil=True)
def _value(what, whole, left):
    if what == WHOLE:
        return whole
    return left if what == LEFT else whole - left


@njit(cache=True, nogil=True)
def _without_one(evidence, rule):
    """Returns the strength of a rule with one example less."""
    support, body = evidence.rules.support[rule] - 1, evidence.rules.body[rule] - 1
    if support < evidence.choices.least:
        return np.float32(0)
    return strength_of(support, body, evidence.choices)


@njit(cache=True, nogil=True)
def _write(pair, value, feature, entries, size):
    pairs, values, features = entries
    if size == len(pairs):
        pairs, values = longer(pairs, size, 1), longer(values, size, 1)
        features = longer(features, size, 1)
    pairs[size], values[size], features[size] = pair, value, feature
    return (pairs, values, features), size + 1
