"""The features of entities: facts and intervals of numbers.

A *feature* of an entity is a step from it over a code to a given entity, or to any
entity. The former are the code groups of the reverse steps, whose neighbours are the
entities that have the feature. The latter follow them, one for each code.

Numbers are features, too. The codes of attributes follow those of steps: the feature
that an entity has any number is like a step to any entity, and the features that the
number lies in an interval come last.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.adjacency import Adjacency, find_group, first_not_below


class Numbers(NamedTuple):
    r"""The entities with numbers, and their intervals.

    Args:
        ptr: Where the intervals of each attribute begin.
        holder_ptr: Where the entities with each attribute begin, followed by those
            with a number in each interval.
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
        entity: Its entity, or its position among the intervals of the attribute; -1
            for any.
        holder_ptr: Where the entities of each feature begin.
        holder: The entities that have it, sorted, as :meth:`id_type` has ids.
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


def id_type(num_entities: int) -> type:
    r"""Returns the type of entity ids for arrays that queries read often: shorter
    types take less time.

    Args:
        num_entities (int): The number of entities.
    """
    return np.uint16 if num_entities <= 1 << 16 else np.uint32


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
    holder = holder.astype(id_type(adjacency.num_entities))
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
def count_holders(features, counted):
    """Returns how many entities that count have each feature."""
    number = np.zeros(len(features.code), np.int32)
    for feature in range(len(number)):
        for i in range(features.holder_ptr[feature], features.holder_ptr[feature + 1]):
            number[feature] += counted[features.holder[i]]
    return number


@njit(cache=True, nogil=True)
def find_features(features, code, entity):
    """Returns the feature of each code and entity, which may be any, or -1.

    An interval takes the place of an entity if the code is that of an attribute.
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
    """Returns the kind of each feature: its code, or, for features with any entity,
    its code plus the number of codes of steps; the kinds of intervals follow all of
    these."""
    num_groups, num_codes = features.code_ptr[-1], len(features.code_ptr) - 1
    num_attributes = len(features.number_ptr) - 1
    kind = features.code.astype(np.int32)
    kind[num_groups:] += num_codes
    kind[num_groups + num_codes + num_attributes :] += num_attributes
    return kind


@njit(cache=True, nogil=True)
def find_feature(features, code, entity):
    """Returns the feature that is a step over a code to an entity, or -1."""
    return find_group(features.code_ptr, features.entity, code ^ 1, entity)


@njit(cache=True, nogil=True)
def has_feature(features, entity, feature):
    """Returns whether an entity has a feature."""
    end = features.ptr[entity + 1]
    at = first_not_below(features.feature, features.ptr[entity], end, feature)
    return at < end and features.feature[at] == feature
