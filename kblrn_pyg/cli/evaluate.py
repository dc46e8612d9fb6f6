"""Evaluate the model of a run."""

import argparse
import json

from kblrn_pyg.cli.runs import load_run, other_answers, shows_progress
from kblrn_pyg.cli.table import format_table
from kblrn_pyg.cli.train import FIGURES, figure_title
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import whole_file
from kblrn_pyg.evaluation import Metrics, RankTable, Report, evaluate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the folder that 'kblrn train' wrote")
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument(
        "--relation", action="append", help="rank only this relation (repeatable)"
    )
    parser.add_argument(
        "--per-relation", action="store_true", help="tell the figures of each relation"
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures to a file")
    parser.add_argument(
        "--markdown", action="store_true", help="print tables as Markdown"
    )


def run(options: argparse.Namespace) -> None:
    model, splits, _ = load_run(options.run)
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
        with whole_file(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")


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
