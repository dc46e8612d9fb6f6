"""The SQLite file in which Optuna stores all trials."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.store import MALFORMED

# The name of the file in the folder of a run.
TRIALS_NAME = "trials.db"
# Trials of a stage that are not pruned, because there is nothing to compare with.
_UNPRUNED = 3


def open_study(path: Path | None, name: str) -> Any:
    r"""Returns the study of a stage, and refuses a file that is damaged.

    Args:
        path (pathlib.Path, optional): The file.
            (default: :obj:`None`, keep nothing)
        name (str): The name of the study.
    """
    import optuna

    # Its warnings are about trials that end by an error, which is raised as well.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if path is not None:
        _check(path)
    with stored_trials(path, MALFORMED):
        study = optuna.create_study(
            study_name=name,
            storage=None if path is None else _storage(path.resolve()),
            direction="maximize",
            pruner=optuna.pruners.MedianPruner(n_startup_trials=_UNPRUNED),
            load_if_exists=True,
        )
        study.get_trials(deepcopy=False)  # all of which must be readable
    return study


def _storage(path: Path) -> Any:
    """Returns the storage of trials in a file, whatever characters its path has.

    Within an address, a question mark or a brace would lead to another file.
    """
    from optuna.storages import RDBStorage

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(path, check_same_thread=False)

    return RDBStorage(f"sqlite:///{TRIALS_NAME}", {"creator": connect})


def sampler_of(number: int) -> Any:
    r"""Returns the sampler that suggests the next trial.

    Args:
        number (int): The number of finished trials.
    """
    from optuna.samplers import TPESampler

    return TPESampler(seed=number)


def enqueue(study: Any, wanted: Sequence[Mapping[str, Any]]) -> None:
    r"""Enqueues trials, except those that are finished or already waiting.

    Args:
        study (optuna.Study): The study.
        wanted (sequence): The values of each trial.
    """
    from optuna.trial import TrialState

    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.WAITING)
    there = [
        one.system_attrs.get("fixed_params") for one in study.get_trials(states=states)
    ]
    for values in wanted:
        if values not in there:
            study.enqueue_trial(dict(values))


@contextmanager
def stored_trials(
    path: Path | None, others: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    r"""Raises a one-line error if trials can neither be read nor written.

    Args:
        path (pathlib.Path, optional): The file, if there is one.
        others (tuple, optional): Other exceptions that may be raised.
            (default: :obj:`()`)
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, StorageInternalError, *others) as error:
        if path is None:
            raise
        reason = getattr(error, "orig", None) or error.__cause__ or error
        raise _unusable(path, reason) from error


def _check(path: Path) -> None:
    """Checks all pages of a file, which SQLite would only do when it needs them."""
    if not path.exists():
        return
    if not path.is_file():
        raise DataError("is not a file, expected the trials of 'kblrn tune'", path)
    try:
        with closing(sqlite3.connect(path)) as database:
            (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _unusable(path, error) from None
    if found != "ok":
        raise _unusable(path, found)


def _unusable(path: Path, reason: object) -> DataError:
    text = str(reason).partition("\n")[0]
    return DataError(
        f"its trials cannot be used ({text}): make room or restore the file if that "
        "helps, or choose another folder",
        path,
    )
