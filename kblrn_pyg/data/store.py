r"""Files of tensors with a checksum: knowledge bases, rules, checkpoints, models.

The first line names the format, such as :obj:`kblrn_pyg rules 2 sha256:...`; the
rest is what :meth:`torch.save` writes. The checksum covers both. Files are written
and read in chunks, so that memory holds nothing twice.
"""

import hashlib
import io
import os
import pickle
import re
import stat
from collections.abc import Mapping
from typing import IO, Any, cast

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.packing import pack, unpack
from kblrn_pyg.data.plain import as_plain
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.types import as_kb
from kblrn_pyg.data.whole import whole_file

# What errors call a file of each kind.
_KINDS = {
    "knowledge base": "a knowledge base",
    "data set": "a data set",
    "rules": "a rule file",
    "checkpoint": "a checkpoint",
    "model": "a model file",
}
_VERSION = "2"
# The first one only differs in how it holds many names. Files of rules with constants
# have a format of their own, which readers that do not know them refuse.
_READ = {kind: ("1", _VERSION) for kind in _KINDS} | {"rules": ("1", _VERSION, "3")}
_FIRST_LINE = re.compile(rb"(kblrn_pyg ([a-z ]+) ([0-9]+)) sha256:([0-9a-f]{64})\n")
_OLD_MAGIC = b"PK"  # without a first line, the zip archive of torch comes first
_PIECE_BYTES = 1 << 20

# What using content of another form than expected may raise: a checksum tells that a
# file is as it was written, not who wrote it.
MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


def save_kb(data: HeteroData, path: PathLike) -> None:
    r"""Saves a knowledge base.

    Args:
        data (HeteroData): The knowledge base.
        path (str): The file to write.
    """
    save_tensors(data.to_dict(), path, "knowledge base")


def load_kb(path: PathLike) -> HeteroData:
    r"""Loads a knowledge base that :meth:`save_kb` wrote, without running code.

    Args:
        path (str): The file.
    """
    return _as_kb(load_tensors(path, "knowledge base"), path)


def save_splits(kbs: Mapping[str, HeteroData], path: PathLike) -> None:
    r"""Saves the knowledge bases of all splits; shared data is saved only once.

    Args:
        kbs (dict): The knowledge base of each split.
        path (str): The file to write.
    """
    content = {split: data.to_dict() for split, data in kbs.items()}
    save_tensors(content, path, "data set")


def load_splits(path: PathLike) -> dict[str, HeteroData]:
    r"""Loads the output of :meth:`save_splits`; splits share the same data again.

    Args:
        path (str): The file.
    """
    content = load_tensors(path, "data set")
    return {str(split): _as_kb(data, path) for split, data in content.items()}


def _as_kb(content: Any, path: PathLike) -> HeteroData:
    """Creates a knowledge base from the content of a file, and refuses anything
    else."""
    try:
        kb = HeteroData.from_dict(content)
        as_kb(kb)
    except DataError as error:
        raise DataError(str(error), path) from None
    except MALFORMED as error:
        raise DataError(f"does not hold a knowledge base ({error!r})", path) from None
    return kb


def save_tensors(
    content: dict[str, Any], path: PathLike, kind: str, version: str = _VERSION
) -> None:
    """Saves tensors and plain values; the file is written whole or not at all.

    Refuses what :meth:`load_tensors` would refuse.
    """
    if kind not in _KINDS:
        raise ValueError(f"'kind' must be one of {list(_KINDS)} (got {kind!r})")
    if version not in _READ[kind]:
        raise ValueError(f"'version' must be one of {_READ[kind]} (got {version!r})")
    try:
        content = pack(as_plain(content))
    except DataError as error:
        raise DataError(str(error), path) from None
    begin = f"kblrn_pyg {kind} {version}".encode()
    with whole_file(path) as file:
        file.write(_first_line(begin, "0" * 64))
        writer = _Writer(file, begin)
        torch.save(content, cast(IO[bytes], writer))
        writer.check()
        # The checksum is known only now.
        file.seek(0)
        file.write(_first_line(begin, writer.digest.hexdigest()))


