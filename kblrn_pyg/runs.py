"""A trained run: its model with the best weights, its splits and its settings."""

import logging
from collections.abc import Iterable
from typing import Any

from torch.nn import Module
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.datasets.names import known_name
from kblrn_pyg.evaluation import kb_for
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.training import Run

logger = logging.getLogger(__name__)

Settings = dict[str, Any]
Splits = dict[str, HeteroData]


def load_model(path: PathLike, experts: Iterable[type[Module]] = ()) -> KBLRN:
    r"""Loads the model of a run with its best weights, in evaluation mode.

    The data set is not needed, because the model file contains the knowledge base.

    Args:
        path (str): The folder of the run, or a model file.
        experts (iterable, optional): See :meth:`KBLRN.load`.
            (default: :obj:`()`)
    """
    run = Run(path)
    run.require_model()
    if not run.path.is_dir():
        return KBLRN.load(path, experts)
    model = KBLRN.load(run.model_path, experts)
    if run.checkpoint_path.exists():
        model.load_state_dict(run.best_weights(model.fingerprint()))
    return model


def load_run(
    path: PathLike,
    root: str | None = None,
    dataset: str | None = None,
    experts: Iterable[type[Module]] = (),
) -> tuple[KBLRN, Splits, Settings]:
    r"""Loads the model of a run with its best weights, the splits and settings.

    Args:
        path (str): The folder of the run.
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, that of the run, or the user's cache for another
            :obj:`dataset`)
        dataset (str, optional): The name or the directory of the data set.
            (default: :obj:`None`, that of the run)
        experts (iterable, optional): See :meth:`KBLRN.load`.
            (default: :obj:`()`)
    """
    settings = Run(path).read_settings()
    if settings.get("all_facts"):
        raise DataError(
            "the model has learned all facts, there is nothing left to evaluate it on",
            path,
        )
    if dataset is None and settings.get("dataset") is None:
        raise DataError(
            "the run does not say which data set it is of, add --dataset", path
        )
    if dataset is None and known_name(settings["dataset"]) is None:
        logger.warning("the data set of the run is %s", settings["dataset"])
    elif dataset is None and root is None and settings.get("root"):
        logger.warning("the data set of the run is in %s", settings["root"])
    try:
        if dataset is None and root is None:
            splits = load_dataset(settings["dataset"], settings.get("root"), make=False)
        else:
            splits = load_dataset(dataset or settings["dataset"], root)
    except DataError as error:
        raise DataError(f"{error}; if it has moved, add --dataset") from None
    model = load_model(path, experts)
    kb_for(model, splits["train"], "dataset")  # or else it is another data set
    return model, splits, settings


def other_answers(splits: Splits, split: str) -> list[HeteroData]:
    r"""Returns the splits to filter with when one of them is ranked.

    Args:
        splits (dict): All splits.
        split (str): The one to rank.
    """
    return [data for name, data in splits.items() if name not in ("train", split)]
