"""Candidates that are checked get what walking gives them, also around hubs."""

import itertools
import random

import naive
import numpy as np
import pytest
import torch
from test_features import every_rule
from test_mining import as_kb

from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.kernels.candidates import _check, new_scratch
from kblrn_pyg.kernels.walking import first_steps
from kblrn_pyg.nn import RelationalExpert
from kblrn_pyg.rules import PathFeatures, RuleSet


def hub_kb(num_entities=2000, num_relations=3, seed=0):
    """Two hubs that nearly everybody knows, and other facts at random."""
    rng = np.random.default_rng(seed)
    spokes = [
        (entity, r, hub)
        for hub, r in ((0, 0), (1, 0), (1, 1))
        for entity in range(num_entities)
        if rng.random() < 0.7
    ]
    others = rng.integers(num_entities, size=(num_entities, 2))
    rels = rng.integers(num_relations, size=num_entities)
    return spokes + list(zip(others[:, 0], rels, others[:, 1]))


def asked_about(num_entities, num_relations, num_candidates, rng):
    """Queries, the hubs' among them and some twice, with candidates that repeat."""
    entity = torch.tensor([0, 0, 1, 1, *rng.choices(range(num_entities), k=16)])
    rel = torch.tensor([0, 0, 1, *rng.choices(range(num_relations), k=17)])
    order = torch.argsort(rel * num_entities + entity)
    drawn = rng.choices(range(num_entities), k=len(entity) * num_candidates)
    candidates = torch.tensor(drawn).view(len(entity), num_candidates)
    candidates[:, : num_candidates // 2] %= 3  # the hubs themselves
    return entity[order], rel[order], candidates


def check_candidates(kb, rules, asked, remember):
    entity, rel, candidates = asked
    expert = RelationalExpert(kb, rules).double()
    torch.manual_seed(0)
    torch.nn.init.normal_(expert.weight)
    expert.train(remember)
    walking = PathFeatures(kb, rules)
    weight = expert.weight.detach().numpy()
    for side in SIDES:
        scores = expert.score_candidates(Queries(entity, rel, side), candidates)
        rows = np.zeros((len(entity), walking.num_entities))
        walking.add_scores(side, entity.numpy(), rel.numpy(), weight, rows)
        wanted = torch.from_numpy(rows).gather(1, candidates)
        assert torch.equal(scores, wanted)
        grad = torch.randn(candidates.shape, dtype=torch.double)
        (found,) = torch.autograd.grad(scores, expert.weight, grad)
        dense = torch.zeros(rows.shape, dtype=torch.double)
        dense.scatter_add_(1, candidates, grad)
        expected = walking.weight_gradient(
            side, entity.numpy(), rel.numpy(), dense.numpy()
        )
        torch.testing.assert_close(found, torch.from_numpy(expected))


@pytest.mark.parametrize("remember", [False, True])
@pytest.mark.parametrize("num_candidates", [1, 2, 40])
@pytest.mark.parametrize("equal_middle", [False, True])
def test_checking_equals_walking_around_hubs(num_candidates, equal_middle, remember):
    rng = random.Random(num_candidates)
    rules = every_rule(3, rng, equal_middle=equal_middle, equal_ends=equal_middle)
    kb = as_kb(hub_kb(), 2000, 3)
    check_candidates(kb, rules, asked_about(2000, 3, num_candidates, rng), remember)


@pytest.mark.parametrize("seed", range(30))
def test_checking_equals_walking_on_random_knowledge_bases(seed):
    rng = random.Random(seed)
    triples, num_entities, num_relations = naive.random_kb(rng)
    rules = every_rule(num_relations, rng, equal_middle=seed % 2 == 0)
    features = PathFeatures(as_kb(triples, num_entities, num_relations), rules)
    drawn = np.array(rng.choices(range(num_entities), k=12)).reshape(3, 4)
    different = list(dict.fromkeys(drawn.ravel().tolist()))
    scratch, out = new_scratch(num_entities), np.empty(12, np.int64)
    for side, entity in itertools.product(SIDES, range(num_entities)):
        paths = features._paths[side]
        for rule, relation in enumerate(rules.head.tolist()):
            if first_steps(*paths, rule, entity) < 0:
                continue
            walk = features.heads if side == "head" else features.tails
            asked = ([relation], [entity])
            found = walk(*asked) if side == "head" else walk(*asked[::-1])
            reached = found.candidate[found.rule == rule]
            count = _check(paths, rule, entity, drawn, scratch, out)
            assert out[:count].tolist() == [c for c in different if c in reached]


def test_working_memory_is_used_again():
    """Nothing of the size of the entity table is made for a batch."""
    kb = as_kb(hub_kb(200), 200, 3)
    features = PathFeatures(kb, every_rule(3, random.Random(0)), num_threads=2)
    made, make = [], features._pool._make
    features._pool._make = lambda: made.append(make()) or made[-1]
    entity, rel = np.arange(200) % 7, np.arange(200) % 3
    scores, weight = np.zeros((200, 200)), np.ones(len(features.rules))
    first = [array.tolist() for array in features.tails(entity, rel)]
    for _ in range(5):
        features.add_scores("tail", entity, rel, weight, scores)
        features.weight_gradient("head", entity, rel, scores)
        assert [array.tolist() for array in features.tails(entity, rel)] == first
    assert 1 <= len(made) <= 2


def test_middles_of_hubs_are_found_from_either_end():
    """The longer list of neighbours is searched, in whichever direction."""
    num = 300
    triples = [(0, 0, x) for x in range(2, num)] + [(x, 1, 1) for x in (5, 77, 299)]
    triples += [(1, 0, x) for x in (9, 10, 298)] + [(x, 1, 0) for x in range(2, num)]
    rules = RuleSet.build(["r0", "r1", "r2"], head=[2], steps=[[0, 2]])
    features = PathFeatures(as_kb(triples, num, 3), rules)
    assert features.middles(0, 0, 1).tolist() == [5, 77, 299]
    assert features.middles(0, 1, 0).tolist() == [9, 10, 298]
    assert features.middles(0, 0, 1, limit=2).tolist() == [5, 77]
    assert features.middles(0, 0, 0).tolist() == list(range(2, num))
    assert not features.holds(0, 1, 1)
