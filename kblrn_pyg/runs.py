"""A trained run: its settings, its model with the best weights, and its splits."""

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import load_dataset
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
        "entity_dropout": 0.0,
        "latent_dropout": 0.0,
        "n3": 0.0,
        "l2": 0.0,
    },
    "rules": {"preset": None, "min_head_coverage": 0.01},
    "start": {"begin_with": None},
    "training": {
        "epochs": 100,
        "batch_size": 512,
        "lr": 0.001,
        "lr_decay": 1.0,
        "feature_lr": None,
        "validate_every": 5,
        "patience": 0,
        "seed": 0,
    },
}


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


def build_model(
    settings: Mapping[str, Any], train: HeteroData, progress: bool = False
) -> KBLRN:
    r"""Builds the model of a run, with its initial weights.

    Args:
        settings (dict): The settings of the run.
        train (HeteroData): The knowledge base.
        progress (bool, optional): Whether to show a progress bar when rules
            are mined. (default: :obj:`False`)
    """
    model, rules = settings["model"], None
    if "r" in model["experts"]:
        least = settings["rules"]["min_head_coverage"]
        wanted: dict[str, Any] = {"min_head_coverage": least, "confidences": False}
        if settings["rules"]["preset"] == "paper":
            wanted = PAPER
        rules = mine_rules(train, **wanted, progress=progress)
    seed_all(settings["training"]["seed"])
    try:
        return KBLRN.from_data(train, **model, rules=rules)
    except ValueError as error:
        raise DataError(str(error)) from None


def load_splits(path: str, root: str | None = None) -> tuple[Splits, Settings]:
    r"""Loads the splits and settings of a run.

    Args:
        path (str): The folder of the run.
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, that of the run)
    """
    settings = read_settings(Run(path))
    return load_dataset(settings["dataset"], root or settings["root"]), settings


def load_run(
    path: str, root: str | None = None, progress: bool = False
) -> tuple[KBLRN, Splits, Settings]:
    r"""Loads the model of a run with its best weights, the splits and settings.

    Args:
        path (str): The folder of the run.
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, that of the run)
        progress (bool, optional): Whether to show a progress bar when rules
            are mined. (default: :obj:`False`)
    """
    splits, settings = load_splits(path, root)
    model = build_model(settings, splits["train"], progress)
    model.load_state_dict(Run(path).best_weights(model.fingerprint()))
    return model, splits, settings


def other_answers(splits: Splits, split: str) -> list[HeteroData]:
    r"""Returns the splits to filter with when one of them is ranked.

    Args:
        splits (dict): All splits.
        split (str): The one to rank.
    """
    return [data for name, data in splits.items() if name not in ("train", split)]
