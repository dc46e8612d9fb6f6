"""The logs of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.training.run import Run


@dataclass(frozen=True)
class History:
    r"""The loss and the validation results of a run by epoch.

    Args:
        name (str): The name of the run.
        loss (dict): The mean loss of each epoch that was logged.
        mrr (dict): The mean reciprocal rank after each epoch that was
            validated, on the first validation set, whose best weights are
            kept.
    """

    name: str
    loss: dict[int, float]
    mrr: dict[int, float]

    @property
    def best_epoch(self) -> int | None:
        """The epoch of the best validation, the first one of a tie."""
        return max(self.mrr, key=self.mrr.__getitem__, default=None)


def read_histories(paths: Sequence[PathLike]) -> list[History]:
    r"""Reads the logs of runs.

    Args:
        paths (sequence): The folders of the runs. A run whose experts were trained
            separately has a history for each of its stages.
    """
    given = dict.fromkeys(Path(path).resolve() for path in paths)
    folders = [folder for path in given for folder in _logged(path)]
    return [_read(Run(path), name) for path, name in zip(folders, _names(folders))]


def _logged(folder: Path) -> list[Path]:
    """Returns the folders of the stages of a run, or that of the run."""
    logs = sorted(folder.glob("stages/*/log.jsonl"))
    return [log.parent for log in logs] or [folder]


def _read(run: Run, name: str) -> History:
    history = History(name, {}, {})
    if not run.log_path.exists():
        raise DataError("no such file, not a run", run.log_path)
    try:
        for line in run.read_log():
            epoch = int(line["epoch"])
            history.loss[epoch] = float(line["loss"])
            sets = [value for value in line.values() if isinstance(value, Mapping)]
            if sets:
                history.mrr[epoch] = float(sets[0]["mrr"])
    except (ValueError, KeyError, TypeError):
        raise DataError("is not the log of a run", run.log_path) from None
    return history


def _names(folders: list[Path]) -> list[str]:
    """The shortest endings of the folders' paths that are unique."""
    most = max((len(folder.parts) for folder in folders), default=1)
    for number in range(1, most + 1):
        names = ["/".join(folder.parts[-number:]) for folder in folders]
        if len(set(names)) == len(names):
            break
    return names
