"""Evaluate the model of a run."""

import argparse
from typing import TYPE_CHECKING

from kblrn_pyg.cli.options import (
    FIGURES,
    add_run,
    figures_table,
    is_first_process,
    shows_progress,
    to_json,
)
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.training.run import Run

if TYPE_CHECKING:
    from kblrn_pyg.evaluation import Report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, needs_splits=True)
    parser.add_argument("--split", default="test", help="(default: test)")
    parser.add_argument(
        "--relation", action="append", help="rank only this relation (repeatable)"
    )
    parser.add_argument(
        "--per-relation", action="store_true", help="print the metrics of each relation"
    )
    parser.add_argument(
        "--candidates",
        choices=("all", "observed", "types"),
        default="all",
        help="the entities that answers are ranked against: all, those that the "
        "relation has on that side in training, or those of its node types "
        "(default: all)",
    )
    parser.add_argument("--json", metavar="FILE", help="write all metrics to a file")
    parser.add_argument(
        "--markdown", action="store_true", help="print tables as Markdown"
    )


def run(options: argparse.Namespace) -> None:
    Run(options.run).read_settings()  # or else it is not a run
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data.kb import num_edges
    from kblrn_pyg.evaluation import Report, evaluate
    from kblrn_pyg.runs import load_run, other_answers

    model, splits, _ = load_run(options.run, dataset=options.dataset)
    if options.split not in splits:
        raise DataError(
            f"unknown split {options.split!r}, expected one of {', '.join(splits)}"
        )
    if num_edges(splits[options.split], "edge_label_index") == 0:
        raise DataError(f"the {options.split} split has no triples to rank")
    table = evaluate(
        model,
        splits[options.split],
        other_answers(splits, options.split),
        relations=options.relation,
        progress=shows_progress(),
        candidates=options.candidates,
    )
    if not is_first_process():
        return
    report = Report.of(table)
    if options.markdown:
        print(report.to_markdown(None if options.per_relation else 0), end="")
    else:
        print(_text(report, options.per_relation))
    if options.json:
        write_text(options.json, to_json(report.to_json()))


def _text(report: "Report", per_relation: bool) -> str:
    columns = {"count": "ranks", **FIGURES}
    parts = {"all": report.overall.to_dict()}
    parts |= {f"{side}s": part.to_dict() for side, part in report.by_side.items()}
    text = figures_table("queries", parts, columns)
    if per_relation:
        by_relation = report.to_json()["by_relation"]
        text += "\n\n" + figures_table("relation", by_relation, columns)
    return text
