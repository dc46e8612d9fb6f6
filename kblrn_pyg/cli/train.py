"""Train a model on a data set and evaluate it."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

from kblrn_pyg.cli.runs import (
    continued_settings,
    load_run,
    new_settings,
    shows_progress,
)
from kblrn_pyg.cli.table import format_table
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import DATASETS, load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import INSTANCES, KBLRN, SCORERS
from kblrn_pyg.runs import GROUPS, Settings, Splits, build_model, other_answers
from kblrn_pyg.training import FitResult, Run, fit, set_threads

FIGURES = ("mrr", "mr", "hits@1", "hits@3", "hits@10")
_DEFAULTS = {name: value for group in GROUPS.values() for name, value in group.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "dataset",
        help=f"one of {', '.join(DATASETS)}, or the directory of an imported data set",
    )
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--out", help="the folder of the run (default: runs/DATASET-EXPERTS-seedSEED)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue a run; its settings need not be given again",
    )
    parser.add_argument("--threads", type=_positive, help="how many threads to use")
    parser.add_argument(
        "--tensorboard", action="store_true", help="log for TensorBoard, too"
    )
    _add_model_arguments(parser)
    _add_training_arguments(parser)


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    _add(parser, "experts", "which experts", choices=INSTANCES)
    _add(parser, "hidden_channels", "the embedding size", type=_positive)
    _add(
        parser,
        "scorer",
        f"the latent scorer: {', '.join(SCORERS)}, or several",
        type=lambda text: text.lower().split(","),
        metavar="NAME[,NAME]",
    )
    _add(parser, "num_negatives", "sampled entities, or all", type=_number_or_all)
    _add(
        parser,
        "negatives",
        "of each triple, or shared by a batch",
        choices=("triple", "shared"),
    )
    _add(parser, "dropout", "the part of a query's entries to drop", type=float)
    _add(parser, "entity_dropout", "the part of an entity's entries", type=float)
    _add(parser, "latent_dropout", "the part of queries without embeddings", type=float)
    _add(parser, "n3", "the weight of the N3 penalty", type=float)
    _add(parser, "l2", "the weight of the L2 penalty", type=float)
    _add(parser, "numerical", "what differences go through", choices=("rbf", "sign"))
    _add(parser, "learn_rbf", "learn centres and widths", action="store_true")
    _add(parser, "min_head_coverage", "the least head coverage of rules", type=float)
    _add(parser, "preset", "the rules that the paper used", choices=("paper",))


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    _add(
        parser,
        "begin_with",
        "a run whose experts to begin with",
        type=lambda path: str(Path(path).resolve()),
        metavar="RUN",
    )
    _add(parser, "epochs", "the most epochs", type=_not_negative)
    _add(
        parser,
        "batch_size",
        "triples in a batch, or queries if negatives are all",
        type=_positive,
    )
    _add(parser, "lr", "the learning rate", type=float)
    _add(parser, "lr_decay", "its factor from epoch to epoch", type=float)
    _add(parser, "feature_lr", "that of rules and numbers", type=float)
    _add(parser, "validate_every", "epochs between validations", type=_positive)
    _add(parser, "patience", "validations without a better MRR", type=_not_negative)
    _add(parser, "seed", "the seed of all random numbers", type=_not_negative)


def _add(parser: argparse.ArgumentParser, name: str, text: str, **kwargs: Any) -> None:
    """Adds a setting. If not given it is absent, which '--resume' has to know."""
    default = _DEFAULTS[name]
    if isinstance(default, list):
        default = ",".join(default)
    if default is not None and default is not False:
        text = f"{text} (default: {default})"
    option = f"--{name.replace('_', '-')}"
    parser.add_argument(option, help=text, default=argparse.SUPPRESS, **kwargs)


def run(options: argparse.Namespace) -> None:
    folder, settings = _open_run(options)
    threads = options.threads or settings.get("threads")
    settings["threads"] = set_threads(threads)
    splits = load_dataset(settings["dataset"], settings["root"])
    model = build_model(settings, splits["train"], shows_progress())
    if not folder.checkpoint_path.exists():  # which has weights of its own
        _take_experts(model, settings["start"]["begin_with"])
    folder.write_settings(settings)
    try:
        _train_and_test(folder, settings, splits, model)
    except KeyboardInterrupt:
        words = ["kblrn", "train", options.dataset, "--out", str(folder.path)]
        command = shlex.join([*words, "--resume"])
        print(f"kblrn train: interrupted, resume with: {command}", file=sys.stderr)
        raise SystemExit(130) from None


def _take_experts(model: KBLRN, other_run: str | None) -> None:
    if other_run is None:
        return
    other, _, _ = load_run(other_run)
    try:
        model.take_experts(other)
    except ValueError as error:
        raise DataError(f"cannot begin with {other_run}: {error}") from None


def _open_run(options: argparse.Namespace) -> tuple[Run, Settings]:
    settings = new_settings(options)
    folder = Run(options.out or _default_folder(settings), options.tensorboard)
    if options.resume:
        if not folder.settings_path.exists():
            raise DataError(f"{folder.path} is no run, leave out '--resume'")
        return folder, continued_settings(folder, options)
    if any(folder.path.glob("[!.]*")):  # a killed process may leave hidden files
        raise DataError(
            f"{folder.path} exists, add '--resume' to continue it, or choose another "
            "'--out'"
        )
    return folder, settings


def _default_folder(settings: Settings) -> str:
    name, experts = Path(settings["dataset"]).name, settings["model"]["experts"]
    return f"runs/{name}-{experts}-seed{settings['training']['seed']}"


def _train_and_test(
    folder: Run, settings: Settings, splits: Splits, model: KBLRN
) -> None:
    progress = shows_progress()
    result = fit(
        model,
        splits["train"],
        splits["val"],
        other_answers(splits, "val"),
        **settings["training"],
        run=folder,
        progress=progress,
    )
    table = evaluate(
        model, splits["test"], other_answers(splits, "test"), progress=progress
    )
    metrics = _summary(result) | {"test": table.metrics().to_dict()}
    folder.write_json("metrics.json", metrics)
    rows = [
        [name, *(metrics[name][figure] for figure in FIGURES)]
        for name in ("val", "test")
        if name in metrics
    ]
    print(format_table(["split", *map(figure_title, FIGURES)], rows))
    stopped = ", stopped early" if result.stopped_early else ""
    best = f", best after {result.best_epoch}" if result.best_epoch else ""
    print(f"\n{result.epochs_done} epochs{stopped}{best}; saved {folder.path}")


def figure_title(figure: str) -> str:
    """Returns the name of a figure as tables have it."""
    return figure.upper() if figure.startswith("m") else figure


def _summary(result: FitResult) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "best_epoch": result.best_epoch,
        "epochs_done": result.epochs_done,
        "stopped_early": result.stopped_early,
    }
    for line in result.history:
        summary["seconds"] = line["seconds"]
        if line["epoch"] == result.best_epoch:
            summary["val"] = line["val"]
    return summary


def _number_or_all(text: str) -> int | None:
    return None if text == "all" else _positive(text)


def _positive(text: str) -> int:
    return _at_least(1, text)


def _not_negative(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be at least {least} (got {text!r})")
    return int(text)
