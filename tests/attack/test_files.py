"""A part of the attacks by files."""

import numpy as np
import pytest
import torch
from attack.files import KINDS, LOADERS, folder
from attack.ids import small_kb, small_model, small_rules
from attack.processes import run_apart

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, read_triples
from kblrn_pyg.data.parquet import write_parquet
from kblrn_pyg.data.store import load_tensors, save_splits, save_tensors
from kblrn_pyg.evaluation import RankTable, evaluate
from kblrn_pyg.rules import RuleSet


def test_files_are_refused_or_used():
    trials = {"bits": 300, "lengths": 100, "contents": 100, "pickles": 100}
    found = run_apart({f"files.attack_{name}": n for name, n in trials.items()})
    assert [one.failure for one in found.values()] == [""] * 4
    for one in found.values():
        assert one.trials >= 100
    for name, one in found.items():
        files = LOADERS if name.endswith(("bits", "lengths")) else KINDS
        assert {f"refused {name}" for name in files} <= set(one.outcomes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": lambda steps: steps + (1 << 56)}, "'steps' must hold codes"),
        ({"steps": lambda steps: -steps - 2}, "'steps' must hold codes of 'relations'"),
        ({"head": lambda head: head.flip(0)}, "'head' must hold ids .* in their order"),
        ({"head": lambda head: head + 3}, "'head' must hold ids of 'relations'"),
        ({"support": lambda support: support[1:]}, "'support' must have .* entries"),
        ({"parallel": lambda flag: ~flag}, "parallel bodies must have two steps"),
        ({"body_size": lambda size: size - 10**6}, "'body_size' must hold counts"),
        ({"head": lambda head: head.double()}, "'head' must be a tensor of 1 dimens"),
        ({"semantics": lambda _: {"equal_ends": 1}}, "the semantics are unknown"),
        ({"relations": lambda _: ["a", "a", "b"]}, "'relations' must not repeat"),
    ],
)
def test_rules_that_kernels_could_not_follow_are_refused(tmp_path, change, message):
    rules = small_rules().to_dict()
    for name, new in change.items():
        rules[name] = new(rules[name])
    save_tensors(rules, tmp_path / "rules.pt", "rules")
    with pytest.raises(DataError, match=rf"rules\.pt: .*{message}"):
        RuleSet.load(tmp_path / "rules.pt")
    kb = small_kb().clone()
    kb.rules = rules
    with pytest.raises(DataError, match=message):
        RuleSet.of_data(kb)


def test_facts_beyond_the_entities_are_refused(tmp_path, capsys):
    """A high bit allocated terabytes in 'kblrn data'."""
    kb = small_kb().clone()
    kb["entity", "a", "entity"].edge_index[0, 0] |= 1 << 40
    path = tmp_path / "processed" / "splits.kb"
    save_splits(dict.fromkeys(("train", "val", "test"), kb), path)
    assert main(["data", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "edge_index must lie in 0 to 8" in error


def test_models_of_other_sizes_are_refused():
    path = folder() / "other.pt"
    for change in (
        {"sizes": [10**9, 3]},
        {"negatives": [0, "triple"]},
        {"negatives": [0.5, "triple"]},
        {"dtype": "load"},
    ):
        stored = load_tensors(folder() / "model.pt", KINDS["model.pt"])
        save_tensors(stored | change, path, "model")
        with pytest.raises(DataError, match=r"other\.pt: "):
            LOADERS["model.pt"](path)
    assert torch.is_tensor(stored["known"])


def test_ranks_have_a_checksum(tmp_path):
    """Some bits of a NumPy archive, such as dates, can differ unnoticed."""
    evaluate(small_model("n", "all"), small_kb()).save(tmp_path / "ranks.npz")
    raw = (tmp_path / "ranks.npz").read_bytes()
    with np.load(tmp_path / "ranks.npz") as archive:  # as NumPy itself reads it
        assert archive["rank"].min() >= 1
    for bit in range(0, 8 * len(raw), 97):
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "ranks.npz").write_bytes(changed)
        with pytest.raises(DataError, match="is damaged or not a rank table"):
            RankTable.load(tmp_path / "ranks.npz")


def test_ranks_of_older_versions_are_read(tmp_path):
    table = evaluate(small_model("n", "all"), small_kb())
    np.savez_compressed(tmp_path / "ranks.npz", **table.to_dict())
    assert RankTable.load(tmp_path / "ranks.npz").metrics() == table.metrics()


def test_pages_of_parquet_files_have_checksums(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    names = {"head": ["a"], "relation": ["r"], "tail": ["some long name of an entity"]}
    write_parquet(path, names)
    raw = path.read_bytes()
    at = raw.index(b"some long name")
    path.write_bytes(raw[:at] + b"S" + raw[at + 1 :])
    with pytest.raises(DataError, match=r"a\.parquet:1: broken Parquet"):
        read_triples(path)


@pytest.mark.parametrize("value", [-1, None, [], {"a": 1}])
def test_checkpoints_of_other_content_are_refused(tmp_path, value):
    stored = load_tensors(folder() / "checkpoint.pt", "checkpoint")
    for name in ("model", "best", "position", "history"):
        if name == "history" and value == []:
            continue  # that of a training that has just begun
        save_tensors(stored | {name: value}, tmp_path / "odd.pt", "checkpoint")
        with pytest.raises(DataError, match=f"is not a checkpoint: its {name} is of"):
            LOADERS["checkpoint.pt"](tmp_path / "odd.pt")
