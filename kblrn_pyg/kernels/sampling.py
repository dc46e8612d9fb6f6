"""Cross-entropy over sampled candidates, forward and backward, without large copies.

Every query has candidates of its own, so that the rows of the embedding table
are needed in random order, far too often for the cache. Visiting the candidates
entity by entity instead, one row of the table meets all queries that drew it;
what is looked up at random are the queries of one batch, which fit into the
cache of a core.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.recall import recall_asked
from kblrn_pyg.kernels.scoring import activation, add_difference_gradient
from kblrn_pyg.kernels.walking import first_steps, reach

# A stamp that no serial number reaches: an entity that nobody asks about.
_UNASKED = np.iinfo(np.int64).max

# How many equal queries share one walk, which bounds what it may reach.
_GROUP_SIZE = 8


class Visits(NamedTuple):
    r"""Which queries drew which entity.

    Args:
        ptr: Where the visits of each entity begin.
        place: The visits: places in the flat array of candidates.
        num_candidates: The number of candidates of a query.
    """

    ptr: np.ndarray
    place: np.ndarray
    num_candidates: int


@njit(cache=True, nogil=True)
def sort_visits(candidates, num_entities):
    """Sorts the places of all candidates by entity."""
    num_queries, num_candidates = candidates.shape
    ptr = np.zeros(num_entities + 1, np.int64)
    for q in range(num_queries):
        for j in range(num_candidates):
            ptr[candidates[q, j] + 1] += 1
    for entity in range(num_entities):
        ptr[entity + 1] += ptr[entity]
    free = ptr[:-1].copy()
    place = np.empty(num_queries * num_candidates, np.int64)
    for q in range(num_queries):
        for j in range(num_candidates):
            entity = candidates[q, j]
            place[free[entity]] = q * num_candidates + j
            free[entity] += 1
    return Visits(ptr, place, num_candidates)


@njit(cache=True, nogil=True, fastmath=True)
def _dot(a, b):
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _distance(a, b):
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += abs(a[k] - b[k])
    return total


@njit(cache=True, nogil=True)
def score_visits(begin, end, visits, query, table, by_distance, score):
    """Compares entities ``begin .. end - 1`` with the queries that drew them.

    By their dot product, or by their negative distance in the L1 norm.
    """
    for entity in range(begin, end):
        row = table[entity]
        for i in range(visits.ptr[entity], visits.ptr[entity + 1]):
            place = visits.place[i]
            of_query = query[place // visits.num_candidates]
            if by_distance:
                score[place] = -_distance(of_query, row)
            else:
                score[place] = _dot(of_query, row)


@njit(cache=True, nogil=True, fastmath=True)
def add_visit_gradients(
    begin, end, visits, query, table, by_distance, score_grad, query_grad, table_grad
):
    """Adds the gradients of what :meth:`score_visits` compares.

    Written without views of rows, whose reference counts would take as long as
    the sums.
    """
    size = query.shape[1]
    one, huge = query.dtype.type(1), query.dtype.type(1e30)
    for entity in range(begin, end):
        for i in range(visits.ptr[entity], visits.ptr[entity + 1]):
            place = visits.place[i]
            q, g = place // visits.num_candidates, score_grad[place]
            if by_distance:
                for k in range(size):
                    # The sign of the difference, twice as fast as comparing.
                    apart = (query[q, k] - table[entity, k]) * huge
                    towards = g * min(max(apart, -one), one)
                    query_grad[q, k] -= towards
                    table_grad[entity, k] += towards
            else:
                for k in range(size):
                    query_grad[q, k] += g * table[entity, k]
                for k in range(size):
                    table_grad[entity, k] += g * query[q, k]


@njit(cache=True, nogil=True)
def _walk(paths, entity, rel, weight, scratch):
    """Adds the weights of all bodies that reach a candidate to a dense row.

    What each rule reaches is kept, up to ``ends[rule - first]``, for the way
    back. Entities that are no candidates have a stamp that keeps them out.
    """
    adjacency, bodies, choices, _, _ = paths
    first_rule = bodies.ptr[rel]
    begin = 0
    for rule in range(first_rule, bodies.ptr[rel + 1]):
        group = first_steps(adjacency, bodies, rule, entity)
        if group >= 0:
            scratch.clock[0] += 1
            count = reach(
                adjacency,
                bodies,
                rule,
                entity,
                group,
                choices,
                scratch.clock[0],
                scratch.stamp,
                scratch.reached[begin:],
            )
            for i in range(begin, begin + count):
                scratch.row[scratch.reached[i]] += weight[rule]
            begin += count
        scratch.ends[rule - first_rule] = begin


@njit(cache=True, nogil=True)
def _recall(paths, place, rel, weight, scratch):
    """The same as :meth:`_walk`, for a query whose walk is kept."""
    _, bodies, _, walks, _ = paths
    first_rule = bodies.ptr[rel]
    run, last_run = walks.run_ptr[place], walks.run_ptr[place + 1]
    begin = 0
    for rule in range(first_rule, bodies.ptr[rel + 1]):
        if run < last_run and walks.rule[run] == rule:
            count = recall_asked(walks, run, scratch.stamp, scratch.reached[begin:])
            for i in range(begin, begin + count):
                scratch.row[scratch.reached[i]] += weight[rule]
            begin += count
            run += 1
        scratch.ends[rule - first_rule] = begin


@njit(cache=True, nogil=True)
def _walk_back(paths, rel, weight_grad, scratch):
    """Adds the gradients of the weights."""
    bodies = paths[1]
    first_rule = bodies.ptr[rel]
    begin = 0
    for rule in range(first_rule, bodies.ptr[rel + 1]):
        end = scratch.ends[rule - first_rule]
        for i in range(begin, end):
            weight_grad[rule] += scratch.grad_row[scratch.reached[i]]
        begin = end


@njit(cache=True, nogil=True)
def _add_numbers(features, sign, entity, rel, candidates, numbers, score):
    """Adds weight times activation for every number that a candidate has."""
    weight, centre, width = numbers
    for i in range(features.ptr[rel], features.ptr[rel + 1]):
        value = features.value[features.attribute[i]]
        own = value[entity]
        if math.isnan(own):
            continue
        for j in range(len(candidates)):
            difference = sign * (own - value[candidates[j]])
            if not math.isnan(difference):
                score[j] += weight[i] * activation(
                    difference, centre[i], width[i], features.use_sign
                )


@njit(cache=True, nogil=True)
def _add_number_gradients(
    features, sign, entity, rel, candidates, numbers, score_grad, grads
):
    weight, centre, width = numbers
    for i in range(features.ptr[rel], features.ptr[rel + 1]):
        value = features.value[features.attribute[i]]
        own = value[entity]
        if math.isnan(own):
            continue
        for j in range(len(candidates)):
            difference = sign * (own - value[candidates[j]])
            if not math.isnan(difference):
                add_difference_gradient(
                    features.use_sign,
                    difference,
                    weight[i],
                    centre[i],
                    width[i],
                    score_grad[j],
                    grads,
                    i,
                )


@njit(cache=True, nogil=True)
def _softmax_gradient(score, scale):
    """Turns scores into their gradients, the first being the true one's.

    Returns the loss.
    """
    top = -math.inf
    for j in range(len(score)):
        top = max(top, score[j])
    true_score = score[0]
    total = 0.0
    for j in range(len(score)):
        score[j] = math.exp(score[j] - top)
        total += score[j]
    for j in range(len(score)):
        score[j] *= scale / total
    score[0] -= scale
    return scale * (top + math.log(total) - true_score)


@njit(cache=True, nogil=True)
def cross_entropy_gradients(
    begin,
    end,
    score,
    candidates,
    entity,
    rel,
    scale,
    paths,
    path_weight,
    own_ptr,
    own_rule,
    features,
    sign,
    numbers,
    path_grad,
    number_grads,
    scratch,
):
    """Returns the loss of queries ``begin .. end - 1``.

    ``score`` has what the embeddings give, and has its own gradient in the end;
    those of all other weights are added up. Queries with the same entity and
    relation should stand together. The first candidate of each query is the
    true one, which may have been drawn once more. ``own_rule[own_ptr[q] :
    own_ptr[q + 1]]`` are rules that hold for it by the asked fact alone, and do
    not count.
    """
    has_paths = len(path_weight) > 0
    loss = 0.0
    q = begin
    while q < end:
        last = _last_of_group(entity, rel, q, end)
        e, r = entity[q], rel[q]
        if has_paths:
            _ask(candidates[q:last], scratch)
            place = paths[4][q]
            if place >= 0:
                _recall(paths, place, r, path_weight, scratch)
            else:
                _walk(paths, e, r, path_weight, scratch)
        for i in range(q, last):
            drawn, of_query = candidates[i], score[i]
            _add_numbers(features, sign, e, r, drawn, numbers, of_query)
            if has_paths:
                for j in range(len(drawn)):
                    of_query[j] += scratch.row[drawn[j]]
                if own_ptr[i] < own_ptr[i + 1]:
                    own = path_weight[own_rule[own_ptr[i] : own_ptr[i + 1]]].sum()
                    for j in range(len(drawn)):
                        if drawn[j] == drawn[0]:
                            of_query[j] -= own
            loss += _softmax_gradient(of_query, scale)
            _add_number_gradients(
                features, sign, e, r, drawn, numbers, of_query, number_grads
            )
            if has_paths:
                for j in range(len(drawn)):
                    scratch.grad_row[drawn[j]] += of_query[j]
                if own_ptr[i] < own_ptr[i + 1]:
                    by_own = of_query[drawn == drawn[0]].sum()
                    for k in range(own_ptr[i], own_ptr[i + 1]):
                        path_grad[own_rule[k]] -= by_own
        if has_paths:
            _walk_back(paths, r, path_grad, scratch)
            _forget(candidates[q:last], scratch)
        q = last
    return loss


@njit(cache=True, nogil=True)
def _last_of_group(entity, rel, first, end):
    """Returns where a group of equal queries ends; its paths are walked once."""
    last = first + 1
    end = min(end, first + _GROUP_SIZE)
    while last < end and entity[last] == entity[first] and rel[last] == rel[first]:
        last += 1
    return last


@njit(cache=True, nogil=True)
def _ask(candidates, scratch):
    for drawn in candidates:
        for c in drawn:
            scratch.stamp[c] = -1
            scratch.row[c] = 0
            scratch.grad_row[c] = 0


@njit(cache=True, nogil=True)
def _forget(candidates, scratch):
    for drawn in candidates:
        for c in drawn:
            scratch.stamp[c] = _UNASKED


class Scratch(NamedTuple):
    r"""The working memory of one thread.

    Args:
        row: What the paths give each candidate of a query.
        grad_row: The gradient of it.
        clock: The serial number of the last walk.
        stamp: The serial number of the walk that reached an entity last.
        reached: What the rules of a query reached.
        ends: Where that ends for each rule.
    """

    row: np.ndarray
    grad_row: np.ndarray
    clock: np.ndarray
    stamp: np.ndarray
    reached: np.ndarray
    ends: np.ndarray


def new_scratch(
    num_entities: int, num_rules: int, num_candidates: int, dtype: np.dtype
) -> Scratch:
    r"""Makes the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
        num_rules (int): The most rules that a relation has.
        num_candidates (int): The number of candidates of a query.
        dtype (numpy.dtype): The type of the scores.
    """
    most_asked = min(_GROUP_SIZE * num_candidates, num_entities)
    return Scratch(
        np.zeros(num_entities, dtype),
        np.zeros(num_entities, dtype),
        np.zeros(1, np.int64),
        np.full(num_entities, _UNASKED),
        np.empty(num_rules * most_asked + 1, np.int64),
        np.empty(num_rules, np.int64),
    )
