"""Test whether a model uses its numbers: train with true ones and with others."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.options import (
    add_settings,
    figures_table,
    given_settings,
    settings_from,
    shows_progress,
    tell,
    to_json,
)
from kblrn_pyg.cli.recipe_options import NO_RECIPE, add_recipe, is_staged, recipe_of
from kblrn_pyg.cli.training_job import as_recipe
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.names import COUNTS, check_name
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.recipes.files import RECIPE_NAME, read_recipe
from kblrn_pyg.recipes.recipe import Recipe
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.table import format_table
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings

if TYPE_CHECKING:
    from kblrn_pyg.evaluation.control import ControlResult
    from kblrn_pyg.runs import Splits

GROUPS: dict[str, Any] = {
    "model": ModelSettings,
    "rules": RuleSettings,
    "training": FitSettings,
}
_MAX_RELATIONS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="RUN|DATASET",
        help="a run, whose recipe or settings are used, or a data set: one of "
        f"{', '.join(COUNTS)}, or the directory of an imported one",
    )
    parser.add_argument("--root", help="the directory of data sets")
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument("--json", metavar="FILE", help="write all metrics to a file")
    add_recipe(parser)
    for group in GROUPS.values():
        add_settings(parser, group)


def run(options: argparse.Namespace) -> None:
    source = Path(options.source)
    is_run = (source / "settings.json").exists()
    stored = _stored(Run(source), options) if is_run else {}
    recipe = NO_RECIPE if is_run else recipe_of(options)
    dataset = stored.get("dataset", options.source)
    plan = _given_plan(source, stored, options) if recipe == NO_RECIPE else None
    if plan is not None:
        _check_numbers(plan)
    check_name(dataset)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data.kb import num_edges
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.recipes.control import control_by_recipe
    from kblrn_pyg.recipes.device import find_device

    root = options.root or stored.get("root")
    splits = load_dataset(dataset, root, make=root == options.root)
    if options.split not in splits:
        raise DataError(
            f"unknown split {options.split!r}, expected one of {', '.join(splits)}"
        )
    for split in dict.fromkeys(("val", options.split)):
        if num_edges(splits[split], "edge_label_index") == 0:
            raise DataError(f"the {split} split has no triples, which a control needs")
    device = find_device(options.device or stored.get("device", "auto"))
    if plan is None:
        plan = _chosen_plan(recipe, splits, options, device)
        _check_numbers(plan)
    asked = options.split, device, shows_progress(), _tell
    result = control_by_recipe(plan, splits, *asked)
    print(_text(result))
    if options.json:
        found = {name: one.to_dict() for name, one in result.metrics().items()}
        write_text(options.json, to_json(found | {"verdict": result.verdict()}))


def _stored(folder: Run, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the settings of a run, which options must not contradict."""
    given = [
        name for group in GROUPS.values() for name in given_settings(options, group)
    ]
    given += [name for name in ("recipe", "budget") if getattr(options, name)]
    if given:
        raise DataError(
            f"the settings are those of the run, leave out {', '.join(given)}"
        )
    stored = folder.read_settings()
    if (stored.get("start") or {}).get("begin_with"):
        raise DataError("a run that began with another one cannot be controlled")
    return stored


def _given_plan(
    source: Path, stored: Mapping[str, Any], options: argparse.Namespace
) -> Recipe:
    """Returns the recipe of a run, or the one that the options specify."""
    if is_staged(Run(source)):  # its experts learned apart
        if not (source / RECIPE_NAME).exists():
            raise DataError("its training has not ended, continue it first", source)
        return read_recipe(source)
    groups = {
        name: settings_from(stored.get(name, {}) if stored else options, cls)
        for name, cls in GROUPS.items()
    }
    return as_recipe(groups, groups["training"].epochs)


def _chosen_plan(
    recipe: str, splits: "Splits", options: argparse.Namespace, device: str
) -> Recipe:
    """Returns the recipe of a knowledge base."""
    from kblrn_pyg.recipes.choose import choose_recipe
    from kblrn_pyg.recipes.material import Material
    from kblrn_pyg.runs import other_answers

    changes = {name: given_settings(options, cls) for name, cls in GROUPS.items()}
    known = other_answers(splits, "val")
    material = Material(splits["train"], splits["val"], known, device, shows_progress())
    plan = choose_recipe(recipe, material, options.budget, changes)
    tell(f"recipe {plan.name}: {plan.why or 'as it was given'}")
    tell("stages with numbers are trained once for each control")
    return plan


def _check_numbers(plan: Recipe) -> None:
    if not any(stage.uses_numbers for stage in plan.stages):
        raise DataError(
            "a model without the expert n, or e with evidence_bins, has no numbers to "
            f"control (its experts are {plan.experts!r})"
        )


def _tell(control: str) -> None:
    from kblrn_pyg.data.control import CONTROLS

    print(f"training, {control}: {CONTROLS.get(control, 'no numbers')}", flush=True)


def _text(result: "ControlResult") -> str:
    rows = {name: one.to_dict() for name, one in result.metrics().items()}
    parts = [figures_table("numbers", rows)]
    relations = _relation_rows(result)
    if relations:
        header = ["MRR of relation", "ranks", *result.tables]
        parts.append(format_table(header, relations))
    return "\n\n".join([*parts, result.verdict()])


def _relation_rows(result: "ControlResult") -> list[list[Any]]:
    """Returns the relations whose MRR the numbers change most, all ranks counted."""
    from kblrn_pyg.evaluation import Report

    reports = {name: Report.of(one).by_relation for name, one in result.tables.items()}
    found = {
        name: [one[name].mrr for one in reports.values()] for name in reports["true"]
    }
    counts = {name: one.count for name, one in reports["true"].items()}
    # The first are the true numbers; the last ones say nothing, or least.
    change = {name: counts[name] * abs(mrr[0] - mrr[-1]) for name, mrr in found.items()}
    names = sorted((name for name in found if change[name]), key=lambda n: -change[n])
    return [[name, counts[name], *found[name]] for name in names[:_MAX_RELATIONS]]
