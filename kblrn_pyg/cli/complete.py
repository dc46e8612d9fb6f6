"""Find the most probable triples that the knowledge base of a run lacks."""

import argparse

from kblrn_pyg.cli.options import add_run, is_first_process, shows_progress
from kblrn_pyg.cli.predict import (
    add_output_arguments,
    check_output_options,
    write_predictions,
)
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--relation", action="append", help="only of this relation (repeatable)"
    )
    add_output_arguments(parser, 100)


def run(options: argparse.Namespace) -> None:
    check_output_options(options)
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.predict import complete
    from kblrn_pyg.runs import load_model

    model = load_model(options.run)
    found = complete(model, options.k, options.relation, progress=shows_progress())
    if is_first_process():
        write_predictions(found, options)
