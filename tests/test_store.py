"""Files that are written whole, and checked before anything looks into them."""

import errno
import hashlib
import io
import random
import tracemalloc

import numpy as np
import pytest
import torch

from kblrn_pyg.data import DataError, Names, load_kb, make_kb, save_kb
from kblrn_pyg.data.packing import pack_names, unpack_names
from kblrn_pyg.data.store import load_tensors, save_tensors
from kblrn_pyg.data.whole import whole_file, write_bytes, write_text


def small_kb():
    return make_kb(["a", "b"], ["r"], tuple(torch.tensor([[0], [0], [1]])))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_tensors_come_back(tmp_path):
    content = {"x": torch.randn(3, 2), "names": ["a", "ß"], "none": None, "f": 0.1}
    save_tensors(content, tmp_path / "new" / "model", "model")
    found = load_tensors(tmp_path / "new" / "model", "model")
    assert found.keys() == content.keys()
    assert torch.equal(found.pop("x"), content.pop("x"))
    assert found == content
    first_line = (tmp_path / "new" / "model").read_bytes().split(b"\n")[0]
    assert first_line.startswith(b"kblrn_pyg model 2 sha256:")
    assert names_in(tmp_path / "new") == ["model"]


NAMES = [f"name {i}" for i in range(200)]


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        ["", *NAMES],
        ["\n", "\x0b\n", *NAMES, ""],
        ["ß", "𝄞", "\ud800", "\0", *NAMES],
    ],
)
def test_many_names_come_back(tmp_path, names):
    content = {"one": {"names": names}, "other": {"names": names}, "few": ["a", 1]}
    save_tensors(content, tmp_path / "file", "rules")
    found = load_tensors(tmp_path / "file", "rules")
    assert found == content
    assert found["one"]["names"] is found["other"]["names"]
    assert content["one"]["names"] is names  # what was saved is as it was
    assert unpack_names(pack_names([])) == []


def test_what_was_deleted_is_not_saved(tmp_path):
    both = torch.arange(20_000)
    save_tensors({"x": both[:10], "y": both[:10]}, tmp_path / "few", "rules")
    assert (tmp_path / "few").stat().st_size < 5000
    halves = {"x": both[:10_000], "y": both[10_000:]}
    save_tensors(halves, tmp_path / "all", "rules")
    found = load_tensors(tmp_path / "all", "rules")
    assert all(torch.equal(found[key], halves[key]) for key in halves)
    storages = {found[key].untyped_storage().data_ptr() for key in halves}
    assert len(storages) == 1  # as before


def test_weights_keep_their_attributes(tmp_path):
    weights = torch.nn.Linear(2, 3).state_dict()
    save_tensors({"weights": weights}, tmp_path / "file", "model")
    found = load_tensors(tmp_path / "file", "model")["weights"]
    assert found._metadata == weights._metadata


@pytest.mark.parametrize(("kind", "newest"), [("model", 2), ("rules", 3)])
def test_files_of_the_first_version_are_read(tmp_path, kind, newest):
    path = tmp_path / "file"
    for version in range(1, newest + 2):
        buffer = io.BytesIO()
        torch.save({"names": NAMES}, buffer)
        begin = f"kblrn_pyg {kind} {version}".encode()
        digest = hashlib.sha256(begin + buffer.getvalue()).hexdigest()
        path.write_bytes(begin + f" sha256:{digest}\n".encode() + buffer.getvalue())
        if version <= newest:
            assert load_tensors(path, kind) == {"names": NAMES}
    with pytest.raises(DataError, match=f"has format {newest + 1}, expected {newest}"):
        load_tensors(path, kind)


def test_files_are_written_and_read_piece_by_piece(tmp_path):
    """Nothing holds the file, or a copy of its tensors, as a whole."""
    path, content = tmp_path / "file", {"x": torch.zeros(1 << 24)}
    tracemalloc.start()
    save_tensors(content, path, "model")
    load_tensors(path, "model")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 23  # of 64 MB


def test_any_damage_is_told(tmp_path):
    path = tmp_path / "kb"
    save_kb(small_kb(), path)
    raw, rng = path.read_bytes(), random.Random(0)
    end = raw.index(b"\n") + 1
    bits = [rng.randrange(8 * len(raw)) for _ in range(300)]
    damaged = []
    for bit in [*bits, *range(8 * end)]:  # each bit of the first line, too
        changed = bytearray(raw)
        changed[bit // 8] ^= 1 << bit % 8
        damaged.append(bytes(changed))
    damaged += [raw[: rng.randrange(len(raw))] for _ in range(50)]
    damaged += [raw[:end], raw[:-1], raw + b"\0", raw + raw, b"\n" + raw]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"kb: is damaged"):
            load_kb(path)
    path.write_bytes(raw)
    assert load_kb(path)["entity"].name == ["a", "b"]


