"""Search for good settings, and print them as a recipe."""

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kblrn_pyg.cli.options import (
    add_dataset,
    add_settings,
    given_settings,
    shows_progress,
    tell,
)
from kblrn_pyg.cli.recipe_options import NO_RECIPE
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.names import check_name
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.recipes.device import DEVICES
from kblrn_pyg.recipes.files import RECIPE_NAME, recipe_text
from kblrn_pyg.recipes.named import NAMES
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.table import format_table
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings

_GROUPS = (ModelSettings, RuleSettings, FitSettings)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_dataset(parser)
    parser.add_argument(
        "--trials",
        type=int,
        default=30,
        help="the number of trials, including those of earlier calls (default: 30)",
    )
    parser.add_argument(
        "--out",
        help="the folder of all trials; run the same command again to continue "
        "(default: runs/DATASET-tuned)",
    )
    parser.add_argument(
        "--recipe",
        default="auto",
        metavar="NAME|FILE|RUN",
        help=f"where to start: {', '.join(NAMES)}, a file or a run (default: auto)",
    )
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--threads", type=int, help="the number of threads")
    group = parser.add_argument_group("settings that are not tuned")
    for cls in _GROUPS:
        add_settings(group, cls)


def run(options: argparse.Namespace) -> None:
    if options.trials < 1:
        raise DataError(f"--trials must be positive (got {options.trials})")
    if options.recipe == NO_RECIPE:
        raise DataError(f"--recipe must be one of {', '.join(NAMES)}, or a file")
    if find_spec("optuna") is None:
        raise DataError(
            "tuning needs Optuna, which is not installed: pip install 'kblrn_pyg[tune]'"
        )
    check_name(options.dataset)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data.kb import num_edges
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.recipes import tune
    from kblrn_pyg.runs import other_answers
    from kblrn_pyg.training import set_threads

    set_threads(options.threads)
    splits = load_dataset(options.dataset, options.root)
    if num_edges(splits["val"], "edge_label_index") == 0:
        raise DataError("there is no validation set to choose settings by")
    name = f"{Path(options.dataset).name}-tuned"
    folder = Run(options.out or f"runs/{name}")
    fixed: dict[str, Any] = {}
    for cls in _GROUPS:
        fixed |= given_settings(options, cls)
    try:
        found = tune(
            splits["train"],
            splits["val"],
            other_answers(splits, "val"),
            trials=options.trials,
            recipe=options.recipe,
            run=folder,
            progress=shows_progress(),
            device=options.device,
            **fixed,
        )
    except KeyboardInterrupt:
        tell("kblrn tune: interrupted, the same command goes on")
        raise SystemExit(130) from None
    rows = [[one, found.trials[one], mrr] for one, mrr in found.mrr.items()]
    print(format_table(["experts", "trials", "val MRR"], rows))
    print(f"\n{recipe_text(found.recipe)}")
    path = folder.path / RECIPE_NAME
    print(f"saved {path}: kblrn train {options.dataset} --recipe {path}")
