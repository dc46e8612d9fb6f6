"""Write an HTML page about the model of a run."""

import argparse
import sys
from pathlib import Path

from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the folder that 'kblrn train' wrote")
    parser.add_argument(
        "--dataset", help="the data set, if the run does not name it or it has moved"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="the page (default: report.html in the folder)"
    )
    parser.add_argument(
        "--examples",
        type=int,
        default=6,
        metavar="N",
        help="the number of test queries to show with their answers (default: 6)",
    )
    parser.add_argument(
        "--max-relations",
        type=int,
        default=6,
        metavar="N",
        help="the maximum number of relations to show rules and numerical "
        "differences of; those with the most test triples are chosen (default: 6)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed for choosing test queries"
    )


def run(options: argparse.Namespace) -> None:
    for name in ("examples", "max_relations", "seed"):
        if (value := getattr(options, name)) < 0:
            option = f"--{name.replace('_', '-')}"
            raise DataError(f"{option} must not be negative (got {value})")
    out = Path(options.out or Path(options.run) / "report.html")
    if out.is_dir():
        raise DataError("is a directory, expected a file", out)
    Run(options.run).read_settings()  # or else it is not a run
    # Only now, as torch and Matplotlib take seconds to import.
    from kblrn_pyg.report import report_page
    from kblrn_pyg.runs import load_run

    model, splits, settings = load_run(options.run, dataset=options.dataset)
    page = report_page(
        options.run,
        model,
        splits,
        settings | ({"dataset": options.dataset} if options.dataset else {}),
        num_examples=options.examples,
        max_relations=options.max_relations,
        seed=options.seed,
        progress=sys.stderr.isatty(),
    )
    write_text(out, page)
    print(f"saved {out}")
