"""The settings of a run, and the model behind them."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import DATASETS, load_dataset
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import PAPER, mine_rules
from kblrn_pyg.training import Run, seed_all

Settings = dict[str, Any]
Splits = dict[str, HeteroData]

# What can be set, with its default, as the paper has it.
GROUPS: dict[str, dict[str, Any]] = {
    "model": {
        "experts": "lrn",
        "hidden_channels": 100,
        "scorer": ["distmult"],
        "numerical": "rbf",
        "learn_rbf": False,
        "num_negatives": 500,
        "negatives": "triple",
        "dropout": 0.0,
        "n3": 0.0,
        "l2": 0.0,
    },
    "rules": {"preset": None, "min_head_coverage": 0.01},
    "training": {
        "epochs": 100,
        "batch_size": 512,
        "lr": 0.001,
        "lr_decay": 1.0,
        "validate_every": 5,
        "patience": 0,
        "seed": 0,
    },
}


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


def read_settings(run: Run) -> Settings:
    r"""Reads the settings of a run and makes sure that they are complete.

    Args:
        run (Run): The run.
    """
    settings = run.read_settings()
    missing = [name for name in ("dataset", "root") if name not in settings]
    for group, names in GROUPS.items():
        missing += [name for name in names if name not in settings.get(group, {})]
    if missing:
        raise DataError(f"has no {', '.join(missing)}", run.settings_path)
    return settings


def build_model(settings: Mapping[str, Any], train: HeteroData) -> KBLRN:
    r"""Builds the model of a run, with its initial weights.

    Args:
        settings (dict): The settings of the run.
        train (HeteroData): The knowledge base.
    """
    model, rules = settings["model"], None
    if "r" in model["experts"]:
        least = settings["rules"]["min_head_coverage"]
        wanted: dict[str, Any] = {"min_head_coverage": least, "confidences": False}
        if settings["rules"]["preset"] == "paper":
            wanted = PAPER
        rules = mine_rules(train, **wanted, progress=shows_progress())
    seed_all(settings["training"]["seed"])
    try:
        return KBLRN.from_data(train, **model, rules=rules)
    except ValueError as error:
        raise DataError(str(error)) from None


def load_run(path: str) -> tuple[KBLRN, Splits, Settings]:
    r"""Loads the model of a run with its best weights, the splits and settings.

    Args:
        path (str): The folder of the run.
    """
    run = Run(path)
    settings = read_settings(run)
    splits = load_dataset(settings["dataset"], settings["root"])
    model = build_model(settings, splits["train"])
    model.load_state_dict(run.best_weights(model.fingerprint()))
    return model, splits, settings


def other_answers(splits: Splits, split: str) -> list[HeteroData]:
    r"""Returns the splits to filter with when one of them is ranked.

    Args:
        splits (dict): All splits.
        split (str): The one to rank.
    """
    return [data for name, data in splits.items() if name not in ("train", split)]


def shows_progress() -> bool:
    """Whether there is someone to look at a progress bar."""
    return sys.stderr.isatty()


def _known_name(dataset: str) -> str:
    """A name that means the same tomorrow and in another directory."""
    for name in DATASETS:
        if name.lower() == dataset.lower():
            return name
    return str(Path(dataset).resolve()) if Path(dataset).is_dir() else dataset
