"""Tell why the model of a run scores a triple as it does."""

import argparse
import json
from pathlib import Path

from kblrn_pyg.cli.runs import load_run, other_answers
from kblrn_pyg.data import DataError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", help="the folder that 'kblrn train' wrote")
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
        help="how many of the entities in the middle of a body are named (default: 5)",
    )


def run(options: argparse.Namespace) -> None:
    if options.max_middles < 0:
        raise DataError(f"--max-middles must not be negative ({options.max_middles})")
    model, splits, _ = load_run(options.run)
    reasons = model.explain(
        options.head,
        options.relation,
        options.tail,
        max_middles=options.max_middles,
        known=other_answers(splits, "train"),
    )
    if options.format == "json":
        text = json.dumps(reasons.to_json(), indent=2, ensure_ascii=False)
    else:
        text = reasons.to_text()
    if options.out is None:
        print(text)
        return
    Path(options.out).parent.mkdir(parents=True, exist_ok=True)
    Path(options.out).write_text(text + "\n", encoding="utf-8")
    print(f"saved {options.out}")
