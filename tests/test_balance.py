"""Experts that have learned apart are balanced by validation."""

import math
from copy import deepcopy

import numpy as np
import pytest
import torch
from attack.ids import small_model

from kblrn_pyg import KBLRN
from kblrn_pyg.data import ask, flat_triples
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import Expert, NodeExpert
from kblrn_pyg.training import balance, balancing, fit, scale_experts
from kblrn_pyg.training.balancing import _OF_ALL, _OF_ONE


@pytest.fixture(scope="module")
def splits():
    return [Families(split=name)[0] for name in ("train", "val", "test")]


def apart(train, letters):
    """Embeddings that have learned alone, and others that have not learned."""
    torch.manual_seed(0)
    alone = KBLRN.from_data(train, "l", 16, num_negatives=None)
    fit(alone, train, epochs=3, lr=0.02)
    model = KBLRN.from_data(train, letters, 16, num_negatives=None)
    model.take_experts(alone)
    return model


def test_factors_are_the_best_of_those_tried(splits):
    train, val, test = splits
    model = apart(train, "le")
    expert = model.experts["evidence"]
    expert.scale(5.0)
    weight = expert.weight.detach().clone()
    factors = balance(model, val, [test], by_relation=False)
    assert factors.keys() == {"evidence"}
    torch.testing.assert_close(expert.weight, weight * factors["evidence"])
    after = evaluate(model, val, [test]).metrics().mrr
    found = {}

    def mrr(factor):
        with torch.no_grad():
            expert.weight.copy_(weight * factor)
        found[factor] = evaluate(model, val, [test]).metrics().mrr
        return found[factor]

    best = max(_OF_ALL, key=mrr)
    coarse = found[best]
    assert len(set(found.values())) > 3
    for _ in range(balancing._ROUNDS):  # and then around it
        finer = max((factor * best for factor in _OF_ONE), key=mrr)
        best = finer if found[finer] > found[best] else best
    assert after == found[best]
    assert factors["evidence"] == pytest.approx(best)
    assert after > coarse


def test_relations_may_have_their_own_factors(splits, monkeypatch):
    train, val, test = splits
    monkeypatch.setattr(balancing, "_PRIORS", (0.0,))
    monkeypatch.setattr(balancing, "_ROUNDS", 0)
    model = apart(train, "le")
    expert = model.experts["evidence"]
    weight = expert.weight.detach().clone()
    balance(model, val, [test])
    after = evaluate(model, val, [test])
    by_factor = []
    for factor in _OF_ALL:
        with torch.no_grad():
            expert.weight.copy_(weight * factor)
        by_factor.append(evaluate(model, val, [test]))
    mrr = []
    for rel in range(len(weight)):
        asked = after.relation == rel
        if not asked.any():
            continue
        best = max(table.metrics(asked).mrr for table in by_factor)
        assert after.metrics(asked).mrr == pytest.approx(best)
        mrr.append([table.metrics(asked).mrr for table in by_factor])
    # They are not the same for all, or this would show nothing.
    assert len({tuple(one).index(max(one)) for one in mrr}) > 2


def test_few_queries_do_not_speak_for_other_factors(splits, monkeypatch):
    train, val, test = splits
    monkeypatch.setattr(balancing, "_PRIORS", (1e9,))
    model = apart(train, "le")
    weight = model.experts["evidence"].weight.detach().clone()
    factor = balance(model, val, [test])["evidence"]
    torch.testing.assert_close(model.experts["evidence"].weight, weight * factor)


@pytest.mark.parametrize(
    ("letters", "settings"),
    [
        ("r", {}),
        ("n", {}),
        ("n", {"numerical": "sign"}),
        ("n", {"numerical": "layer"}),
        ("e", {}),
        ("e", {"evidence_kinds": True}),
        ([], {}),
    ],
)
def test_experts_are_scaled_by_relation(splits, letters, settings):
    train = splits[0]
    torch.manual_seed(0)
    given = letters or [NodeExpert(train)]
    model = KBLRN.from_data(train, given, **settings)
    (expert,) = model.experts.values()
    with torch.no_grad():
        for parameter in expert.parameters():
            parameter.normal_()
    triples = flat_triples(train)
    before = expert(*triples).double()
    factor = torch.rand(model.num_relations) * 3
    expert.scale(factor)
    after = expert(*triples).double()
    wanted = before * factor.double()[triples[1]]
    torch.testing.assert_close(after, wanted, rtol=1e-4, atol=1e-4)
    expert.scale(0.5)
    torch.testing.assert_close(
        expert(*triples).double(), wanted / 2, rtol=1e-4, atol=1e-4
    )
    assert before.abs().max() > 0.5


def test_prior_is_the_best_by_cross_validation():
    rng = np.random.default_rng(0)
    size, num_relations = 4000, 20
    relation = np.tile(rng.integers(num_relations, size=size // 2), 2)
    noise = rng.normal(size=(3, size)) * 0.1
    trial = np.arange(3)[:, None]
    # Each relation has a trial that is better, or the same one is better for all.
    given = relation, noise + 0.2 * (trial == relation % 3)
    assert balancing._best_prior(*given, num_relations) < 1e9
    given = relation, 10 * noise + 0.1 * (trial == 1)
    assert balancing._best_prior(*given, num_relations) >= 300
    assert balancing._best_prior(np.zeros(2, int), np.ones((3, 2)), 1) == 1e9


def test_nothing_to_balance_by_is_said(splits):
    train = splits[0]
    nothing = ask(train, tuple(torch.empty(3, 0, dtype=torch.long)))
    with pytest.raises(ValueError, match="'val' must ask about at least one triple"):
        balance(KBLRN.from_data(train, "rn"), nothing)


def test_each_expert_has_a_factor_of_its_own(splits):
    train, val, test = splits
    model = apart(train, "lrne")
    with torch.no_grad():  # paths that say nothing but noise
        model.experts["relational"].weight.normal_(std=5.0)
    factors = balance(model, val, [test])
    assert factors.keys() == {"relational", "numerical", "evidence"}
    assert factors["relational"] == 0
    assert factors["evidence"] > 0


class Fixed(Expert):
    def forward(self, head_index, rel_type, tail_index):
        return tail_index * 1e-6


def test_what_cannot_be_scaled_stays(splits):
    train, val, _ = splits
    model = KBLRN.from_data(train, experts=["n", Fixed()])
    assert balance(model, val).keys() == {"numerical"}
    with pytest.raises(NotImplementedError, match="Fixed cannot be scaled"):
        Fixed().scale(2.0)
    # The scale of a model of one expert does not matter.
    model = KBLRN.from_data(train, "n")
    weight = model.experts["numerical"].weight.detach().clone()
    assert balance(model, val) == {}
    assert torch.equal(model.experts["numerical"].weight, weight)


@pytest.mark.parametrize(
    "factor",
    [math.nan, math.inf, None, "x", [1.0], np.ones(3), torch.ones(2), torch.ones(4)]
    + [torch.ones(3, 1), torch.tensor([1.0, math.nan, 1.0])],
)
def test_experts_are_scaled_by_numbers(factor):
    """Those that are none made scores NaN, and too many of them were not noticed."""
    model = deepcopy(small_model("lrne", "all"))
    before = deepcopy(model.state_dict())
    with pytest.raises(ValueError, match="factor of 'relational' must be"):
        scale_experts(model, {"evidence": 2.0, "relational": factor})
    after = model.state_dict()
    assert all(torch.equal(after[name], one) for name, one in before.items())
