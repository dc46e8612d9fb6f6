"""Explain the score that the model of a run gives to a triple."""

import argparse
import json

from kblrn_pyg.cli.options import add_run
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.runs import load_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("head", help="the head, by name or identifier")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help="the tail, by name or identifier")
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="(default: text)"
    )
    parser.add_argument("--out", metavar="FILE", help="write it to a file")
    parser.add_argument(
        "--max-middles",
        type=int,
        default=5,
        metavar="N",
        help="the maximum number of paths named for each reason (default: 5)",
    )


def run(options: argparse.Namespace) -> None:
    if options.max_middles < 0:
        raise DataError(
            f"--max-middles must not be negative (got {options.max_middles})"
        )
    model = load_model(options.run)
    reasons = model.explain(
        options.head, options.relation, options.tail, max_middles=options.max_middles
    )
    if options.format == "json":
        text = json.dumps(reasons.to_json(), indent=2, ensure_ascii=False)
    else:
        text = reasons.to_text()
    if options.out is None:
        print(text)
        return
    write_text(options.out, text + "\n")
    print(f"saved {options.out}")
