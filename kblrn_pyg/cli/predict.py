"""Answer a query with the model of a run; '?' stands for the missing entity."""

import argparse

from kblrn_pyg.cli.options import add_run, add_triple
from kblrn_pyg.cli.output import add_output, check_output, write_table
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run

ASKED = "?"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_triple(parser, ", or '?'")
    add_output_arguments(parser, 10)
    parser.add_argument(
        "--novel",
        action="store_true",
        help="leave out known facts, including those of validation and test",
    )


def add_output_arguments(parser: argparse.ArgumentParser, k: int) -> None:
    """Adds the options that 'predict' and 'complete' share."""
    parser.add_argument(
        "--k", type=int, default=k, help=f"the number of predictions (default: {k})"
    )
    add_output(parser)


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
    write_table(found, options)


def check_output_options(options: argparse.Namespace) -> None:
    """Refuses wrong options before anything takes time."""
    if options.k < 1:
        raise DataError(f"--k must be positive (got {options.k})")
    check_output(options)
