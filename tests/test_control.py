"""Controls of numbers, and what is concluded from them."""

import json

import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import PairAttribute, layer_features
from kblrn_pyg.data.control import CONTROLS, control_numbers
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.evaluation.control import ControlResult
from kblrn_pyg.nn import LayerExpert


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
        ({"true": 9, "permuted": 9, "random": 9, "known": 9, "without": 1}, "not"),
        ({"true": 1, "permuted": 9, "random": 9, "known": 10}, "The n"),
    ],
)
def test_the_verdict_follows_the_ranks(rank, begin):
    verdict = result(**rank).verdict()
    expected = {
        "The n": "The numbers are used: they add",
        "What": "What the numbers are is not used: they add",
        "not": "The numbers are not used: they change the MRR by",
    }
    assert verdict.startswith(expected[begin])


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
