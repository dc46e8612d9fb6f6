"""Tell whether a model uses its numbers: train it with true ones, and with others."""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.options import (
    add_settings,
    figures_table,
    given_settings,
    settings_from,
    shows_progress,
    to_json,
)
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.names import COUNTS, check_name
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.rules.settings import RuleSettings
from kblrn_pyg.table import format_table
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings

if TYPE_CHECKING:
    from kblrn_pyg.evaluation import RankTable
    from kblrn_pyg.evaluation.control import ControlResult
    from kblrn_pyg.nn import KBLRN
    from kblrn_pyg.rules import RuleSet
    from kblrn_pyg.runs import Splits

_GROUPS: dict[str, Any] = {
    "model": ModelSettings,
    "rules": RuleSettings,
    "training": FitSettings,
}
_MAX_RELATIONS = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="RUN|DATASET",
        help="a run, whose settings are used, or a data set: one of "
        f"{', '.join(COUNTS)}, or the directory of an imported one",
    )
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument("--json", metavar="FILE", help="write all metrics to a file")
    for group in _GROUPS.values():
        add_settings(parser, group)


def run(options: argparse.Namespace) -> None:
    dataset, root, groups = _settings(options)
    model = groups["model"]
    if "n" not in model.experts and not ("e" in model.experts and model.evidence_bins):
        raise DataError(
            "a model without the expert n, or e with evidence_bins, has no numbers to "
            f"control (its experts are {model.experts!r})"
        )
    check_name(dataset)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data.control import CONTROLS
    from kblrn_pyg.data.kb import num_edges
    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.evaluation.control import ControlResult
    from kblrn_pyg.rules import find_rules

    splits = load_dataset(dataset, root)
    if options.split not in splits:
        raise DataError(
            f"unknown split {options.split!r}, expected one of {', '.join(splits)}"
        )
    for split in dict.fromkeys(("val", options.split)):
        if num_edges(splits[split], "edge_label_index") == 0:
            raise DataError(f"the {split} split has no triples, which a control needs")
    rules = None
    if letters := set("re") & set(groups["model"].experts):
        train, progress = splits["train"], shows_progress()
        rules = find_rules(train, groups["rules"], progress, "e" in letters)
    names = [*CONTROLS]
    names += ["without"] if model.experts != "n" else []
    tables = {}
    for name in names:
        print(f"training, {name}: {CONTROLS.get(name, 'no numbers')}", flush=True)
        tables[name] = _ranks(name, groups, splits, rules, options.split)
    result = ControlResult(tables)
    print(_text(result))
    if options.json:
        found = {name: one.to_dict() for name, one in result.metrics().items()}
        write_text(options.json, to_json(found | {"verdict": result.verdict()}))


def _settings(
    options: argparse.Namespace,
) -> tuple[str, str | None, dict[str, Any]]:
    """Returns the data set, where it is kept, and the settings by group."""
    if not (Path(options.source) / "settings.json").exists():
        groups = {name: settings_from(options, cls) for name, cls in _GROUPS.items()}
        return options.source, options.root, groups
    for cls in _GROUPS.values():
        if given := given_settings(options, cls):
            raise DataError(
                f"the settings are those of the run, leave out {', '.join(given)}"
            )
    stored = Run(options.source).read_settings()
    if stored.get("start", {}).get("begin_with"):
        raise DataError("a run that began with another one cannot be controlled")
    if "training" not in stored:
        raise DataError(
            "a run of experts that learned apart cannot be controlled; give its data "
            "set and the settings of a training instead"
        )
    groups = {
        name: settings_from(stored.get(name, {}), cls) for name, cls in _GROUPS.items()
    }
    return stored["dataset"], options.root or stored.get("root"), groups


def _ranks(
    control: str,
    groups: Mapping[str, Any],
    splits: "Splits",
    rules: "RuleSet | None",
    split: str,
) -> "RankTable":
    """Trains a model with the numbers of a control, and ranks a split."""
    from kblrn_pyg.data.control import control_numbers
    from kblrn_pyg.evaluation import evaluate
    from kblrn_pyg.runs import other_answers
    from kblrn_pyg.training import fit, seed_all

    training = groups["training"]
    kbs = splits
    if control != "without":
        kbs = {
            name: control_numbers(kb, control, training.seed)
            for name, kb in splits.items()
        }
    seed_all(training.seed)
    model = _new_model(control, groups["model"], (splits, kbs), rules)
    fit(
        model,
        kbs["train"],
        kbs["val"],
        other_answers(kbs, "val"),
        progress=shows_progress(),
        settings=training,
    )
    return evaluate(model, kbs[split], other_answers(kbs, split))


def _new_model(
    control: str,
    settings: ModelSettings,
    kbs: tuple["Splits", "Splits"],
    rules: "RuleSet | None",
) -> "KBLRN":
    """Makes a model; ``kbs`` are those with true numbers, and those of the control."""
    from kblrn_pyg.data import layer_features, pair_attributes
    from kblrn_pyg.nn import KBLRN, LayerExpert

    true, train = (splits["train"] for splits in kbs)
    others = settings.experts.replace("n", "")
    plain = ModelSettings()
    without = replace(
        settings,
        numerical=plain.numerical,
        learn_rbf=plain.learn_rbf,
        threshold=plain.threshold,
        ignore_unknown=plain.ignore_unknown,
    )
    if control == "without":
        values = asdict(without) | {"experts": others, "evidence_bins": 0}
        return KBLRN.from_data(train, **values, rules=rules)
    if control == "known" and "n" in settings.experts and settings.numerical == "layer":
        # Attributes that are constant would be left out.
        found = layer_features(train, settings.threshold, pair_attributes(true))
        layers = LayerExpert(train, found, settings.ignore_unknown)
        experts = [*([others] if others else []), layers]
        values = asdict(without) | {"experts": experts}
        return KBLRN.from_data(train, **values, rules=rules)
    return KBLRN.from_data(train, **asdict(settings), rules=rules)


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
