"""Write a page about the model of a run that opens in any browser."""

import argparse
from pathlib import Path

from kblrn_pyg.cli.runs import load_run, shows_progress
from kblrn_pyg.data import DataError
from kblrn_pyg.report import report_page
from kblrn_pyg.training.checkpoint import write_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the folder that 'kblrn train' wrote")
    parser.add_argument(
        "--out", metavar="FILE", help="the page (default: report.html in the folder)"
    )
    parser.add_argument(
        "--examples",
        type=int,
        default=6,
        metavar="N",
        help="how many test queries are shown with their answers (default: 6)",
    )
    parser.add_argument(
        "--max-relations",
        type=int,
        default=6,
        metavar="N",
        help="of how many relations rules and numerical differences are shown, those "
        "with the most test triples (default: 6)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed of the choice of test queries"
    )


def run(options: argparse.Namespace) -> None:
    for name in ("examples", "max_relations", "seed"):
        if getattr(options, name) < 0:
            option = f"--{name.replace('_', '-')}"
            raise DataError(
                f"{option} must not be negative (got {getattr(options, name)})"
            )
    out = Path(options.out or Path(options.run) / "report.html")
    if out.is_dir():
        raise DataError("is a directory, expected a file", out)
    model, splits, settings = load_run(options.run)
    out.parent.mkdir(parents=True, exist_ok=True)
    page = report_page(
        options.run,
        model,
        splits,
        settings,
        num_examples=options.examples,
        max_relations=options.max_relations,
        seed=options.seed,
        progress=shows_progress(),
    )
    write_whole(out, page.encode())
    print(f"saved {out}")
