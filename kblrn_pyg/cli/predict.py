"""Answer a query with the model of a run; '?' stands for what is asked for."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kblrn_pyg.cli.options import add_run, add_triple, to_json, write_output
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run

if TYPE_CHECKING:
    from kblrn_pyg.predict import Predictions

ASKED = "?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_triple(parser, ", or '?'")
    add_output_arguments(parser, 10)
    parser.add_argument(
        "--novel",
        action="store_true",
        help="leave out known facts, those of validation and test included",
    )


def add_output_arguments(parser: argparse.ArgumentParser, k: int) -> None:
    """Adds the options that 'predict' and 'complete' share."""
    parser.add_argument(
        "--k", type=int, default=k, help=f"the number of predictions (default: {k})"
    )
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json"),
        help="(default: by the ending of '--out', else table)",
    )
    parser.add_argument("--out", metavar="FILE", help="write them to a file")


def run(options: argparse.Namespace) -> None:
    if (options.head == ASKED) == (options.tail == ASKED):
        raise DataError(
            f"exactly one of head and tail must be '?' (got {options.head!r} and "
            f"{options.tail!r})"
        )
    check_output_options(options)
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.predict import Predictions, predict_heads, predict_tails
    from kblrn_pyg.runs import load_model

    model = load_model(options.run)
    shared = {"k": options.k, "novel": options.novel}
    if options.head == ASKED:
        found = predict_heads(model, options.relation, options.tail, **shared)
    else:
        found = predict_tails(model, options.head, options.relation, **shared)
    assert isinstance(found, Predictions)  # a list only for a list of queries
    write_predictions(found, options)


def check_output_options(options: argparse.Namespace) -> None:
    """Refuses wrong options before anything takes time."""
    if options.k < 1:
        raise DataError(f"--k must be positive (got {options.k})")
    if options.out is not None and Path(options.out).is_dir():
        raise DataError("is a directory, expected a file", options.out)


def write_predictions(found: "Predictions", options: argparse.Namespace) -> None:
    """Prints predictions, or writes them to a file."""
    form = options.format or Path(options.out or "").suffix.lower().removeprefix(".")
    if form == "csv":
        text = found.to_csv()
    elif form == "json":
        text = to_json(found.to_json())
    else:
        text = f"{found}\n"
    write_output(text, options.out)
