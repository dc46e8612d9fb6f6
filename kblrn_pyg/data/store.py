r"""Files of tensors with a checksum: knowledge bases, rules, checkpoints, models.

The first line names the format, such as :obj:`kblrn_pyg rules 1 sha256:...`; the
rest is what :meth:`torch.save` writes. The checksum covers both.
"""

import hashlib
import io
import pickle
import re
from typing import Any

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import write_bytes

# What errors call a file of each kind.
_KINDS = {
    "knowledge base": "a knowledge base",
    "rules": "a rule file",
    "checkpoint": "a checkpoint",
    "model": "a model file",
}
_VERSION = "1"
_FIRST_LINE = re.compile(rb"(kblrn_pyg ([a-z ]+) ([0-9]+)) sha256:([0-9a-f]{64})\n")
_OLD_MAGIC = b"PK"  # without a first line, the zip archive of torch comes first


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
    return HeteroData.from_dict(load_tensors(path, "knowledge base"))


def save_tensors(content: dict[str, Any], path: PathLike, kind: str) -> None:
    """Saves tensors and plain values; the file is written whole or not at all."""
    if kind not in _KINDS:
        raise ValueError(f"'kind' must be one of {list(_KINDS)} (got {kind!r})")
    # In memory first, as the errors of torch do not tell that a disk is full.
    buffer = io.BytesIO()
    torch.save(content, buffer)
    begin = f"kblrn_pyg {kind} {_VERSION}".encode()
    digest = _digest(begin, buffer.getbuffer())
    write_bytes(path, begin, f" sha256:{digest}\n".encode(), buffer.getbuffer())


def load_tensors(path: PathLike, kind: str) -> dict[str, Any]:
    """Loads what :meth:`save_tensors` wrote, without running code.

    Refuses a file that is missing, damaged, of another kind or another version.
    """
    try:
        with open(path, "rb") as file:
            first_line, content = file.readline(200), file.read()
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    _check(first_line, content, path, kind)
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise DataError(
            "holds Python objects, expected only tensors, numbers, strings, lists "
            "and dictionaries (what did a 'pre_transform' attach?)",
            path,
        ) from None


def _check(first_line: bytes, content: bytes, path: PathLike, kind: str) -> None:
    """Refuses content before anything looks into it."""
    if first_line.startswith(_OLD_MAGIC):
        raise DataError("was written by an older version, make it again", path)
    match = _FIRST_LINE.fullmatch(first_line)
    if match is None:
        raise DataError(
            f"is damaged or not {_KINDS[kind]}: its first line is unknown", path
        )
    begin, found, version, digest = match.groups()
    if _digest(begin, content) != digest.decode():
        raise DataError(
            "is damaged: its checksum differs (restore it or make it again)", path
        )
    if found.decode() != kind:
        name = _KINDS.get(found.decode(), f"a file of {found.decode()!r}")
        raise DataError(f"is {name}, expected {_KINDS[kind]}", path)
    if version.decode() != _VERSION:
        raise DataError(
            f"has format {version.decode()}, expected {_VERSION}: it was written by "
            "another version",
            path,
        )


def _digest(begin: bytes, content: bytes | memoryview) -> str:
    digest = hashlib.sha256(begin)
    digest.update(content)
    return digest.hexdigest()
