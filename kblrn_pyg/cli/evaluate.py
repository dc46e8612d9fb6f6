"""Evaluate the model of a run."""

import argparse
import json

from kblrn_pyg.cli.options import add_run, shows_progress
from kblrn_pyg.cli.train import FIGURES, figure_title
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.evaluation import Metrics, RankTable, Report, evaluate
from kblrn_pyg.runs import load_run, other_answers
from kblrn_pyg.table import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, needs_splits=True)
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument(
        "--relation", action="append", help="rank only this relation (repeatable)"
    )
    parser.add_argument(
        "--per-relation", action="store_true", help="print the metrics of each relation"
    )
    parser.add_argument("--json", metavar="FILE", help="write all metrics to a file")
    parser.add_argument(
        "--markdown", action="store_true", help="print tables as Markdown"
    )


def run(options: argparse.Namespace) -> None:
    model, splits, _ = load_run(options.run, dataset=options.dataset)
    if options.split not in splits:
        raise DataError(
            f"unknown split {options.split!r}, expected one of {', '.join(splits)}"
        )
    table = evaluate(
        model,
        splits[options.split],
        other_answers(splits, options.split),
        relations=options.relation,
        progress=shows_progress(),
    )
    if options.markdown:
        report = Report.of(table)
        print(report.to_markdown(None if options.per_relation else 0), end="")
    else:
        print(_text(table, options.per_relation))
    if options.json:
        content = Report.of(table).to_json()
        text = json.dumps(content, indent=2, ensure_ascii=False)
        write_text(options.json, text + "\n")


def _text(table: RankTable, per_relation: bool) -> str:
    report = Report.of(table)
    parts = {"all": report.overall, "heads": report.by_side.get("head")}
    parts["tails"] = report.by_side.get("tail")
    text = _figures("queries", parts)
    if per_relation:
        text += "\n\n" + _figures("relation", dict(report.by_relation))
    return text


def _figures(title: str, parts: dict[str, Metrics | None]) -> str:
    rows = []
    for name, metrics in parts.items():
        if metrics is not None:
            figures = metrics.to_dict()
            rows.append([name, metrics.count, *(figures[key] for key in FIGURES)])
    return format_table([title, "ranks", *map(figure_title, FIGURES)], rows)
