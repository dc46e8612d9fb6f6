"""Disks that are full, broken or read-only: files are whole or as they were."""

import errno
import os
import re
import stat
from pathlib import Path

import pytest
from attack.ids import small_kb, small_model, small_rules

from kblrn_pyg.cli.options import write_output
from kblrn_pyg.data import DataError, save_kb, whole
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.plotting.output import show_or_save
from kblrn_pyg.rules import write_rules
from kblrn_pyg.training import Run

ERRORS = ("ENOSPC", "EIO", "EROFS")


def picture(path):
    from matplotlib.figure import Figure

    show_or_save(Figure(), str(path))


WRITERS = {
    "rules.tsv": lambda path: write_rules(small_rules(), path),
    "rules.txt": lambda path: write_rules(small_rules(), path, "anyburl"),
    "rules.pt": lambda path: small_rules().save(path),
    "model.pt": lambda path: small_model("lrne", "all").save(path),
    "kb": lambda path: save_kb(small_kb(), path),
    "answers.csv": lambda path: write_output("text\n", str(path)),
    "picture.png": picture,
    "settings.json": lambda path: Run(path.parent).write_settings({"a": 1}),
}


class FailingFile:
    """A file that takes some bytes, and then fails."""

    def __init__(self, file, room, error):
        self._file, self._room, self._error = file, room, error

    def write(self, content):
        size = len(content) if isinstance(content, str) else memoryview(content).nbytes
        self._room -= size
        if self._room < 0:
            raise OSError(self._error, os.strerror(self._error))
        return self._file.write(content)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *args):
        return self._file.__exit__(*args)


def failing(error, place, room, monkeypatch):
    """Makes the one atomic writer fail at one of its steps."""
    number = getattr(errno, error)

    def fail(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    def open_failing(*args, **kwargs):
        return FailingFile(open(*args, **kwargs), room, number)

    if place == "write":
        monkeypatch.setattr(whole, "open", open_failing, raising=False)
    elif place == "open":
        monkeypatch.setattr(whole, "open", fail, raising=False)
    else:
        monkeypatch.setattr(whole.os, place, fail)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("before", [None, b"before"])
def test_failing_writes_leave_what_was_there(tmp_path, monkeypatch, name, before):
    path, write = tmp_path / "folder" / name, WRITERS[name]
    path.parent.mkdir()
    if before is not None:
        path.write_bytes(before)
    places = [("open", 0), ("write", 0), ("write", 3), ("fsync", 0), ("replace", 0)]
    for error in ERRORS:
        for place, room in places:
            with monkeypatch.context() as patch:
                failing(error, place, room, patch)
                with pytest.raises(DataError, match=rf"{name}: cannot be written \("):
                    write(path)
            found = {one.name: one.read_bytes() for one in path.parent.iterdir()}
            assert found == ({} if before is None else {name: before})
    write(path)
    assert path.stat().st_size > 0
    assert path.read_bytes() != before


def test_a_data_set_is_whole_or_absent(tmp_path, monkeypatch):
    kbs = dict.fromkeys(("train", "val", "test"), small_kb())
    for error in ERRORS:
        with monkeypatch.context() as patch:
            failing(error, "write", 100, patch)
            with pytest.raises(DataError, match="cannot be written"):
                write_local_kb(tmp_path / "kb", kbs)
        assert list(tmp_path.iterdir()) == []


def test_links_and_permissions_stay(tmp_path):
    (tmp_path / "file").write_text("before")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "after")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "after"
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_devices_and_pipes_are_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_text("/dev/null", "text")
    assert Path("/dev/null").is_char_device()


def test_no_other_writer():
    """All files of the library go through the atomic writer, but lines of a log."""
    writes = re.compile(r"""\.write_(text|bytes)\(|open\([^)]*"[wax]b?"|np\.save\(""")
    found = [
        (path.name, match[0])
        for path in Path(whole.__file__).parents[1].rglob("*.py")
        for match in writes.finditer(path.read_text(encoding="utf-8"))
    ]
    log, nowhere = 'open(self.log_path, "a"', 'open(os.devnull, "w"'
    assert sorted(found) == [("main.py", nowhere), ("run.py", log)]
