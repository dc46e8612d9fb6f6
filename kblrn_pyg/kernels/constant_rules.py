"""Rules with constants: what else entities that share a feature have in common.

Rules predict features that are steps to entities; see
:mod:`~kblrn_pyg.kernels.entity_features`.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import first_not_below
from kblrn_pyg.kernels.entity_features import Features, id_type


class ConstantRules(NamedTuple):
    r"""Rules from features to features with an entity, in two orders.

    Args:
        ptr: Where the rules of each feature begin.
        target: The feature that each rule predicts, sorted.
        support: The number of entities that have both.
        body: The number of entities that have the feature, and that of the target
            with any entity.
        strength: The strength of each rule, see :class:`Choices`.
        back_ptr: Where the rules to each feature begin.
        source: The features that these come from, those of a kind side by side, the
            strongest of them first.
        back_strength: The strengths of these.
        counted: Whether each entity is counted.
        code_ptr: Where the codes begin that the rules of each feature predict.
        back_code: The code of the steps back, of each of these, sorted.
        code_begin: Where the rules begin that predict each of these.
        answer: The entity of what each rule predicts, as :meth:`id_type` has ids.
    """

    ptr: np.ndarray
    target: np.ndarray
    support: np.ndarray
    body: np.ndarray
    strength: np.ndarray
    back_ptr: np.ndarray
    source: np.ndarray
    back_strength: np.ndarray
    counted: np.ndarray
    code_ptr: np.ndarray
    back_code: np.ndarray
    code_begin: np.ndarray
    answer: np.ndarray


@njit(cache=True, nogil=True)
def mine_features(features, rows, counted, least, count):
    """Finds the rules of some features.

    ``counted`` states which entities count; ``count`` is zero for each feature,
    also after the call. Returns the number of rules of each row, and the targets in
    order, supports and bodies of all.
    """
    num_groups, code = features.code_ptr[-1], features.code
    number = np.zeros(len(rows), np.int64)
    touched = _new_touched(count)
    target, support = np.empty(1024, np.int32), np.empty(1024, np.int32)
    body = np.empty(1024, np.int32)
    total = 0
    for i in range(len(rows)):
        row = rows[i]
        num_touched = _count_shared(features, row, counted, count, touched)
        if total + num_touched > len(target):
            target = longer(target, total, num_touched)
            support = longer(support, total, num_touched)
            body = longer(body, total, num_touched)
        kept = 0
        for j in range(num_touched):
            g = touched[j]
            # Having a code says nothing new about who has it.
            is_trivial = g == row or row == num_groups + code[g]
            if g < num_groups and count[g] >= least and not is_trivial:
                target[total + kept] = g
                kept += 1
        target[total : total + kept].sort()
        for j in range(total, total + kept):
            g = target[j]
            support[j], body[j] = count[g], count[num_groups + code[g]]
        for j in range(num_touched):
            count[touched[j]] = 0
        total += kept
        number[i] = kept
    return number, target[:total].copy(), support[:total].copy(), body[:total].copy()


@njit(cache=True, nogil=True)
def count_rules(features, rules, counted, count):
    """Counts the supports and the bodies of rules.

    ``rules`` are features, where the targets of each of them begin, and these. For
    ``counted`` and ``count``, see :meth:`mine_features`.
    """
    rows, ptr, target = rules
    num_groups, code = features.code_ptr[-1], features.code
    touched = _new_touched(count)
    support, body = np.empty(len(target), np.int32), np.empty(len(target), np.int32)
    for i in range(len(rows)):
        num_touched = _count_shared(features, rows[i], counted, count, touched)
        for j in range(ptr[i], ptr[i + 1]):
            g = target[j]
            support[j], body[j] = count[g], count[num_groups + code[g]]
        for j in range(num_touched):
            count[touched[j]] = 0
    return support, body


@njit(cache=True, nogil=True)
def _new_touched(count):
    # One more, where those are written that were touched already.
    return np.empty(len(count) + 1, np.int64)


@njit(cache=True, nogil=True)
def _count_shared(features, row, counted, count, touched):
    """Counts the features of the entities that have one, and lists them."""
    num_touched = 0
    for j in range(features.holder_ptr[row], features.holder_ptr[row + 1]):
        x = features.holder[j]
        if not counted[x]:
            continue
        for k in range(features.ptr[x], features.ptr[x + 1]):
            g = features.feature[k]
            touched[num_touched] = g
            num_touched += count[g] == 0
            count[g] += 1
    return num_touched


@njit(cache=True, nogil=True)
def stable_order(key, num_keys):
    """Returns the order of rows by their keys, equal ones as they are."""
    free = np.zeros(num_keys + 1, np.int64)
    for i in range(len(key)):
        free[key[i] + 1] += 1
    free = np.cumsum(free)
    order = np.empty(len(key), np.int64)
    for i in range(len(key)):
        order[free[key[i]]] = i
        free[key[i]] += 1
    return order


@njit(cache=True, nogil=True)
def turn_round(ptr, target, strength, kind):
    """Orders rules by their targets and their kinds, the strongest first.

    ``kind`` is that of each feature; features of a kind follow each other.
    """
    num_targets = len(kind)
    begin = np.zeros(num_targets + 1, np.int64)
    for i in range(len(target)):
        begin[target[i] + 1] += 1
    begin = np.cumsum(begin)
    free, source = begin[:-1].copy(), np.empty(len(target), np.int32)
    sure = np.empty(len(target), strength.dtype)
    for row in range(len(ptr) - 1):
        for i in range(ptr[row], ptr[row + 1]):
            place = free[target[i]]
            source[place], sure[place] = row, strength[i]
            free[target[i]] += 1
    for g in range(num_targets):
        low = begin[g]
        while low < begin[g + 1]:
            high = low + 1
            while high < begin[g + 1] and kind[source[high]] == kind[source[low]]:
                high += 1
            if high - low > 1:
                order = np.argsort(-sure[low:high], kind="mergesort")
                source[low:high] = source[low:high][order]
                sure[low:high] = sure[low:high][order]
            low = high
    return begin, source, sure


def answers_of(features: Features, target: np.ndarray) -> np.ndarray:
    r"""Returns the entities of features.

    Args:
        features (Features): The features of all entities.
        target (numpy.ndarray): Some of them, with an entity each.
    """
    answer: np.ndarray = np.empty(len(target), id_type(len(features.ptr) - 1))
    _look_up(features.entity, target, answer)
    return answer


@njit(cache=True, nogil=True)
def _look_up(values, index, out):
    for i in range(len(index)):
        out[i] = values[index[i]]


@njit(cache=True, nogil=True)
def predicted_codes(features, ptr, target):
    """Lists the codes that the rules of each feature predict.

    Returns where those of each feature begin, the codes of the steps back, and
    where the rules that predict them begin, followed by the number of rules.
    """
    code_ptr = np.zeros(len(ptr), np.int64)
    back_code, begin = np.empty(1024, np.int64), np.empty(1024, np.int64)
    size = 0
    for f in range(len(ptr) - 1):
        last = -1
        for j in range(ptr[f], ptr[f + 1]):
            back = features.code[target[j]] ^ 1
            if back == last:
                continue
            if size == len(back_code):
                back_code, begin = longer(back_code, size, 1), longer(begin, size, 1)
            back_code[size], begin[size] = back, j
            last = back
            size += 1
        code_ptr[f + 1] = size
    begin = longer(begin, size, 1)
    begin[size] = len(target)
    return code_ptr, back_code[:size].copy(), begin[: size + 1].copy()


@njit(cache=True, nogil=True)
def rules_over(rules, feature, code):
    """Returns where the rules of a feature begin and end that predict a code.

    There are far more rules than codes, and searching the rules themselves would
    cause scattered memory accesses.
    """
    end = rules.code_ptr[feature + 1]
    at = first_not_below(rules.back_code, rules.code_ptr[feature], end, code ^ 1)
    if at == end or rules.back_code[at] != code ^ 1:
        return 0, 0
    return rules.code_begin[at], rules.code_begin[at + 1]


@njit(cache=True, nogil=True)
def longer(array, size, more):
    """Returns a copy with room for more values, twice as long as needed."""
    copy = np.empty(2 * (size + more), array.dtype)
    copy[:size] = array[:size]
    return copy
