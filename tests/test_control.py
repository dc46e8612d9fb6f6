"""Controls of numbers, and what is concluded from them."""

import json

import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import PairAttribute, layer_features
from kblrn_pyg.data.control import CONTROLS, control_numbers
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import RankTable, evaluate
from kblrn_pyg.evaluation.control import ControlResult
from kblrn_pyg.nn import LayerExpert
from kblrn_pyg.recipes import (
    Recipe,
    Stage,
    control_by_recipe,
    train_by_recipe,
    write_recipe,
)
from kblrn_pyg.recipes.apply import train_stage


@pytest.fixture
def kb():
    kb = as_kb([(i, 0, (i + 1) % 30) for i in range(30)], 30, 1)
    x = torch.arange(60, dtype=torch.double).view(30, 2).square()
    x[::4, 1] = torch.nan
    kb["entity"].x, kb.attribute_names = x, ["a", "b"]
    return kb


def test_numbers_of_controls(kb):
    x = kb["entity"].x.clone()
    found = {name: control_numbers(kb, name, 1)["entity"].x for name in CONTROLS}
    assert torch.equal(kb["entity"].x.isnan(), x.isnan())
    for one in found.values():
        assert torch.equal(one.isnan(), x.isnan())
    torch.testing.assert_close(found["true"], x, equal_nan=True)
    for column in (0, 1):
        true, permuted, random = (
            found[name][:, column] for name in ("true", "permuted", "random")
        )
        known = ~true.isnan()
        assert torch.equal(true[known].sort().values, permuted[known].sort().values)
        assert not torch.equal(true[known], permuted[known])
        assert random[known].min() >= true[known].min()
        assert random[known].max() <= true[known].max()
        assert random[known].unique().numel() == int(known.sum())
    assert set(found["known"][~x.isnan()].tolist()) == {1.0}
    assert torch.equal(
        control_numbers(kb, "permuted", 1)["entity"].x[:, 0], found["permuted"][:, 0]
    )
    with pytest.raises(ValueError, match="'control' must be one of true, permuted"):
        control_numbers(kb, "shuffled")


def test_a_layer_of_equal_numbers_knows_only_whether_they_are_known(kb):
    same = control_numbers(kb, "known")
    attributes = [
        PairAttribute("b", "difference", 1, 1),
        PairAttribute("b", "log_ratio", 1, 1),
        PairAttribute("place", "haversine", 0, 1),
    ]
    expert = LayerExpert(same, layer_features(same, 0.1, attributes))
    assert expert.features.knot_ptr.diff().tolist() == [1, 1, 1]
    torch.nn.init.normal_(expert.weight)
    head, rel = torch.tensor([1]), torch.tensor([0])
    tails = torch.arange(30)
    scores = expert(head, rel, tails)
    is_known = ~same["entity"].x[:, 1].isnan()
    assert scores[is_known].unique().numel() == 1
    assert scores[~is_known].unique().numel() == 1
    assert scores[is_known][0] != scores[~is_known][0]


def ranks(values, seed=0):
    values = np.asarray(values, dtype=float)
    ids = np.arange(len(values))
    zero = np.zeros_like(ids)
    return RankTable(["r"], zero, zero, ids, ids, values, zero + 99, zero + 1)


def result(**rank):
    rng = np.random.default_rng(0)
    return ControlResult(
        {name: ranks(one + rng.integers(0, 3, 200)) for name, one in rank.items()}
    )


@pytest.mark.parametrize(
    ("rank", "begin"),
    [
        ({"true": 1, "permuted": 9, "random": 9, "known": 9, "without": 10}, "The n"),
        ({"true": 1, "permuted": 1, "random": 9, "known": 9, "without": 10}, "What"),
        ({"true": 9, "permuted": 9, "random": 9, "known": 9, "without": 9}, "not"),
        ({"true": 9, "permuted": 9, "random": 9, "known": 9, "without": 1}, "harm"),
        ({"true": 1, "permuted": 9, "random": 9, "known": 10}, "The n"),
        ({"true": 9, "permuted": 9, "random": 9, "known": 1}, "harm"),
    ],
)
def test_the_verdict_follows_the_ranks(rank, begin):
    verdict = result(**rank).verdict()
    expected = {
        "The n": "The numbers are used: they add",
        "What": "What the numbers are is not used: they add",
        "not": "The numbers are not used: they change the MRR by",
        "harm": "The numbers do harm: with them, the MRR is",
    }
    assert verdict.startswith(expected[begin])
    assert ("within chance" in verdict) == (begin == "not")


def test_differences_are_those_of_queries():
    found = ControlResult({"true": ranks([1, 2, 4]), "without": ranks([2, 2, 1])})
    change = np.array([0.5, 0.0, -0.75])
    mean, error = found.difference("without")
    assert mean == pytest.approx(change.mean())
    assert error == pytest.approx(change.std() / 3**0.5)
    with pytest.raises(ValueError, match="about the same queries"):
        ControlResult({"true": ranks([1, 2]), "without": ranks([1, 2, 3])})