def load_tensors(path: PathLike, kind: str) -> dict[str, Any]:
    """Loads the output of :meth:`save_tensors`, without running code.

    Refuses a file that is missing, damaged, of another kind or another version.
    """
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise DataError(f"is not a file, expected {_KINDS[kind]}", path)
            first_line = file.readline(200)
            _check(first_line, file, path, kind)
            content = _load(_Behind(file, len(first_line)), path)
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    try:
        found = unpack(content)
    except MALFORMED:
        found = None
    if not isinstance(found, dict):
        raise DataError(f"does not hold the content of {_KINDS[kind]}", path)
    return found


def _open_at_once(path: str, flags: int) -> int:
    """Opens a file without blocking, as opening a pipe would."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _load(file: io.RawIOBase, path: PathLike) -> Any:
    try:
        return torch.load(cast(IO[bytes], file), map_location="cpu", weights_only=True)
    except (*MALFORMED, EOFError):
        raise DataError(
            "does not hold tensors and plain values, make it again", path
        ) from None
    except pickle.UnpicklingError:
        raise DataError(
            "holds Python objects, expected only tensors, numbers, strings, lists "
            "and dictionaries (what did a 'pre_transform' attach?)",
            path,
        ) from None


def _check(first_line: bytes, file: IO[bytes], path: PathLike, kind: str) -> None:
    """Verifies the rest of a file before anything reads it."""
    if first_line.startswith(_OLD_MAGIC):
        raise DataError("was written by an older version, make it again", path)
    match = _FIRST_LINE.fullmatch(first_line)
    if match is None:
        raise DataError(
            f"is damaged or not {_KINDS[kind]}: its first line is unknown", path
        )
    begin, found, version, digest = match.groups()
    if _digest(begin, file) != digest.decode():
        raise DataError(
            "is damaged: its checksum differs (restore it or make it again)", path
        )
    if found.decode() != kind:
        name = _KINDS.get(found.decode(), f"a file of {found.decode()!r}")
        raise DataError(f"is {name}, expected {_KINDS[kind]}", path)
    if version.decode() not in _READ[kind]:
        raise DataError(
            f"has format {version.decode()}, expected {_READ[kind][-1]}: it was "
            "written by another version",
            path,
        )


def _first_line(begin: bytes, digest: str) -> bytes:
    return begin + f" sha256:{digest}\n".encode()


def _digest(begin: bytes, file: IO[bytes]) -> str:
    digest = hashlib.sha256(begin)
    while piece := file.read(_PIECE_BYTES):
        digest.update(piece)
    return digest.hexdigest()


class _Writer:
    """Passes on what torch writes, and computes its checksum.

    Errors must not pass through torch, which would hide that a disk is full.
    """

    def __init__(self, file: IO[bytes], begin: bytes) -> None:
        self.file, self.digest = file, hashlib.sha256(begin)
        self.error: BaseException | None = None

    def write(self, content: bytes | memoryview) -> int:
        if self.error is None:
            try:
                self.digest.update(content)
                self.file.write(content)
            except BaseException as error:  # raised by 'check'
                self.error = error
        return memoryview(content).nbytes

    def flush(self) -> None:
        """Nothing to do: the file is flushed when it is closed."""

    def check(self) -> None:
        if self.error is not None:
            raise self.error


class _Behind(io.RawIOBase):
    """The content after the first line of a file, as a separate file."""

    def __init__(self, file: IO[bytes], begin: int) -> None:
        self._file, self._begin = file, begin
        self._file.seek(begin)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)  # type: ignore[attr-defined]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        offset += self._begin if whence == io.SEEK_SET else 0
        return self._file.seek(offset, whence) - self._begin

    def tell(self) -> int:
        return self._file.tell() - self._begin
