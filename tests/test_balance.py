"""Experts that have learned apart are balanced by validation."""

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import Expert
from kblrn_pyg.training import balance, fit
from kblrn_pyg.training.balancing import _OF_ALL


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
    factors = balance(model, val, [test])
    assert factors.keys() == {"evidence"}
    torch.testing.assert_close(expert.weight, weight * factors["evidence"])
    after = evaluate(model, val, [test]).metrics().mrr
    found = {}
    for factor in _OF_ALL:
        with torch.no_grad():
            expert.weight.copy_(weight * factor)
        found[factor] = evaluate(model, val, [test]).metrics().mrr
    assert len(set(found.values())) > 3
    assert after == max(found.values())


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
