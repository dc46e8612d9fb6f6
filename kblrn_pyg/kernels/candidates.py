"""Path and difference features of some candidates of each query, and gradients."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.holding import NO_FACT, holds_from
from kblrn_pyg.kernels.recall import UNASKED, recall_asked
from kblrn_pyg.kernels.scoring import activation, add_difference_gradient
from kblrn_pyg.kernels.walking import first_steps, reach

# How many equal queries share one walk, which bounds what it may reach.
_GROUP_SIZE = 8

# The number of steps of a walk that take as long as checking one candidate.
_CHECK_COST = 256


class Scratch(NamedTuple):
    r"""The working memory of one thread; nothing in it has to be cleared between calls.

    Args:
        row: The scores of the paths for each candidate of a query.
        clock: The serial number of the last walk.
        stamp: The serial number of the walk that reached an entity last.
    """

    row: np.ndarray
    clock: np.ndarray
    stamp: np.ndarray


class Reached(NamedTuple):
    r"""The candidates that the rules of some queries reach.

    Adjacent equal queries form a group. A run is all candidates of a group that one
    rule reaches, if there are any.

    Args:
        first: The first query of each group, and the end of the last group.
        run_ptr: Where the runs of each group begin.
        rule: The rule of each run.
        ptr: Where the entities of each run begin.
        entity: The entities.
    """

    first: np.ndarray
    run_ptr: np.ndarray
    rule: np.ndarray
    ptr: np.ndarray
    entity: np.ndarray


def new_scratch(num_entities: int) -> Scratch:
    r"""Creates the working memory of one thread.

    Args:
        num_entities (int): The number of entities.
    """
    return Scratch(
        np.zeros(num_entities),
        np.zeros(1, np.int64),
        np.full(num_entities, UNASKED),
    )


@njit(cache=True, nogil=True)
def score_paths(candidates, entity, rel, kept, weight, scores, scratch):
    """Writes the sum of the weights of all bodies that hold for each candidate.

    ``kept`` is what ``PathFeatures.walk_arguments`` returns. A rule that reaches
    many entities, for example through a hub, is checked for each candidate instead
    of walked, so the work is bounded by the number of candidates. Queries with the
    same entity and relation should be adjacent. Returns what was :class:`Reached`,
    for the backward pass.
    """
    num_queries, num_candidates = candidates.shape
    paths, walks, place = kept
    adjacency, bodies = paths
    first = np.empty(num_queries + 1, np.int64)
    run_ptr = np.zeros(num_queries + 1, np.int64)
    rules, ptr = np.empty(64, np.int64), np.zeros(65, np.int64)
    reached = np.empty(1024, np.int64)
    num_groups, num_runs, size = 0, 0, 0
    q = 0
    while q < num_queries:
        last = _last_of_group(entity, rel, q, num_queries)
        _ask(candidates[q:last], scratch)
        most = (last - q) * num_candidates
        limit = _CHECK_COST * most
        is_kept = place[q] >= 0
        if is_kept:
            begin, end = walks.run_ptr[place[q]], walks.run_ptr[place[q] + 1]
        else:
            begin, end = bodies.ptr[rel[q]], bodies.ptr[rel[q] + 1]
        for i in range(begin, end):
            # Either a kept walk of a rule, or a rule that has to be walked.
            rule, count = i, -1
            reached = _with_room(reached, size, most + 1)
            out = reached[size:]
            if is_kept:
                rule, walk = walks.rule[i], walks.walk[i]
                if walks.ptr[walk + 1] - walks.ptr[walk] <= limit:
                    count = recall_asked(walks, walk, scratch.stamp, out)
            else:
                group = first_steps(adjacency, bodies, rule, entity[q])
                if group < 0:
                    continue
                scratch.clock[0] += 1
                serial = scratch.clock[0]
                count = reach(
                    paths, rule, entity[q], group, serial, limit, scratch.stamp, out
                )
            if count < 0:
                count = _check(paths, rule, entity[q], candidates[q:last], scratch, out)
            if count == 0:
                continue
            for k in range(size, size + count):
                scratch.row[reached[k]] += weight[rule]
            rules = _with_room(rules, num_runs, 1)
            ptr = _with_room(ptr, num_runs + 1, 1)
            size += count
            rules[num_runs], ptr[num_runs + 1] = rule, size
            num_runs += 1
        for i in range(q, last):
            for j in range(num_candidates):
                scores[i, j] = scratch.row[candidates[i, j]]
        _forget(candidates[q:last], scratch)
        first[num_groups], run_ptr[num_groups + 1] = q, num_runs
        num_groups += 1
        q = last
    first[num_groups] = num_queries
    return Reached(
        first[: num_groups + 1],
        run_ptr[: num_groups + 1],
        rules[:num_runs],
        ptr[: num_runs + 1],
        reached[:size],
    )


@njit(cache=True, nogil=True)
def path_gradient_of(reached, candidates, grad, weight_grad, scratch):
    """Adds the gradient of every weight, given that of the candidates' scores."""
    row = scratch.row
    for group in range(len(reached.first) - 1):
        first, last = reached.first[group], reached.first[group + 1]
        begin, end = reached.run_ptr[group], reached.run_ptr[group + 1]
        if begin == end:
            continue
        for drawn in candidates[first:last]:
            for c in drawn:
                row[c] = 0
        for i in range(first, last):
            for j in range(candidates.shape[1]):
                row[candidates[i, j]] += grad[i, j]
        for run in range(begin, end):
            total = 0.0
            for k in range(reached.ptr[run], reached.ptr[run + 1]):
                total += row[reached.entity[k]]
            weight_grad[reached.rule[run]] += total


