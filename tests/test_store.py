"""Files that are written whole, and checked before anything looks into them."""

import errno
import random

import pytest
import torch

from kblrn_pyg.data import DataError, Names, load_kb, make_kb, save_kb
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
    assert first_line.startswith(b"kblrn_pyg model 1 sha256:")
    assert names_in(tmp_path / "new") == ["model"]


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


def test_python_objects_are_not_run(tmp_path):
    kb = small_kb()
    kb.thing = Names("x", [])
    save_kb(kb, tmp_path / "kb")
    with pytest.raises(DataError, match="holds Python objects"):
        load_kb(tmp_path / "kb")


def test_saved_files_are_for_everybody(tmp_path):
    (tmp_path / "plain").touch()
    save_kb(small_kb(), tmp_path / "kb")
    usual = (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "kb").stat().st_mode == usual


def full_disk(*args):
    raise OSError(errno.ENOSPC, "No space left on device")


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
