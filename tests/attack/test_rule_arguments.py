"""Wrong arguments of rules, of what is counted by them, and of numbers."""

import numpy as np
import pytest
import torch
from attack.ids import small_kb, small_model, small_rules

from kblrn_pyg.data import NamedValues, PairAttribute, as_kb, ask, layer_features
from kblrn_pyg.rules import EvidenceFeatures, ground_rules, mine_constants

NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max_rules", -1),  # the least support was raised for ever
        ("max_degree", -1),
        ("min_support", -1),
        ("min_support", NAN),
        ("shrinkage", -1),
        ("shrinkage", NAN),
        ("floor", 0),
        ("floor", -1),
        ("floor", NAN),
    ],
)
def test_evidence_that_cannot_be_counted(name, wrong):
    with pytest.raises(ValueError, match=f"'{name}' must"):
        EvidenceFeatures(small_kb(), small_rules(), **{name: wrong})


def test_large_shrinkage_is_no_overflow():
    features = EvidenceFeatures(small_kb(), small_rules(), shrinkage=10**12)
    assert np.isfinite(features.pairs([0, 1], [0, 1], [2, 3])).all()
    constants = mine_constants(small_kb(), min_support=1)
    assert np.nanmax(constants.shrunk_confidence(10**12)) < 1e-6


@pytest.mark.parametrize(
    "wrong", [[-1], [10**9], [0.5], [True, False], [[0]], [NAN], ["a"], None]
)
def test_rules_that_there_are_not(wrong):
    """A short mask was the first two rules, and 0.5 was the first."""
    for rules in (small_rules(), mine_constants(small_kb(), min_support=1)):
        with pytest.raises(ValueError, match="must"):
            rules.select(wrong)
        assert len(rules.select([0, 1])) == 2
        assert len(rules.select(np.arange(len(rules)) == 1)) == 1


def test_thresholds_are_numbers():
    for rules in (small_rules(), mine_constants(small_kb(), min_support=1)):
        with pytest.raises(ValueError, match="the least confidence must be a number"):
            rules.filter(min_confidence=NAN)
        with pytest.raises(ValueError, match="'max_rules_per_relation' must not be"):
            rules.filter(max_rules_per_relation=-1)
        with pytest.raises(ValueError, match="'relations' must be a list of"):
            rules.filter(relations="abc")
    with pytest.raises(ValueError, match="'number' must not be negative"):
        mine_constants(small_kb()).best(-1)
    with pytest.raises(ValueError, match="'max_groundings' must be at least 1"):
        ground_rules(small_kb(), small_rules(), 0)


def test_single_triples_of_features():
    """Ids that are tensors were no argument of a kernel, and True was 1."""
    model = small_model("kinds", "all")
    paths = model.experts["relational"].features
    expert = model.experts["evidence"]
    evidence, kinds = expert.features, expert.kinds
    calls = (
        lambda *ids: paths.middles(*ids[::-1]),
        lambda *ids: paths.holds(*ids[::-1]),
        lambda *ids: evidence.best_rule("head", *ids),
        kinds.rules,
    )
    for call in calls:
        assert str(call(0, 1, 2)) == str(call(0, torch.tensor(1), 2))
        for wrong in (True, -1, 10**9, 1.5, None):
            with pytest.raises(ValueError, match="must"):
                call(0, wrong, 2)
    every = np.arange(3)
    with pytest.raises(ValueError, match="'side' must be 'head' or 'tail'"):
        kinds.asked(("x", every, every))
    with pytest.raises(ValueError, match="must be dense, and not on 'meta'"):
        kinds.asked(("tail", torch.tensor(every, device="meta"), every))


@pytest.mark.parametrize("wrong", [-1, NAN, np.inf])
def test_shrinkage_that_is_no_number(wrong):
    """By less than nothing, bodies had a negative size, and rules were sorted so."""
    rules = mine_constants(small_kb(), min_support=1)
    with pytest.raises(ValueError, match="'shrinkage' must not be negative"):
        rules.sort("pca_confidence", wrong)
    with pytest.raises(ValueError, match="'shrinkage' must not be negative"):
        rules.best(3, wrong)


def test_columns_that_are_no_tensors():
    column = torch.tensor([0])
    for wrong in ([0], np.array([0]), None, 1, column.to("meta"), column.to_sparse()):
        with pytest.raises(ValueError, match="must be"):
            ask(small_kb(), (wrong, column, column))


def test_numbers_that_are_none():
    """Infinity was taken, and what is imaginary was left out."""
    one = np.zeros(1, np.int64)
    for wrong in ([np.inf], [-np.inf], [1j], ["1"], [None]):
        with pytest.raises(ValueError, match="'value' must be an array of numbers"):
            NamedValues(["a"], ["r"], one, one, np.array(wrong))
    for a in (-1, 2, True, 1.5, None):
        compared = PairAttribute("x", "difference", a, 0)
        with pytest.raises(ValueError, match="the id of the attribute must"):
            layer_features(small_kb(), 0.1, [compared])
    with pytest.raises(ValueError, match="'scale' must be positive"):
        PairAttribute("x", "signed_log", 0, 0, np.inf)
    with pytest.raises(ValueError, match="'data' must have nodes"):
        as_kb(type(small_kb())())
