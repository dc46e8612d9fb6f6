"""Find the most probable triples that the data set of a run lacks."""

import argparse

from kblrn_pyg.cli.predict import (
    add_output_arguments,
    check_output_options,
    write_predictions,
)
from kblrn_pyg.cli.runs import load_run, other_answers, shows_progress
from kblrn_pyg.predict import complete


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the folder that 'kblrn train' wrote")
    parser.add_argument(
        "--relation", action="append", help="only of this relation (repeatable)"
    )
    add_output_arguments(parser, 100)


def run(options: argparse.Namespace) -> None:
    check_output_options(options)
    model, splits, _ = load_run(options.run)
    found = complete(
        model,
        options.k,
        options.relation,
        other_answers(splits, "train"),
        shows_progress(),
    )
    write_predictions(found, options)
