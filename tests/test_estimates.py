"""Sizes of large bodies are estimated within the stated error, and marked so."""

import numpy as np
import pytest
from test_mining import as_dict, as_kb

from kblrn_pyg.explain import WeightedRules
from kblrn_pyg.rules import RuleSet, mine_rules, read_rules, write_rules
from kblrn_pyg.rules.estimate import STANDARD_ERROR


@pytest.fixture(scope="module")
def skewed():
    """A few entities have most of the facts, and middles overlap."""
    rng = np.random.default_rng(0)
    size, num_facts = 600, 9000
    weight = 1 / np.arange(1, size + 1)
    ends = rng.choice(size, (2, num_facts), p=weight / weight.sum())
    ends[1, ::3] = rng.integers(size, size=len(ends[1, ::3]))
    rel = rng.integers(3, size=num_facts)
    triples = sorted(set(zip(ends[0], rel, ends[1])))
    return as_kb(triples, size, 3)


@pytest.fixture(scope="module")
def exact(skewed):
    return mine_rules(skewed, max_body_pairs=10**9)


@pytest.fixture(scope="module")
def estimated(skewed):
    return mine_rules(skewed, max_body_pairs=50_000)


def test_estimates_are_within_the_stated_error(exact, estimated):
    assert not exact.estimated.any()
    about = estimated.estimated
    assert 10 < about.sum() < len(about)
    assert (estimated.num_steps[about] == 2).all()
    for name in ("body_size", "pca_body_size"):
        true, found = getattr(exact, name), getattr(estimated, name)
        assert (true[~about] == found[~about]).all()
        error = found[about] / true[about] - 1
        assert 0 < np.abs(error).max() < 4 * STANDARD_ERROR
        assert np.sqrt((error**2).mean()) < 1.2 * STANDARD_ERROR
    assert (estimated.body_size >= estimated.pca_body_size).all()
    assert (estimated.pca_body_size >= estimated.support).all()
    assert (estimated.support == exact.support).all()


@pytest.mark.parametrize("choice", ["equal_ends", "equal_middle", "self_loops"])
def test_estimates_keep_to_the_semantics(skewed, choice):
    exact = mine_rules(skewed, **{choice: False})
    found = mine_rules(skewed, **{choice: False}, max_body_pairs=50_000)
    assert found.estimated.any()
    error = found.pca_body_size / exact.pca_body_size - 1
    assert np.abs(error).max() < 4 * STANDARD_ERROR


def test_estimates_are_the_same_in_every_run(skewed, estimated):
    again = mine_rules(skewed, max_body_pairs=50_000, num_threads=3)
    assert as_dict(again) == as_dict(estimated)


def test_sizes_without_overlap_are_estimated_exactly():
    """A body through one hub has a billion pairs, which are not walked."""
    size = 40_000
    triples = [(i, 0, size) for i in range(size)] + [(i, 1, i + 1) for i in range(99)]
    rules = mine_rules(as_kb(triples, size + 1, 2))
    through_hub = rules.bodies().index((False, (0, 1)), rules.of(1).start)
    assert rules.estimated.tolist() == [b == (False, (0, 1)) for b in rules.bodies()]
    assert rules.support[through_hub] == 99
    assert rules.body_size[through_hub] == size**2
    assert rules.pca_body_size[through_hub] == 99 * size


def test_estimates_are_told(estimated, tmp_path):
    lines = str(estimated).splitlines()
    told = ["confidence about 0." in line for line in lines]
    assert told == estimated.estimated.tolist()
    assert ["PCA confidence about 0." in line for line in lines] == told
    few = estimated.select(np.flatnonzero(estimated.estimated)[:2])
    table = WeightedRules(few, np.ones(2), 2).to_text()
    assert table.count("about 0.") == 2


@pytest.mark.parametrize("format", ["amie", "anyburl"])
def test_files_keep_what_is_estimated(estimated, tmp_path, format):
    estimated.save(tmp_path / "rules.pt")
    write_rules(estimated, tmp_path / "rules.txt", format)
    for name in ("rules.pt", "rules.txt"):
        again, _ = read_rules(tmp_path / name, estimated.relations)
        assert _marks(again) == _marks(estimated)
    assert (estimated.merge(again).estimated == estimated.estimated).all()


def _marks(rules):
    return dict(zip(zip(rules.head.tolist(), rules.bodies()), rules.estimated.tolist()))


def test_rules_of_earlier_files_are_exact(exact):
    content = exact.to_dict()
    del content["estimated"]
    assert not RuleSet.from_dict(content).estimated.any()


def test_a_negative_number_of_pairs_is_refused(skewed):
    with pytest.raises(ValueError, match=r"'max_body_pairs' must be .* \(got -1\)"):
        mine_rules(skewed, max_body_pairs=-1)
