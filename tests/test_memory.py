"""Kept walks give what walking gives, bit for bit, and stay within their memory."""

import random

import naive
import numpy as np
import pytest
import torch
from test_features import every_rule
from test_mining import as_kb
from test_nn import known, make

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.rules import PathFeatures
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
    features = PathFeatures(kb, rules, max_bytes=2 * max_bytes)
    for side in SIDES:
        asked = queries(features, rng)
        fresh = PathFeatures(kb, rules)
        walked = scores_and_gradient(fresh, side, *asked)
        features.remember()
        recalled = scores_and_gradient(features, side, *asked)
        for one, other in zip(walked, recalled):
            np.testing.assert_array_equal(one, other)
        ends = {(r, t if side == "head" else h) for h, r, t in triples}
        kept = np.unique(features.walk_arguments(side, *asked)[4])
        if max_bytes == 10**6:
            assert (kept >= 0).sum() == len(ends)
        memory = features._memories[side]
        assert len(memory) == (kept >= 0).sum()
        assert memory.num_bytes <= max_bytes


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
        sizes.append([len(memory) for memory in features._memories.values()])
    assert sizes[0] > sizes[1] > sizes[2] == [0, 0]
    for others in found[1:]:
        for one, other in zip(found[0], others):
            assert torch.equal(one, other)


def test_what_is_asked_most_often_is_kept_first(monkeypatch):
    monkeypatch.setattr("kblrn_pyg.rules.memory._QUERIES_AT_ONCE", 1)

    def walk(entity, rel):  # rules 0 and 2 reach the entity itself and the next
        return np.array([0, 3]), np.array([*entity, *entity, *entity + 1]), [0, 2, 2]

    size = WalkMemory(10, 10**6)
    size.fill(np.array([0]), np.array([0]), walk_of(walk))
    memory = WalkMemory(10, 2 * size.num_bytes)
    entity, rel = np.array([1, 2, 3, 3, 2, 3]), np.array([0, 1, 1, 1, 1, 1])
    memory.fill(entity, rel, walk_of(walk))
    assert len(memory) == 2
    found = memory.find(np.array([3, 2, 1, 3, 9]), np.array([1, 1, 0, 0, 9]))
    assert found.tolist() == [0, 1, -1, -1, -1]
    assert memory.walks.reached.tolist() == [3, 3, 4, 2, 2, 3]
    assert memory.walks.rule.tolist() == [0, 2, 0, 2]
    assert memory.walks.ptr.tolist() == [0, 1, 3, 4, 6]
    assert memory.walks.run_ptr.tolist() == [0, 2, 4]


def walk_of(walk):
    return lambda entity, rel: tuple(map(np.asarray, walk(entity, rel)))


@pytest.mark.parametrize(("num_entities", "dtype"), [(65536, "u2"), (65537, "i4")])
def test_large_entity_numbers_fit(num_entities, dtype):
    memory = WalkMemory(num_entities, 10**6)
    last = num_entities - 1
    memory.fill(
        np.array([last]),
        np.array([0]),
        lambda entity, rel: (np.array([0, 1]), entity, np.array([5])),
    )
    assert memory.walks.reached.dtype == np.dtype(dtype)
    assert memory.walks.reached.tolist() == [last]
    assert memory.find(np.array([last]), np.array([0])).tolist() == [0]
