"""Rules with constants: what entities that share a fact have in common besides.

A *feature* of an entity is a step from it over a code to some entity, or to any.
The former are the code groups of the steps back, whose neighbours are the entities
that have the feature; the latter come behind them, one for each code.

Numbers are features, too. Attributes have codes behind those of steps: that an entity
has any number is a feature like a step to any entity, and that the number lies in some
interval comes last of all. What rules predict are steps to entities.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import Adjacency, find_group


class Numbers(NamedTuple):
    r"""Which entities have numbers, and in which intervals.

    Args:
        ptr: Where the intervals of each attribute begin.
        holder_ptr: Where the entities with each attribute begin, and behind these,
            those with a number in each interval.
        holder: These entities, sorted.
    """

    ptr: np.ndarray
    holder_ptr: np.ndarray
    holder: np.ndarray


class Features(NamedTuple):
    r"""The features of entities.

    Args:
        code_ptr: Where the features with an entity begin whose steps *back* are
            over each code.
        number_ptr: Where the intervals of each attribute begin, among intervals.
        code: The code of each feature.
        entity: Its entity, or its place among the intervals of the attribute; -1 for
            any.
        holder_ptr: Where the entities of each feature begin.
        holder: The entities that have it, sorted.
        ptr: Where the features of each entity begin.
        feature: The features of entities, sorted.
    """

    code_ptr: np.ndarray
    number_ptr: np.ndarray
    code: np.ndarray
    entity: np.ndarray
    holder_ptr: np.ndarray
    holder: np.ndarray
    ptr: np.ndarray
    feature: np.ndarray


class ConstantRules(NamedTuple):
    r"""Rules from features to features with an entity, in two orders.

    Args:
        ptr: Where the rules of each feature begin.
        target: The feature that each rule predicts, sorted.
        support: The number of entities that have both.
        body: The number of entities that have the feature, and that of the target
            with any entity.
        strength: How far each rule is believed, see :class:`Choices`.
        back_ptr: Where the rules to each feature begin.
        source: The features that these come from, those of a kind side by side, the
            strongest of them first.
        back_strength: How far these are believed.
        counted: Whether each entity is counted.
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


def features_of(adjacency: Adjacency, numbers: Numbers | None = None) -> Features:
    r"""Lists the features of all entities.

    Args:
        adjacency (Adjacency): The facts.
        numbers (Numbers, optional): The numbers of entities. (default: :obj:`None`)
    """
    if numbers is None:
        zero = np.zeros(1, np.int64)
        numbers = Numbers(zero, zero, np.empty(0, np.int64))
    codes = np.arange(adjacency.num_codes)
    code = np.repeat(codes, np.diff(adjacency.code_ptr)) ^ 1
    size = np.diff(numbers.ptr)
    attributes = adjacency.num_codes + np.arange(len(size))
    within = np.arange(numbers.ptr[-1]) - np.repeat(numbers.ptr[:-1], size)
    any_of = np.full(len(codes) + len(attributes), -1)
    behind = adjacency.group_start[-1] + adjacency.code_ptr[1:]
    holder_ptr = np.append(adjacency.group_start, behind)
    # Who has a code at all are the entities of its groups.
    holder = np.append(adjacency.neighbour, adjacency.group_entity)
    holder_ptr = np.append(holder_ptr, len(holder) + numbers.holder_ptr[1:])
    holder = np.append(holder, numbers.holder)
    return Features(
        adjacency.code_ptr,
        numbers.ptr,
        np.concatenate([code, codes, attributes, np.repeat(attributes, size)]),
        np.concatenate([adjacency.group_entity, any_of, within]),
        holder_ptr,
        holder,
        *_transpose(holder_ptr, holder, adjacency.num_entities),
    )


@njit(cache=True, nogil=True)
def _transpose(ptr, value, size):
    """Returns which rows have each value, in order."""
    begin = np.zeros(size + 1, np.int64)
    for i in range(len(value)):
        begin[value[i] + 1] += 1
    begin = np.cumsum(begin)
    free, row_of = begin[:-1].copy(), np.empty(len(value), np.int64)
    for row in range(len(ptr) - 1):
        for i in range(ptr[row], ptr[row + 1]):
            row_of[free[value[i]]] = row
            free[value[i]] += 1
    return begin, row_of


@njit(cache=True, nogil=True)
def mine_features(features, rows, counted, least, count):
    """Finds the rules of some features.

    ``counted`` tells which entities count; ``count`` is zero for each feature, and
    is so again at the end. Returns the number of rules of each row, and the targets
    in order, supports and bodies of all.
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
def count_holders(features, counted):
    """Returns how many entities that count have each feature."""
    number = np.zeros(len(features.code), np.int32)
    for feature in range(len(number)):
        for i in range(features.holder_ptr[feature], features.holder_ptr[feature + 1]):
            number[feature] += counted[features.holder[i]]
    return number


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
def find_features(features, code, entity):
    """Returns the feature of each code and entity, which may be any, or -1.

    An interval stands in place of an entity if the code is that of an attribute.
    """
    num_codes, num_attributes = len(features.code_ptr) - 1, len(features.number_ptr) - 1
    intervals = features.code_ptr[-1] + num_codes + num_attributes
    found = np.empty(len(code), np.int64)
    for i in range(len(code)):
        if entity[i] < 0:
            found[i] = features.code_ptr[-1] + code[i]
        elif code[i] >= num_codes:
            begin = features.number_ptr[code[i] - num_codes]
            found[i] = intervals + begin + entity[i]
        else:
            found[i] = find_feature(features, code[i], entity[i])
    return found


@njit(cache=True, nogil=True)
def kinds_of(features):
    """Returns the kind of each feature: its code, or, if it is with any entity, that
    and the number of codes of steps; those of intervals are behind all of these."""
    num_groups, num_codes = features.code_ptr[-1], len(features.code_ptr) - 1
    num_attributes = len(features.number_ptr) - 1
    kind = features.code.astype(np.int32)
    kind[num_groups:] += num_codes
    kind[num_groups + num_codes + num_attributes :] += num_attributes
    return kind


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


@njit(cache=True, nogil=True)
def find_feature(features, code, entity):
    """Returns the feature that is a step over a code to an entity, or -1."""
    return find_group(features.code_ptr, features.entity, code ^ 1, entity)


@njit(cache=True, nogil=True)
def has_feature(features, entity, feature):
    """Tells whether an entity has a feature."""
    end = features.ptr[entity + 1]
    at = first_not_below(features.feature, features.ptr[entity], end, feature)
    return at < end and features.feature[at] == feature


@njit(cache=True, nogil=True)
def first_not_below(values, low, high, least):
    """Returns the first place of a value that is not below another one."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def longer(array, size, more):
    """Returns a copy with room for more values, twice as long as needed."""
    copy = np.empty(2 * (size + more), array.dtype)
    copy[:size] = array[:size]
    return copy
