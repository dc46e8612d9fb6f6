"""Explain the score that the model of a run gives to a triple."""

import argparse

from kblrn_pyg.cli.options import add_run, add_triple, to_json, write_output
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_triple(parser)
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="(default: text)"
    )
    parser.add_argument("--out", metavar="FILE", help="write to a file")
    parser.add_argument(
        "--max-middles",
        type=int,
        default=5,
        metavar="N",
        help="the maximum number of paths to name for each reason (default: 5)",
    )


def run(options: argparse.Namespace) -> None:
    middles = options.max_middles
    if middles < 0:
        raise DataError(f"--max-middles must not be negative (got {middles})")
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.runs import load_model

    triple = options.head, options.relation, options.tail
    reasons = load_model(options.run).explain(*triple, max_middles=middles)
    is_json = options.format == "json"
    text = to_json(reasons.to_json()) if is_json else f"{reasons.to_text()}\n"
    write_output(text, options.out)
