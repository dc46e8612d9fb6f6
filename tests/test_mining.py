"""Mined rules equal those of the naive twin, measure by measure."""

import itertools
import random

import naive
import numpy as np
import pytest
import torch

from kblrn_pyg.data import make_kb
from kblrn_pyg.rules import RuleSet, mine_rules
from kblrn_pyg.rules import mine as mine_module

NUM_KBS = 300
CHOICES = ("equal_ends", "equal_middle", "self_loops", "head_in_body")
ALL_CHOICES = [
    dict(zip(CHOICES, c)) for c in itertools.product([True, False], repeat=4)
]


def as_kb(triples, num_entities, num_relations):
    columns = torch.tensor(triples, dtype=torch.long).reshape(-1, 3).t()
    return make_kb(
        [f"e{i}" for i in range(num_entities)],
        [f"r{i}" for i in range(num_relations)],
        tuple(column.contiguous() for column in columns),
    )


def as_dict(rules: RuleSet):
    """Puts a rule set into the naive twin's form."""
    columns = (rules.support, rules.head_size, rules.body_size, rules.pca_body_size)
    names = ("support", "head_size", "body_size", "pca_body_size")
    return {
        (head, ("parallel" if parallel else "path", codes)): {
            name: int(column[i]) for name, column in zip(names, columns)
        }
        for i, (head, (parallel, codes)) in enumerate(
            zip(rules.head.tolist(), rules.bodies())
        )
    }


@pytest.mark.parametrize("part", range(10))
def test_measures_equal_the_naive_ones(part):
    rng = random.Random(part)
    for i in range(NUM_KBS // 10):
        kb = naive.random_kb(rng)
        choices = {} if i % 2 else rng.choice(ALL_CHOICES)
        rules = mine_rules(as_kb(*kb), parallel=True, min_head_coverage=0.0, **choices)
        expected = naive.mine(*kb, parallel=True, min_head_coverage=0.0, **choices)
        assert as_dict(rules) == expected
        assert len(rules) == len(expected)


@pytest.mark.parametrize("seed", range(40))
def test_thresholds_equal_the_naive_ones(seed):
    rng = random.Random(seed)
    kb = naive.random_kb(rng)
    settings = {
        "max_hops": rng.choice([1, 2]),
        "parallel": rng.random() < 0.5,
        "min_head_coverage": rng.choice([0.01, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0]),
        "min_support": rng.choice([1, 2, 3]),
        "min_confidence": rng.choice([0.0, 0.1, 0.2, 0.5]),
        "min_pca_confidence": rng.choice([0.0, 0.1, 0.3, 0.7]),
    }
    assert as_dict(mine_rules(as_kb(*kb), **settings)) == naive.mine(*kb, **settings)


@pytest.mark.parametrize("seed", range(20))
def test_skyline_equals_the_naive_one(seed):
    kb = naive.random_kb(random.Random(seed))
    rules = mine_rules(as_kb(*kb), parallel=True, skyline=True)
    assert as_dict(rules) == naive.skyline(naive.mine(*kb, parallel=True))


def test_threads_and_small_tables_change_nothing(monkeypatch):
    rng = random.Random(0)
    kbs = [naive.random_kb(rng) for _ in range(20)]
    whole = [str(mine_rules(as_kb(*kb), parallel=True, num_threads=1)) for kb in kbs]
    for table, threads in ((1, 1), (30, 3), (1 << 20, 4)):
        monkeypatch.setattr(mine_module, "_MAX_TABLE", table)
        for kb, expected in zip(kbs, whole):
            rules = mine_rules(as_kb(*kb), parallel=True, num_threads=threads)
            assert str(rules) == expected


def test_rules_without_confidences():
    kb = naive.random_kb(random.Random(3))
    rules = mine_rules(as_kb(*kb), confidences=False)
    assert len(rules) > 0
    assert np.isnan(rules.confidence).all()
    assert (rules.support == mine_rules(as_kb(*kb)).support).all()
    with pytest.raises(ValueError, match="'confidences' must be True"):
        mine_rules(as_kb(*kb), confidences=False, min_confidence=0.1)
    with pytest.raises(ValueError, match=r"'max_hops' must be 1 or 2 \(got 3\)"):
        mine_rules(as_kb(*kb), max_hops=3)


def test_rules_per_relation_are_those_with_most_support():
    kb = naive.random_kb(random.Random(5))
    everything = mine_rules(as_kb(*kb))
    few = mine_rules(as_kb(*kb), max_rules_per_relation=2)
    for relation in range(kb[2]):
        most = sorted(
            everything.support[everything.of(relation)].tolist(), reverse=True
        )
        assert few.support[few.of(relation)].tolist() == most[:2]


def test_progress_bars(capsys, monkeypatch):
    monkeypatch.setattr("kblrn_pyg.progress.LINE_SECONDS", 0.0)
    kb = as_kb([(0, 0, 1), (1, 0, 2), (0, 1, 2)], 3, 2)
    mine_rules(kb)
    assert capsys.readouterr().err == ""
    mine_rules(kb, progress=True)
    bars = capsys.readouterr().err
    assert "mining" in bars
    assert "measuring" in bars