def test_files_of_other_kinds_and_versions_say_what_they_are(tmp_path):
    path = tmp_path / "file"
    save_tensors({"x": 1}, path, "rules")
    with pytest.raises(DataError, match="file: is a rule file, expected a model file"):
        load_tensors(path, "model")
    torch.save({"x": 1}, path)
    with pytest.raises(DataError, match="written by an older version, make it again"):
        load_kb(path)
    with pytest.raises(ValueError, match=r"'kind' must be one of .* \(got 'thing'\)"):
        save_tensors({}, path, "thing")


@pytest.mark.parametrize("content", [b"a,b\n", b"", b"\x80\x02."])
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match="file: is damaged or not a knowledge base"):
        load_kb(tmp_path / "file")
    with pytest.raises(DataError, match="no such file"):
        load_kb(tmp_path / "nowhere")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        load_kb(tmp_path)


def test_python_objects_are_not_written(tmp_path):
    """They were, and what a file of them held could not be read again."""
    kb = small_kb()
    kb.thing = [Names("x", [])]
    with pytest.raises(DataError, match="kb: 'thing' holds Python objects of Names"):
        save_kb(kb, tmp_path / "kb")
    assert not list(tmp_path.iterdir())


def test_numbers_and_strings_of_numpy_can_be_read_again(tmp_path):
    """As names are that were an array; nothing could read what was written."""
    kb = small_kb()
    kb["entity"].num_nodes = np.int64(kb["entity"].num_nodes)
    kb["entity"].name = list(np.array(kb["entity"].name))
    kb.attribute_names = list(map(np.str_, kb.attribute_names))
    for one in kb.edge_types:
        kb[tuple(map(np.str_, one))].about = {np.int32(1): [np.float32(0.5), np.True_]}
    save_kb(kb, tmp_path / "kb")
    found = load_kb(tmp_path / "kb")
    assert found["entity"].num_nodes == kb["entity"].num_nodes
    assert found["entity"].name == kb["entity"].name
    assert found.edge_types == kb.edge_types
    assert found[kb.edge_types[0]].about == {1: [0.5, True]}


def test_saved_files_are_for_everybody(tmp_path):
    (tmp_path / "plain").touch()
    save_kb(small_kb(), tmp_path / "kb")
    usual = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "kb").stat().st_mode == usual


def full_disk(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_becomes_full_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    save_tensors({"x": 1}, path, "model")
    monkeypatch.setattr("kblrn_pyg.data.store.hashlib.sha256", FullDisk)
    message = r"file: cannot be written \(No space left on device\), what was there"
    with pytest.raises(DataError, match=message):
        save_tensors({"x": torch.zeros(100_000)}, path, "model")
    monkeypatch.undo()
    assert load_tensors(path, "model") == {"x": 1}
    assert names_in(tmp_path) == ["file"]


class FullDisk:
    def __init__(self, begin):
        self.update = full_disk

    def hexdigest(self):
        return ""


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch, name):
    path = tmp_path / "text"
    write_text(path, "before\n")
    monkeypatch.setattr(f"kblrn_pyg.data.whole.os.{name}", full_disk)
    message = r"text: cannot be written \(No space left on device\), what was there"
    with pytest.raises(DataError, match=message):
        write_text(path, "after\n")
    assert path.read_text() == "before\n"
    assert names_in(tmp_path) == ["text"]


def test_an_interruption_leaves_the_old_file(tmp_path):
    path = tmp_path / "text"
    write_bytes(path, b"be", b"fore\n")

    def interrupted():
        with whole_file(path, "w", encoding="utf-8") as file:
            file.write("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "before\n"
    assert names_in(tmp_path) == ["text"]


def test_paths_that_cannot_be_written(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match=r"folder: cannot be written \(Is a directory"):
        write_text(tmp_path / "folder", "text")
    write_text(tmp_path / "file", "text")
    with pytest.raises(DataError, match="a: cannot be written"):
        write_text(tmp_path / "file" / "a", "text")
    assert names_in(tmp_path) == ["file", "folder"]
