"""All that is needed to continue a training bit for bit, in one file."""

import io
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor

import kblrn_pyg
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike

_FORMAT = "kblrn_pyg checkpoint 1"

Weights = dict[str, Tensor]


def versions() -> dict[str, str]:
    """Returns the versions of all packages that results depend on."""
    return {
        "kblrn_pyg": kblrn_pyg.__version__,
        "torch": str(torch.__version__),
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
    }


@dataclass
class Checkpoint:
    r"""The state of a training.

    Args:
        model (dict): The weights.
        optimizer (dict): The state of the optimiser.
        rng (dict): The states of all random numbers.
        position (dict): How far the training is, down to the batch.
        stopping (dict): The state of the stopping rule.
        history (list): The validations so far.
        best (dict, optional): The weights of the best validation, if there was
            one. (default: :obj:`None`)
        settings (dict): What shapes the training. A checkpoint continues only
            under the same settings.
        fingerprint (str): The fingerprint of the model.
        num_threads (int): The number of threads.
        versions (dict, optional): The versions of the packages.
    """

    model: Weights
    optimizer: dict[str, Any]
    rng: dict[str, Any]
    position: dict[str, Any]
    stopping: dict[str, Any]
    history: list[dict[str, Any]]
    best: Weights | None
    settings: dict[str, Any]
    fingerprint: str
    num_threads: int
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def best_or_last(self) -> Weights:
        """The weights to use: of the best validation, or simply the last ones."""
        return self.model if self.best is None else self.best


_FIELDS = {field.name for field in fields(Checkpoint)}


def save_checkpoint(path: PathLike, checkpoint: Checkpoint) -> None:
    r"""Saves a checkpoint; the file before it stays until the new one is whole.

    Args:
        path (str): The file to write.
        checkpoint (Checkpoint): The state to save.
    """
    # Torch writes to memory, as it dies of a full disk in ways of its own.
    buffer = io.BytesIO()
    content = {name: getattr(checkpoint, name) for name in _FIELDS}
    torch.save({"format": _FORMAT, **content}, buffer)
    write_whole(path, buffer.getbuffer())


def load_checkpoint(
    path: PathLike,
    fingerprint: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Checkpoint:
    r"""Loads a checkpoint without running code from it.

    Args:
        path (str): The file.
        fingerprint (str, optional): The fingerprint that the model must have.
            (default: :obj:`None`, any)
        settings (dict, optional): The settings that it must have.
            (default: :obj:`None`, any)
    """
    content = _read(Path(path))
    is_ours = isinstance(content, dict) and content.pop("format", None) == _FORMAT
    if not is_ours or set(content) != _FIELDS:
        raise DataError(f"is no checkpoint, expected {_FORMAT!r}", path)
    checkpoint = Checkpoint(**content)
    if fingerprint is not None and checkpoint.fingerprint != fingerprint:
        raise DataError(
            "was made by another model: names, numbers, rules or settings differ "
            f"(fingerprint {checkpoint.fingerprint[:12]}, expected {fingerprint[:12]})",
            path,
        )
    if settings is not None:
        _require_settings(checkpoint.settings, settings, path)
    return checkpoint


def write_whole(path: PathLike, content: bytes | memoryview) -> None:
    r"""Writes a file that appears whole or not at all, even if power fails.

    Args:
        path (str): The file to write.
        content (bytes): What to write.
    """
    path = Path(path)
    # One name, so that a killed process leaves at most one such file behind.
    temporary = path.with_name(f".{path.name}.part")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = error.strerror or str(error)
        raise DataError(
            f"cannot be written ({reason}), what was saved before is still there", path
        ) from error
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Makes a new name in a folder last; Windows neither can nor needs to."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> Any:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    try:
        # Torch itself does not compare checksums.
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            broken = archive.testzip()
        if broken is not None:
            raise zipfile.BadZipFile(f"bad checksum of {broken}")
        return torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
    except Exception as error:  # what is broken decides who complains
        reason = str(error).split("\n")[0] or type(error).__name__
        raise DataError(
            f"is damaged ({reason}), delete it to start anew", path
        ) from None


def _require_settings(
    found: Mapping[str, Any], expected: Mapping[str, Any], path: PathLike
) -> None:
    for name in sorted({*found, *expected}):
        if found.get(name) != expected.get(name):
            raise DataError(
                f"was made with {name} = {found.get(name)!r}, expected "
                f"{expected.get(name)!r}",
                path,
            )
