"""Figures equal those computed by hand."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from test_evaluation import HEAD, constant_model
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.evaluation import Metrics, auc_pr, query_auc
from kblrn_pyg.rules import RuleSet


def test_metrics_by_hand():
    metrics = Metrics.of([1, 1.5, 3, 5, 10.5, 20], [9, 9, 19, 19, 39, 39])
    assert metrics.count == 6
    assert metrics.mr == pytest.approx(41 / 6)
    assert metrics.mrr == pytest.approx(
        (1 + 2 / 3 + 1 / 3 + 1 / 5 + 2 / 21 + 1 / 20) / 6
    )
    assert metrics.hits_at_1 == pytest.approx(1 / 6)
    assert metrics.hits_at_3 == pytest.approx(3 / 6)
    assert metrics.hits_at_5 == pytest.approx(4 / 6)
    assert metrics.hits_at_10 == pytest.approx(4 / 6)
    assert metrics.amr == pytest.approx((41 / 6) / ((5 + 5 + 10 + 10 + 20 + 20) / 6))
    names = ["count", "mr", "mrr", "hits@1", "hits@3", "hits@5", "hits@10", "amr"]
    assert list(metrics.to_dict()) == names
    assert metrics.to_dict()["hits@3"] == metrics.hits_at_3


def test_metrics_of_nothing():
    metrics = Metrics.of([], [])
    assert metrics.count == 0
    assert math.isnan(metrics.mr)
    figures = metrics.to_dict()
    assert figures.pop("count") == 0
    assert set(figures.values()) == {None}
    with pytest.raises(ValueError, match="must be of one length"):
        Metrics.of([1, 2], [3])


def naive_auc_pr(scores, is_answer):
    """Takes, threshold by threshold, all items that reach it."""
    area, recall_before = Fraction(0), Fraction(0)
    for threshold in sorted(set(scores), reverse=True):
        taken = [hit for s, hit in zip(scores, is_answer) if s >= threshold]
        recall = Fraction(sum(taken), sum(is_answer))
        area += (recall - recall_before) * Fraction(sum(taken), len(taken))
        recall_before = recall
    return area


@pytest.mark.parametrize("seed", range(100))
def test_auc_pr_equals_a_threshold_sweep(seed):
    rng = random.Random(seed)
    size = rng.randint(1, 30)
    scores = [rng.randrange(-5, rng.choice([-3, 5, 1000])) for _ in range(size)]
    is_answer = [rng.random() < 0.4 for _ in range(size - 1)] + [True]
    expected = pytest.approx(float(naive_auc_pr(scores, is_answer)))
    assert auc_pr(scores, is_answer) == expected
    assert auc_pr(np.array(scores, np.float32) / 4, is_answer) == expected


def test_auc_pr_by_hand():
    assert auc_pr([4, 3, 2, 1], [1, 1, 0, 0]) == 1
    assert auc_pr([4, 3, 2, 1], [0, 0, 0, 1]) == 0.25
    assert (
        auc_pr([1, 1, 1, 1], [1, 0, 0, 0]) == auc_pr([1, 1, 1, 1], [0, 0, 1, 0]) == 0.25
    )
    assert auc_pr([2, 1, 1], [0, 1, 0]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="at least one answer"):
        auc_pr([1, 2], [False, False])
    with pytest.raises(ValueError, match="got NaN"):
        auc_pr([1, math.nan], [True, False])
    with pytest.raises(ValueError, match="must be of one length"):
        auc_pr([1, 2], [True])


def test_query_auc():
    kb, model = as_kb([(0, 1, 3)], 5, 2), constant_model(5, 2)
    model.tails.data[1, 0] = torch.tensor([5.0, 4.0, 3.0, 3.0, 1.0])
    result = query_auc(model, kb, 1, head=0, answers=[0, 2, 4, 2])
    # Thresholds 5, 4, 3 and 1 take 1, 2, 4 and 5 items; 1, 1, 2 and 3 are answers.
    assert result.auc_pr == pytest.approx((1 + 2 / 4 + 3 / 5) / 3)
    # Without the other answers, entity 0 is first, 2 below 1 and beside 3, 4 last.
    assert result.metrics.mr == pytest.approx((1 + 2.5 + 3) / 3)
    assert result.metrics.mrr == pytest.approx((1 + 1 / 2.5 + 1 / 3) / 3)
    assert result.metrics.count == 3
    assert query_auc(model, kb, "r1", head="e0", answers=["e4", "e2", "e0"]) == result


def test_query_auc_asks_for_heads_too():
    kb, model = as_kb([], 4, 1), constant_model(4, 1)
    model.heads.data[0, 2] = torch.tensor([1.0, 2.0, 3.0, 4.0])
    result = query_auc(model, kb, 0, tail=2, answers=[1])
    assert (result.auc_pr, result.metrics.mr) == (pytest.approx(1 / 3), 3)
    assert model.calls == [[(HEAD, 0, 2)]]


@pytest.mark.parametrize("side", ["head", "tail"])
def test_query_auc_does_not_take_a_fact_as_evidence_for_itself(side):
    loop = (1, 1, 1)
    facts = [(0, 0, 1), (1, 0, 2)] if side == "tail" else [(1, 0, 0), (2, 0, 1)]
    step = [0, 2] if side == "tail" else [2, 0]  # ends, or begins, with the loop
    rules = RuleSet.build(["r0", "r1"], head=[0], steps=[step])
    model = KBLRN.from_data(as_kb([*facts, loop], 3, 2), "r", rules=rules)
    with torch.no_grad():
        model.experts["relational"].weight.fill_(5.0)
    given = {"head" if side == "tail" else "tail": facts[0][0 if side == "tail" else 2]}
    result = query_auc(model, as_kb([*facts, loop], 3, 2), 0, answers=[1], **given)
    # Without the fact, nothing tells entity 1 from the two others.
    assert result.metrics.mr == 2
    assert result.auc_pr == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("given", "answers", "message"),
    [
        ({}, [1], "exactly one of 'head' and 'tail'"),
        ({"head": 0, "tail": 0}, [1], "exactly one of 'head' and 'tail'"),
        ({"head": 0}, [], "'answers' must name at least one entity"),
        ({"head": 0}, [4], r"must lie in 0 to 3 \(got 4\)"),
        ({"tail": -1}, [1], r"must lie in 0 to 3 \(got -1\)"),
        ({"tail": "nobody"}, [1], "unknown entity 'nobody'"),
    ],
)
def test_query_auc_refuses(given, answers, message):
    with pytest.raises(ValueError, match=message):
        query_auc(constant_model(4, 1), as_kb([], 4, 1), 0, answers=answers, **given)
