"""The logs of runs, before they are drawn."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kblrn_pyg.data import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.training import Run


@dataclass(frozen=True)
class History:
    r"""How a training went.

    Args:
        name (str): The name of the run.
        loss (dict): The mean loss of each epoch that was logged.
        mrr (dict): The mean reciprocal rank after each epoch that was
            validated.
    """

    name: str
    loss: dict[int, float]
    mrr: dict[int, float]

    @property
    def best_epoch(self) -> int | None:
        """The epoch of the best validation, the first of equal ones."""
        return max(self.mrr, key=self.mrr.__getitem__, default=None)


def read_histories(paths: Sequence[PathLike]) -> list[History]:
    r"""Reads the logs of runs.

    Args:
        paths (sequence): The folders of the runs.
    """
    folders = list(dict.fromkeys(Path(path).resolve() for path in paths))
    return [_read(folder, name) for folder, name in zip(folders, _names(folders))]


def _read(folder: Path, name: str) -> History:
    run = Run(folder)
    if not run.log_path.exists():
        raise DataError("no such file, no run", run.log_path)
    try:
        lines = run.read_log()
        loss = {int(line["epoch"]): float(line["loss"]) for line in lines}
        validated = [line for line in lines if "val" in line]
        mrr = {int(line["epoch"]): float(line["val"]["mrr"]) for line in validated}
        return History(name, loss, mrr)
    except (ValueError, KeyError, TypeError):
        raise DataError("is no log of a training", run.log_path) from None


def _names(folders: list[Path]) -> list[str]:
    """The shortest ends of the folders' paths that differ."""
    most = max((len(folder.parts) for folder in folders), default=1)
    for number in range(1, most + 1):
        names = ["/".join(folder.parts[-number:]) for folder in folders]
        if len(set(names)) == len(names):
            break
    return names