@pytest.mark.parametrize("kind", ["layer", "rbf"])
def test_the_command(tmp_path, capsys, kind):
    words = ["control", "Families", "--experts", "n", "--numerical", kind]
    words += ["--num-negatives", "all", "--lr", "0.05", "--epochs", "2"]
    words += ["--json", str(tmp_path / "found.json")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "The numbers are used: they add" in out.splitlines()[-1]
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found) == {*CONTROLS, "verdict"}
    assert found["true"]["mrr"] > found["permuted"]["mrr"]


def test_the_command_takes_a_run(tmp_path, capsys):
    folder = str(tmp_path / "run")
    words = ["train", "Families", "--experts", "rn", "--epochs", "1"]
    assert main([*words, "--num-negatives", "50", "--out", folder]) == 0
    capsys.readouterr()
    assert main(["control", folder, "--split", "val"]) == 0
    assert "without" in capsys.readouterr().out
    assert main(["control", folder, "--epochs", "2"]) == 2
    assert "leave out epochs" in capsys.readouterr().err
    assert main(["control", folder, "--split", "none"]) == 2
    assert "unknown split 'none'" in capsys.readouterr().err
    assert main(["control", "Families", "--experts", "lr"]) == 2
    assert "a model without the expert n" in capsys.readouterr().err


def test_rules_about_numbers_are_controlled_too(tmp_path, capsys):
    words = ["control", "Families", "--experts", "e", "--evidence-bins", "8"]
    words += ["--num-negatives", "all", "--lr", "0.05", "--epochs", "1"]
    assert main([*words, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found) == {*CONTROLS, "without", "verdict"}
    assert found["true"]["mrr"] != found["without"]["mrr"]
    assert main(["control", "Families", "--experts", "e"]) == 2
    assert "has no numbers to control" in capsys.readouterr().err


def staged(experts="lrn"):
    """Embeddings that learn apart from everything else, in a moment."""
    exact = {"num_negatives": None}
    return Recipe(
        "staged",
        (
            Stage("l", exact | {"hidden_channels": 8}, {"epochs": 1, "lr": 0.05}),
            Stage(
                experts.replace("l", ""),
                exact | {"numerical": "layer", "threshold": 0.1},
                {"epochs": 2, "lr": 0.05},
            ),
        ),
    )


def test_stages_without_numbers_are_trained_once(monkeypatch):
    trained = []

    def counted(stage, *others):
        trained.append(stage.experts)
        return train_stage(stage, *others)

    monkeypatch.setattr("kblrn_pyg.recipes.control.train_stage", counted)
    told = []
    found = control_by_recipe(staged("lrn"), load_dataset("Families"), tell=told.append)
    assert told == [*CONTROLS, "without"] == list(found.tables)
    # Embeddings, what has numbers once for each control, and what is without.
    assert trained == ["l", "rn", "rn", "rn", "rn", "r"]
    mrr = {name: one.mrr for name, one in found.metrics().items()}
    assert mrr["true"] > max(mrr["permuted"], mrr["random"], mrr["without"])


def test_true_numbers_are_what_the_recipe_gives():
    splits = load_dataset("Families")
    known = splits["val"]
    result = train_by_recipe(
        splits["train"], splits["val"], [splits["test"]], recipe=staged("ln")
    )
    alone = evaluate(result.model, splits["test"], [known])
    found = control_by_recipe(staged("ln"), splits).tables
    assert np.array_equal(found["true"].rank, alone.rank)
    assert not np.array_equal(found["permuted"].rank, alone.rank)


def test_a_recipe_without_numbers_is_refused():
    plan = Recipe("none", (Stage("l"), Stage("re")))
    with pytest.raises(ValueError, match="the experts lre have no numbers"):
        control_by_recipe(plan, load_dataset("Families"))
    assert Stage("e", {"evidence_bins": 4}).uses_numbers


def test_the_command_takes_a_run_by_a_recipe(tmp_path, capsys):
    path, folder = tmp_path / "staged.json", tmp_path / "run"
    write_recipe(staged("ln"), path)
    words = ["train", "Families", "--recipe", str(path), "--out", str(folder)]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["control", str(folder), "--split", "val"]) == 0
    out = capsys.readouterr().out
    assert "without" in out
    assert "numbers" in out.splitlines()[-1]
    assert main(["control", str(folder), "--budget", "1m"]) == 2
    assert "leave out budget" in capsys.readouterr().err
    (folder / "recipe.json").unlink()
    assert main(["control", str(folder)]) == 2
    assert "its training has not ended" in capsys.readouterr().err


def test_the_command_takes_a_recipe(tmp_path, capsys):
    path, found = tmp_path / "numbers.json", tmp_path / "found.json"
    write_recipe(Recipe("numbers", (Stage("n"),)), path)
    words = ["control", "Families", "--recipe", str(path), "--json", str(found)]
    assert main([*words, "--epochs", "1", "--num-negatives", "20"]) == 0
    assert "recipe numbers: as it was given" in capsys.readouterr().err
    assert set(json.loads(found.read_text())) == {*CONTROLS, "verdict"}
    assert main([*words, "--budget", "1m"]) == 2
    assert "--budget has no effect on recipe" in capsys.readouterr().err