@njit(cache=True, nogil=True)
def score_differences(features, sign, entity, rel, candidates, numbers, scores):
    """Adds weight times activation for every number that a candidate has.

    ``sign`` is 1 if the entities are heads, -1 if they are tails.
    """
    weight, centre, width = numbers
    for q in range(len(entity)):
        for i in range(features.ptr[rel[q]], features.ptr[rel[q] + 1]):
            value = features.value[features.attribute[i]]
            own = value[entity[q]]
            if math.isnan(own):
                continue
            for j in range(candidates.shape[1]):
                difference = sign * (own - value[candidates[q, j]])
                if not math.isnan(difference):
                    scores[q, j] += weight[i] * activation(
                        difference, centre[i], width[i], features.use_sign
                    )


@njit(cache=True, nogil=True)
def difference_gradient_of(
    features, sign, entity, rel, candidates, numbers, grad, grads
):
    """Adds the gradients of weights, centres and widths to the rows of ``grads``."""
    weight, centre, width = numbers
    for q in range(len(entity)):
        for i in range(features.ptr[rel[q]], features.ptr[rel[q] + 1]):
            value = features.value[features.attribute[i]]
            own = value[entity[q]]
            if math.isnan(own):
                continue
            for j in range(candidates.shape[1]):
                difference = sign * (own - value[candidates[q, j]])
                if not math.isnan(difference):
                    add_difference_gradient(
                        features.use_sign,
                        difference,
                        weight[i],
                        centre[i],
                        width[i],
                        grad[q, j],
                        grads,
                        i,
                    )


@njit(cache=True, nogil=True)
def softmax_gradients(scores, scale):
    """Turns rows of scores into their gradients, the first being the true one's.

    Returns the sum of the cross-entropies, times the scale.
    """
    loss = 0.0
    for row in scores:
        top = -math.inf
        for score in row:
            top = max(top, score)
        true_score, total = row[0], 0.0
        for j in range(len(row)):
            row[j] = math.exp(row[j] - top)
            total += row[j]
        for j in range(len(row)):
            row[j] *= scale / total
        row[0] -= scale
        loss += scale * (top + math.log(total) - true_score)
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
def _check(paths, rule, source, candidates, scratch, out):
    """Writes the candidates that a rule reaches, looking at each of them once."""
    group = first_steps(paths.adjacency, paths.bodies, rule, source)
    scratch.clock[0] += 1
    serial = scratch.clock[0]
    middle = np.empty(1, np.int64)
    count = 0
    for drawn in candidates:
        for c in drawn:
            if scratch.stamp[c] == serial:
                continue
            scratch.stamp[c] = serial
            if holds_from(paths, rule, source, group, c, NO_FACT, middle):
                out[count] = c
                count += 1
    return count


@njit(cache=True, nogil=True)
def _with_room(array, size, more):
    """Returns an array that has room for more entries behind the first ones."""
    if size + more <= len(array):
        return array
    larger = np.empty(2 * (size + more), array.dtype)
    larger[:size] = array[:size]
    return larger


@njit(cache=True, nogil=True)
def _ask(candidates, scratch):
    for drawn in candidates:
        for c in drawn:
            scratch.stamp[c] = -1
            scratch.row[c] = 0


@njit(cache=True, nogil=True)
def _forget(candidates, scratch):
    for drawn in candidates:
        for c in drawn:
            scratch.stamp[c] = UNASKED
