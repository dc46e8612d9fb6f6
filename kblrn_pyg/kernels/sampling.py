"""Cross-entropy over sampled candidates, forward and backward in one pass.

The table of candidates fits into the cache of a core, so that gathering,
multiplying and scattering in one go is several times faster than doing them
one after the other over large temporary arrays.
"""

import math

import numpy as np
from numba import njit

from kblrn_pyg.kernels.scoring import activation, add_difference_gradient
from kblrn_pyg.kernels.walking import reach

# How many reached entities of one query are kept for the way back.
_MAX_REACHED = 1 << 18


@njit(cache=True, nogil=True, fastmath=True)
def _dot(a, b):
    total = a.dtype.type(0)
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _add_scaled(target, factor, source):
    for k in range(len(target)):
        target[k] += factor * source[k]


@njit(cache=True, nogil=True)
def _walk(paths, entity, rel, weight, row, clock, stamp, reached, ends):
    """Adds the weights of all bodies that hold to a dense row.

    What each rule reaches is kept in ``reached``, up to ``ends[rule - first]``,
    for the way back. Returns how many rules found room there.
    """
    adjacency, bodies, choices = paths
    first_rule, last_rule = bodies.ptr[rel], bodies.ptr[rel + 1]
    num_kept, begin = 0, 0
    for rule in range(first_rule, last_rule):
        clock[0] += 1
        count = reach(
            adjacency,
            bodies.first[rule],
            bodies.second[rule],
            bodies.parallel[rule],
            entity,
            choices,
            clock[0],
            stamp,
            reached[begin:],
        )
        w = weight[rule]
        for i in range(begin, begin + count):
            row[reached[i]] += w
        # A rule may reach every entity: without so much room, walk again later.
        if num_kept == rule - first_rule and begin + count + len(stamp) <= len(reached):
            begin += count
            ends[num_kept] = begin
            num_kept += 1
    return num_kept


@njit(cache=True, nogil=True)
def _walk_back(
    paths,
    entity,
    rel,
    num_kept,
    row,
    grad_row,
    weight_grad,
    clock,
    stamp,
    reached,
    ends,
):
    """Adds the gradients of the weights, and wipes the row."""
    adjacency, bodies, choices = paths
    first_rule, last_rule = bodies.ptr[rel], bodies.ptr[rel + 1]
    begin = 0
    for rule in range(first_rule, last_rule):
        if rule - first_rule < num_kept:
            end = ends[rule - first_rule]
        else:
            clock[0] += 1
            end = begin + reach(
                adjacency,
                bodies.first[rule],
                bodies.second[rule],
                bodies.parallel[rule],
                entity,
                choices,
                clock[0],
                stamp,
                reached[begin:],
            )
        total = 0.0
        for i in range(begin, end):
            total += grad_row[reached[i]]
            row[reached[i]] = 0
        weight_grad[rule] += total
        if rule - first_rule < num_kept:
            begin = end


@njit(cache=True, nogil=True)
def sampled_cross_entropy(
    begin,
    end,
    query,
    table,
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
    num_weight,
    centre,
    width,
    grads,
    scratch,
):
    """Returns the loss of queries ``begin .. end - 1``, and adds all gradients.

    The first candidate of each query is the true one. Queries with the same
    entity and relation should stand together: their paths are walked once.
    ``own_rule[own_ptr[q] : own_ptr[q + 1]]`` are rules that hold for the true
    candidate by the asked fact alone, and do not count for it.
    """
    query_grad, table_grad, path_grad, num_grads = grads
    row, grad_row, clock, stamp, reached, ends, score, factor = scratch
    num_candidates = candidates.shape[1]
    has_paths = len(path_weight) > 0
    num_kept = 0
    loss = 0.0
    for q in range(begin, end):
        e, r = entity[q], rel[q]
        if has_paths and (q == begin or e != entity[q - 1] or r != rel[q - 1]):
            num_kept = _walk(paths, e, r, path_weight, row, clock, stamp, reached, ends)
        first_feature, last_feature = features.ptr[r], features.ptr[r + 1]
        top = -math.inf
        for j in range(num_candidates):
            c = candidates[q, j]
            s = _dot(query[q], table[c]) + row[c]
            for i in range(first_feature, last_feature):
                a = features.attribute[i]
                difference = sign * (features.value[e, a] - features.value[c, a])
                if not math.isnan(difference):
                    s += num_weight[i] * activation(
                        difference, centre[i], width[i], features.use_sign
                    )
            if j == 0:
                for k in range(own_ptr[q], own_ptr[q + 1]):
                    s -= path_weight[own_rule[k]]
            score[j] = s
            top = max(top, s)
        true_score = score[0]
        total = 0.0
        for j in range(num_candidates):
            score[j] = math.exp(score[j] - top)
            total += score[j]
        loss += scale * (top + math.log(total) - true_score)

        for j in range(num_candidates):
            c = candidates[q, j]
            g = scale * (score[j] / total - (j == 0))
            factor[0] = g
            _add_scaled(query_grad[q], factor[0], table[c])
            _add_scaled(table_grad[c], factor[0], query[q])
            grad_row[c] += g
            for i in range(first_feature, last_feature):
                a = features.attribute[i]
                difference = sign * (features.value[e, a] - features.value[c, a])
                if not math.isnan(difference):
                    add_difference_gradient(
                        features.use_sign,
                        difference,
                        num_weight[i],
                        centre[i],
                        width[i],
                        g,
                        num_grads,
                        i,
                    )
            if j == 0:
                for k in range(own_ptr[q], own_ptr[q + 1]):
                    path_grad[own_rule[k]] -= g

        is_last = q + 1 == end or e != entity[q + 1] or r != rel[q + 1]
        if has_paths and is_last:
            _walk_back(
                paths,
                e,
                r,
                num_kept,
                row,
                grad_row,
                path_grad,
                clock,
                stamp,
                reached,
                ends,
            )
        if is_last:
            p = q
            while p >= begin and entity[p] == e and rel[p] == r:
                for j in range(num_candidates):
                    grad_row[candidates[p, j]] = 0
                p -= 1
    return loss


def new_scratch(
    num_entities: int, num_rules: int, num_candidates: int, dtype: np.dtype
) -> tuple:
    """Returns the working memory of one thread."""
    return (
        np.zeros(num_entities, dtype),
        np.zeros(num_entities, dtype),
        np.zeros(1, np.int64),
        np.full(num_entities, -1, np.int64),
        np.empty(max(num_entities, _MAX_REACHED), np.int64),
        np.empty(num_rules, np.int64),
        np.empty(num_candidates, np.float64),
        np.empty(1, dtype),  # rounds a factor to the type of the embeddings
    )
