"""The semi-synthetic test: is an entity high, because its value is above 0.5?"""

import json

import pytest
import torch
from scripts import run
from semi_synthetic import compare, learn, make_semi_synthetic, measure

from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import load_dataset

BINS = {"evidence_bins": 64}


@pytest.fixture(scope="module")
def families():
    return load_dataset("Families")["train"]


@pytest.fixture(scope="module")
def made(families):
    return make_semi_synthetic(families, "lives_in")


def test_facts_follow_from_values(families, made):
    train, size = made.train, families["entity"].num_nodes
    value = train["entity"].x[:, 0]
    assert train.attribute_names == ["value"]
    assert train["entity"].name[size:] == ["low", "high"]
    assert ((value[:size] >= 0) & (value[:size] < 1)).all()
    assert value[size:].isnan().all()
    assert abs(value[:size].mean() - 0.5) < 0.03
    head, tail = train["entity", "is_a", "entity"].edge_index
    assert torch.equal(tail == size + 1, value[head] > 0.5)
    # Everything else is as it was.
    old = [index[: flat_triples(families)[0].numel()] for index in flat_triples(train)]
    for mine, theirs in zip(old, flat_triples(families)):
        assert torch.equal(mine, theirs)


def test_70_15_15(families, made):
    people = families["entity", "lives_in", "entity"].edge_index[0].unique()
    asked = torch.cat([*made.asked.values()])
    assert torch.equal(asked.sort().values, people)
    for split, fraction in (("train", 0.7), ("val", 0.15), ("test", 0.15)):
        assert abs(len(made.asked[split]) - fraction * len(people)) <= 2
    head, _ = made.train["entity", "is_a", "entity"].edge_index
    assert torch.equal(head.sort().values, made.asked["train"].sort().values)
    assert not torch.isin(made.others, people).any()
    assert len(made.others.unique()) == len(made.asked["test"])


def test_seeds(families, made):
    again, other = (make_semi_synthetic(families, "lives_in", seed) for seed in (0, 1))
    value = made.train["entity"].x[:-2]
    assert torch.equal(again.train["entity"].x[:-2], value)
    assert torch.equal(again.asked["test"], made.asked["test"])
    assert not torch.equal(other.train["entity"].x[:-2], value)
    with pytest.raises(ValueError, match="'prefix' must be that of a relation"):
        make_semi_synthetic(families, "nothing")


def test_true_values_tell_and_permuted_ones_do_not(made):
    rows = list(compare(made, permutations=3, **BINS))
    assert [row["numbers"] for row in rows] == ["true", *["permuted"] * 3]
    true, *permuted = (row["accuracy"] for row in rows)
    assert true >= 0.99
    assert 0.45 <= sum(permuted) / 3 <= 0.55


def test_another_draw_of_values(families):
    other = make_semi_synthetic(families, "lives_in", seed=1)
    true, *permuted = (row["accuracy"] for row in compare(other, 2, **BINS))
    assert true >= 0.99
    assert 0.45 <= sum(permuted) / 2 <= 0.55


def test_without_bins_there_is_nothing_to_learn_from(made):
    model = learn(made, made.train, epochs=1, lr=0.05)
    assert 0.4 <= measure(made, model)["accuracy"] <= 0.6


def test_command(tmp_path):
    out = tmp_path / "found.json"
    words = ["--bins", 8, "--permutations", 1, "--epochs", 1, "--json", out]
    done = run("python", "benchmarks/semi_synthetic.py", *words)
    assert done.code == 0, done.err
    first, true, _ = done.out.strip().splitlines()
    assert first.startswith("Families: {'test': 204")
    found = json.loads(out.read_text())
    assert [row["numbers"] for row in found["rows"]] == ["true", "permuted"]
    assert true.startswith(f"true      accuracy {found['rows'][0]['accuracy']:.4f}")
    assert found["evidence_bins"] == 8
