"""Checkpoints: all state needed to resume training bit for bit, in one file."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from torch import Tensor

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.store import load_tensors, save_tensors
from kblrn_pyg.nn.model_file import versions
from kblrn_pyg.settings import check_types

Weights = dict[str, Tensor]


@dataclass
class Position:
    """The position in a training run, down to the batch."""

    epoch: int = 0  # the number of complete epochs
    batch: int = 0  # the number of complete batches of the current epoch
    loss: float = 0.0  # the sum of the losses of their triples
    triples: int = 0  # the number of their triples
    seconds: float = 0.0  # the time they took
    seconds_before: float = 0.0  # the time of the complete epochs

    def add_batch(self, mean_loss: float, triples: int, seconds: float) -> None:
        """Counts a batch."""
        self.batch += 1
        self.loss += mean_loss * triples
        self.triples += triples
        self.seconds += max(seconds, 0.0)  # clocks may go backwards

    def log_line(self) -> dict[str, Any]:
        """Returns the figures of the current epoch."""
        return {
            "epoch": self.epoch + 1,
            "loss": self.loss / self.triples,
            "seconds": self.seconds_before + self.seconds,
            "triples_per_second": self.triples / max(self.seconds, 1e-9),
        }


@dataclass
class Checkpoint:
    r"""The state of a training run.

    Args:
        model (dict): The weights.
        optimizer (dict): The state of the optimizer.
        rng (dict): The states of all random number generators.
        position (dict): The position in training, down to the batch.
        stopping (dict): The state of early stopping, by validation set.
        history (list): The lines of the log so far.
        best (dict): The weights of the best validation, by validation set.
        settings (dict): The settings that affect training. A checkpoint can only be
            resumed with the same settings.
        fingerprint (str): The fingerprint of the model.
        num_threads (int): The number of threads.
        versions (dict, optional): The versions of the packages.
    """

    model: Weights
    optimizer: dict[str, Any]
    rng: dict[str, Any]
    position: dict[str, Any]
    stopping: dict[str, dict[str, Any]]
    history: list[dict[str, Any]]
    best: dict[str, Weights]
    settings: dict[str, Any]
    fingerprint: str
    num_threads: int
    versions: dict[str, str] = field(default_factory=versions)

    def best_or_last(self, validation_set: str | None = None) -> Weights:
        r"""Returns the weights of the best validation, or the last ones if there
        was none.

        Args:
            validation_set (str, optional): The validation set.
                (default: :obj:`None`, the first one)
        """
        if validation_set is None:
            return next(iter(self.best.values()), self.model)
        if validation_set not in self.stopping:
            raise ValueError(
                f"'validation_set' must be one of {', '.join(self.stopping)} (got "
                f"{validation_set!r})"
            )
        return self.best.get(validation_set, self.model)


def save_checkpoint(path: PathLike, checkpoint: Checkpoint) -> None:
    r"""Saves a checkpoint; the previous one is replaced when it is complete.

    Args:
        path (str): The file to write.
        checkpoint (Checkpoint): The state to save.
    """
    save_tensors(vars(checkpoint), path, "checkpoint")


def load_checkpoint(
    path: PathLike,
    fingerprint: str | None = None,
    settings: Mapping[str, Any] | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Checkpoint:
    r"""Loads a checkpoint without running code from it.

    Args:
        path (str): The file.
        fingerprint (str, optional): The fingerprint that the model must have.
            (default: :obj:`None`, any)
        settings (dict, optional): The settings that it must have.
            (default: :obj:`None`, any)
        defaults (dict, optional): The values of settings that it lacks, because it
            was saved before they were introduced. (default: :obj:`None`)
    """
    content = load_tensors(path, "checkpoint")
    if set(content) != {field.name for field in fields(Checkpoint)}:
        raise DataError("is a checkpoint of another version, train anew", path)
    found = Checkpoint(**content)
    if (part := _odd_part(found)) is not None:
        raise DataError(f"is not a checkpoint: its {part} is of another kind", path)
    if fingerprint is not None and found.fingerprint != fingerprint:
        raise DataError(
            "was made by another model: names, numbers, rules or settings differ "
            f"(fingerprint {found.fingerprint[:12]}, expected {fingerprint[:12]})",
            path,
        )
    if settings is not None:
        for name in sorted({*found.settings, *settings}):
            then = found.settings.get(name, (defaults or {}).get(name))
            now = settings.get(name)
            if then != now:
                message = f"was made with {name} = {then!r}, expected {now!r}"
                raise DataError(message, path)
    return found


def _odd_part(found: Checkpoint) -> str | None:
    """Returns the name of an invalid part of a checkpoint, or :obj:`None`."""
    is_log = isinstance(found.history, list) and all(map(_is_line, found.history))
    has_model = _are_weights(found.model)
    has_best = isinstance(found.best, dict) and all(
        has_model and _are_weights(one, found.model) for one in found.best.values()
    )
    parts = {
        "model": has_model,
        "optimizer": isinstance(found.optimizer, dict),
        "rng": isinstance(found.rng, dict),
        "position": _is_position(found.position),
        "stopping": isinstance(found.stopping, dict),
        "history": is_log,
        "best": has_best,
        "settings": isinstance(found.settings, dict)
        and all(isinstance(name, str) for name in found.settings)
        and not any(isinstance(one, Tensor) for one in found.settings.values()),
        "fingerprint": isinstance(found.fingerprint, str),
        "num_threads": isinstance(found.num_threads, int),
        "versions": isinstance(found.versions, dict),
    }
    return next((name for name, is_right in parts.items() if not is_right), None)


def _are_weights(weights: Any, like: Any = None) -> bool:
    if not isinstance(weights, dict):
        return False
    if not all(isinstance(one, Tensor) for one in weights.values()):
        return False
    return like is None or _shapes(weights) == _shapes(like)


def _shapes(weights: Weights) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.shape) for name, one in weights.items()}


def _is_position(position: Any) -> bool:
    try:
        check_types(Position, position)
    except ValueError:
        return False
    return all(value >= 0 for name, value in position.items() if name != "loss")


def _is_line(line: Any) -> bool:
    return (
        isinstance(line, dict)
        and isinstance(line.get("epoch"), int)
        and isinstance(line.get("seconds"), int | float)
        and all(isinstance(value, int | float | dict) for value in line.values())
    )
