"""The settings of a run as they are given on the command line."""

import argparse
import sys
from pathlib import Path

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import DATASETS
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.runs import GROUPS, Settings, Splits, other_answers, read_settings
from kblrn_pyg.runs import load_run as load_quietly
from kblrn_pyg.training import Run

__all__ = [
    "continued_settings",
    "load_run",
    "new_settings",
    "other_answers",
    "shows_progress",
]


def new_settings(options: argparse.Namespace) -> Settings:
    r"""Returns the settings of a new run.

    Args:
        options (argparse.Namespace): What was given; what was not is absent.
    """
    given = vars(options)
    groups = {
        group: {name: given.get(name, default) for name, default in defaults.items()}
        for group, defaults in GROUPS.items()
    }
    return {"dataset": _known_name(options.dataset), "root": options.root, **groups}


def continued_settings(run: Run, options: argparse.Namespace) -> Settings:
    r"""Returns the settings of a run that continues, perhaps to more epochs.

    Args:
        run (Run): The run.
        options (argparse.Namespace): What was given; what was not is absent.
    """
    stored = read_settings(run)
    given = vars(options) | {"dataset": _known_name(options.dataset)}
    known = {"dataset": stored["dataset"]}
    for group in GROUPS:
        known |= stored[group]
    for name, value in known.items():
        if name in given and given[name] != value and name != "epochs":
            raise DataError(
                f"the run was made with {name.replace('_', '-')} {value}, it cannot "
                f"continue with {given[name]}"
            )
    training = stored["training"]
    training["epochs"] = given.get("epochs", training["epochs"])
    return stored | {"root": options.root or stored["root"]}


def load_run(path: str) -> tuple[KBLRN, Splits, Settings]:
    r"""Loads a run as :meth:`kblrn_pyg.runs.load_run` does, with a progress bar.

    Args:
        path (str): The folder of the run.
    """
    return load_quietly(path, progress=shows_progress())


def shows_progress() -> bool:
    """Whether there is someone to look at a progress bar."""
    return sys.stderr.isatty()


def _known_name(dataset: str) -> str:
    """A name that means the same tomorrow and in another directory."""
    for name in DATASETS:
        if name.lower() == dataset.lower():
            return name
    return str(Path(dataset).resolve()) if Path(dataset).is_dir() else dataset
