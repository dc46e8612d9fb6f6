"""Kept walks give what walking gives, bit for bit, and stay within their memory."""

import random

import naive
import numpy as np
import pytest
import torch
from test_features import every_rule
from test_hubs import hub_kb
from test_mining import as_kb
from test_nn import known, make

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.rules import PathFeatures, RuleSet
from kblrn_pyg.rules.memory import WalkMemory


@pytest.fixture(scope="module")
def data():
    return load_dataset("families")["train"]


def queries(features, rng):
    """All possible queries in random order, some of them twice."""
    num_relations = len(features.rules.relations)
    every = [(e, r) for e in range(features.num_entities) for r in range(num_relations)]
    asked = rng.sample(every, len(every)) + rng.sample(every, len(every) // 4)
    return tuple(np.array(column) for column in zip(*asked))


def scores_and_gradient(features, side, entity, rel):
    generator = np.random.default_rng(0)
    weight = generator.normal(size=len(features.rules))
    scores = np.zeros((len(entity), features.num_entities), np.float32)
    features.add_scores(side, entity, rel, weight, scores)
    grad = generator.normal(size=scores.shape).astype(np.float32)
    return scores, features.weight_gradient(side, entity, rel, grad)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("max_bytes", [10**6, 300])
def test_recalling_equals_walking(seed, max_bytes, monkeypatch):
    monkeypatch.setattr("kblrn_pyg.rules.memory._QUERIES_AT_ONCE", 3)
    rng = random.Random(seed)
    triples, num_entities, num_relations = naive.random_kb(rng)
    kb = as_kb(triples, num_entities, num_relations)
    rules = every_rule(num_relations, rng, equal_middle=seed % 2 == 0)
    features = PathFeatures(kb, rules, max_bytes=max_bytes)
    num_kept = 0
    for side in SIDES:
        asked = queries(features, rng)
        fresh = PathFeatures(kb, rules)
        walked = scores_and_gradient(fresh, side, *asked)
        features.remember()
        recalled = scores_and_gradient(features, side, *asked)
        pairs = (
            *asked,
            np.random.default_rng(seed).integers(num_entities, size=len(asked[0])),
        )
        for leave_own in (False, True):
            walked += fresh.pairs(*pairs, leave_own)
            recalled += features.pairs(*pairs, leave_own)
        for one, other in zip(walked, recalled, strict=True):
            np.testing.assert_array_equal(one, other)
        ends = {(r, t if side == "head" else h) for h, r, t in triples}
        kept = np.unique(features.walk_arguments(side, *asked)[2])
        if max_bytes == 10**6:
            assert (kept >= 0).sum() == len(ends)
        num_kept += (kept >= 0).sum()
    assert len(features._memory) == num_kept
    assert features._memory.num_bytes <= max_bytes


@pytest.mark.parametrize("experts", ["r", "lrn"])
@pytest.mark.parametrize("num_negatives", [7, None])
def test_losses_are_the_same_with_and_without_memory(
    data, experts, num_negatives, monkeypatch
):
    monkeypatch.setattr("kblrn_pyg.rules.memory._QUERIES_AT_ONCE", 16)
    found, sizes = [], []
    for max_bytes in (10**8, 2 * 10**4, 0):
        model = make(data, experts, num_negatives=num_negatives)
        features = model.experts["relational"].features
        features.max_bytes = max_bytes
        torch.manual_seed(1)
        loss = model.loss(*known(data))
        loss.backward()
        found.append([loss.detach(), *(p.grad for p in model.parameters())])
        sizes.append(len(features._memory))
    assert sizes[0] > sizes[1] > sizes[2] == 0
    for others in found[1:]:
        for one, other in zip(found[0], others):
            assert torch.equal(one, other)


def memory_of(features, max_bytes, asked, side="tail"):
    memory = WalkMemory(features._paths, max_bytes)
    memory.fill({side: tuple(map(np.array, asked))})
    return memory


# A query that reaches one entity takes 34 bytes, besides 16 of all of them.
ROOM_FOR_TWO = 16 + 2 * 34


def test_what_is_asked_most_often_is_kept_first():
    triples = [(i, 0, i + 1) for i in range(9)]
    rules = RuleSet.build(["r0", "r1"], head=[1], steps=[[0]])
    features = PathFeatures(as_kb(triples, 10, 2), rules)
    asked = [1, 2, 3, 3, 2, 3], [1] * 6
    for max_bytes, kept in ((ROOM_FOR_TWO - 1, [3]), (ROOM_FOR_TWO, [2, 3])):
        memory = memory_of(features, max_bytes, asked)
        found = memory.find("tail", np.arange(9), np.ones(9, np.int64))
        assert np.flatnonzero(found >= 0).tolist() == kept
        assert memory.walks.reached.tolist() == [entity + 1 for entity in kept]
        assert memory.num_bytes == 16 + 34 * len(kept)
    assert memory.find("tail", np.array([3, 9]), np.array([0, 9])).tolist() == [-1, -1]
    assert memory.walks.rule.tolist() == [0, 0]
    assert memory.walks.ptr.tolist() == memory.walks.run_ptr.tolist() == [0, 1, 2]


def test_what_reaches_little_is_kept_before_what_reaches_much():
    """A query to a hub is asked twice as often, but takes the room of many."""
    triples = [(0, 0, i) for i in range(1, 50)] + [(i, 0, i + 1) for i in range(1, 5)]
    rules = RuleSet.build(["r0", "r1"], head=[1], steps=[[0]])
    features = PathFeatures(as_kb(triples, 50, 2), rules)
    asked = [0, 0, 1, 2], [1] * 4
    for max_bytes, kept in ((ROOM_FOR_TWO, [1, 2]), (10**4, [0, 1, 2])):
        memory = memory_of(features, max_bytes, asked)
        found = memory.find("tail", np.arange(4), np.ones(4, np.int64))
        assert np.flatnonzero(found >= 0).tolist() == kept


@pytest.mark.parametrize("side", SIDES)
def test_hubs_stay_within_the_bound(side):
    """Without a bound, the walks through the hubs take a hundred times as much."""
    triples = hub_kb()
    rules = every_rule(3, random.Random(0))
    features = PathFeatures(as_kb(triples, 2000, 3), rules)
    head, rel, tail = np.array(triples).T
    asked = (tail if side == "head" else head), rel
    memory = memory_of(features, 10**6, asked, side)
    assert 0 < len(memory) < len(np.unique(np.column_stack(asked), axis=0))
    assert memory.num_bytes <= 10**6
    place = memory.find(side, *asked)
    walk = features.heads if side == "head" else features.tails
    for i in np.flatnonzero(place >= 0)[::100].tolist():
        entity, r = [asked[0][i]], [asked[1][i]]
        found = walk(r, entity) if side == "head" else walk(entity, r)
        candidate, rule = recalled(memory, place[i])
        np.testing.assert_array_equal(candidate, found.candidate)
        np.testing.assert_array_equal(rule, found.rule)


def recalled(memory, place):
    """The entities and rules that are kept for a query."""
    run_ptr, rule, walk, ptr, reached = memory.walks
    found = [
        (entity, rule[run])
        for run in range(run_ptr[place], run_ptr[place + 1])
        for entity in reached[ptr[walk[run]] : ptr[walk[run] + 1]]
    ]
    return np.array(found).reshape(-1, 2).T


def test_what_rules_share_is_kept_once():
    """Two relations have rules with one body, which leads back the way it came."""
    triples = [(i, 0, 20 + i // 5) for i in range(20)]
    triples += [(0, 1, 1), (0, 2, 1), (2, 2, 0)]
    body = [0, 1]
    rules = RuleSet.build(["r0", "r1", "r2"], head=[1, 2], steps=[body, body])
    features = PathFeatures(as_kb(triples, 24, 3), rules)
    features.remember()
    memory = features._memory
    # From the entities 0, 1 and 2 alone.
    assert memory.walks.reached.tolist() == 3 * list(range(5))
    assert len(memory.walks.rule) == 6
    for side in SIDES:
        place = memory.find(side, np.array([0, 0]), np.array([1, 2]))
        for i, rule in enumerate((0, 1)):
            if place[i] >= 0:
                candidate, of_rule = recalled(memory, place[i])
                assert candidate.tolist() == list(range(5))
                assert of_rule.tolist() == 5 * [rule]


def test_what_is_shared_leaves_room_for_others():
    """The memory is filled, though it is known only late how much is shared."""
    rng = random.Random(1)
    rules = every_rule(3, rng)
    kb = as_kb(hub_kb(300), 300, 3)
    whole = PathFeatures(kb, rules)
    whole.remember()
    for part in (0.9, 0.5, 0.1):
        features = PathFeatures(kb, rules)
        features.max_bytes = int(part * whole._memory.num_bytes)
        features.remember()
        assert 0.6 * features.max_bytes < features._memory.num_bytes
        assert features._memory.num_bytes <= features.max_bytes
        assert 0 < len(features._memory) < len(whole._memory)


@pytest.mark.parametrize(("num_entities", "dtype"), [(65536, "u2"), (65537, "u4")])
def test_large_entity_numbers_fit(num_entities, dtype):
    last = num_entities - 1
    rules = RuleSet.build(["r0"], head=[0], steps=[[1]])
    features = PathFeatures(as_kb([(last, 0, last)], num_entities, 1), rules)
    memory = memory_of(features, 10**6, ([last], [0]))
    assert memory.walks.reached.dtype == np.dtype(dtype)
    assert memory.walks.reached.tolist() == [last]
    assert memory.find("tail", np.array([last]), np.array([0])).tolist() == [0]
