"""Nothing that is loaded runs code, and nothing but files is waited for."""

import hashlib
import io
import os
import pickle

import pytest
import torch
from attack.ids import small_kb, small_model

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, load_kb
from kblrn_pyg.data.store import save_splits
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.files import RawFile
from kblrn_pyg.datasets.names import Counts
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import RuleSet


class Code:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class SmallDataset(KBDataset):
    counts = Counts(9, 3, 0, 0, 0)

    def build(self, paths):
        return dict.fromkeys(self.splits, small_kb())

    def process(self):
        save_splits(self.build({}), self.processed_paths[0])

    def _download(self):
        pass


@pytest.mark.parametrize("name", ["pre_transform.pt", "pre_filter.pt"])
def test_what_lies_beside_a_data_set_is_not_unpickled(tmp_path, name):
    SmallDataset(tmp_path)
    torch.save(Code(tmp_path / "ran"), tmp_path / "processed" / name)
    for options in ({}, {"force_reload": True}):
        assert len(SmallDataset(tmp_path, **options).kbs) == 3
    assert not (tmp_path / "ran").exists()


def test_another_pre_transform_is_told(tmp_path):
    SmallDataset(tmp_path)
    with pytest.warns(UserWarning, match="processed with the 'pre_transform' None"):
        SmallDataset(tmp_path, pre_transform=lambda data: data)
    files = sorted(path.name for path in (tmp_path / "processed").iterdir())
    assert files == ["pre_transform.txt", "splits.kb"]


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_pickles_are_not_loaded(tmp_path, protocol):
    path = tmp_path / "file"
    for write in (torch.save, lambda code, to: to.write_bytes(pickled(code, protocol))):
        write(Code(tmp_path / "ran"), path)
        for load in (load_kb, RuleSet.load, KBLRN.load):
            with pytest.raises(DataError):
                load(path)
    assert not (tmp_path / "ran").exists()


def pickled(code, protocol):
    return pickle.dumps(code, protocol=protocol)


def write_pickled(content, path, kind):
    """Writes what the library does not write."""
    buffer = io.BytesIO()
    torch.save(content, buffer)
    begin = f"kblrn_pyg {kind} 2".encode()
    digest = hashlib.sha256(begin + buffer.getvalue()).hexdigest()
    path.write_bytes(begin + f" sha256:{digest}\n".encode() + buffer.getvalue())


def test_code_behind_a_right_checksum_is_not_run(tmp_path):
    for kind, load in (
        ("knowledge base", load_kb),
        ("rules", RuleSet.load),
        ("model", KBLRN.load),
    ):
        write_pickled({"kb": Code(tmp_path / "ran")}, tmp_path / "file", kind)
        with pytest.raises(DataError, match="holds Python objects"):
            load(tmp_path / "file")
    assert not (tmp_path / "ran").exists()


def test_the_data_set_of_a_foreign_run_is_not_unpickled(tmp_path, caplog):
    """A folder that brings its own data set root is evaluated."""
    root = tmp_path / "run" / "data"
    folder = root / "FB15k-237" / "processed"
    save_splits(
        dict.fromkeys(("train", "val", "test"), small_kb()), folder / "splits.kb"
    )
    torch.save(Code(tmp_path / "ran"), folder / "pre_transform.pt")
    text = f'{{"dataset": "FB15k-237", "root": "{root}"}}'
    (tmp_path / "run" / "settings.json").write_text(text)
    small_model("lrne", "all").save(tmp_path / "run" / "model.pt")
    assert main(["evaluate", str(tmp_path / "run")]) == 0
    assert not (tmp_path / "ran").exists()
    assert str(root) in caplog.text  # which data set is no secret


def test_a_foreign_run_makes_no_data_set(tmp_path, capsys, monkeypatch):
    """Its settings name a place where nothing is: nothing is fetched or written."""
    fetched = []
    monkeypatch.setattr(RawFile, "fetch", lambda self, to: fetched.append(to))
    root, run = tmp_path / "elsewhere", tmp_path / "run"
    small_model("lrne", "all").save(run / "model.pt")
    text = f'{{"dataset": "FB15k-237", "root": "{root}", "training": {{}}}}'
    (run / "settings.json").write_text(text)
    resumed = ["train", "FB15k-237", "--resume", "--epochs", "1", "--out"]
    for words in (["evaluate"], ["report"], ["calibrate"], ["control"], resumed):
        command = words[0]
        assert main([*words, str(run)]) == 2
        error = capsys.readouterr().err
        assert error.splitlines()[-1].startswith(f"kblrn {command}: ")
        assert "is not in" in error
    assert fetched == []
    assert not root.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_pipes_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for load in (load_kb, RuleSet.load, KBLRN.load):
        with pytest.raises(DataError, match="pipe: is not a file, expected a"):
            load(tmp_path / "pipe")
