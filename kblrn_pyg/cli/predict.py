"""Answer a query with the model of a run; '?' stands for what is asked for."""

import argparse
import json
from pathlib import Path

from kblrn_pyg.cli.options import add_run
from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.predict import Predictions, predict_heads, predict_tails
from kblrn_pyg.runs import load_model

ASKED = "?"
_ENDINGS = {".csv": "csv", ".json": "json"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("head", help="the head, by name or identifier, or '?'")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help="the tail, by name or identifier, or '?'")
    add_output_arguments(parser, 10)
    parser.add_argument(
        "--novel",
        action="store_true",
        help="leave out known facts, those of validation and test included",
    )


def add_output_arguments(parser: argparse.ArgumentParser, k: int) -> None:
    r"""Adds the options that 'predict' and 'complete' share.

    Args:
        parser (argparse.ArgumentParser): The parser.
        k (int): The default number of predictions.
    """
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
    model = load_model(options.run)
    shared = {"k": options.k, "novel": options.novel}
    if options.head == ASKED:
        found = predict_heads(model, options.relation, options.tail, **shared)
    else:
        found = predict_tails(model, options.head, options.relation, **shared)
    write_predictions(found, options)


def check_output_options(options: argparse.Namespace) -> None:
    r"""Refuses wrong options before anything takes time.

    Args:
        options (argparse.Namespace): The options.
    """
    if options.k < 1:
        raise DataError(f"--k must be positive (got {options.k})")
    if options.out is not None and Path(options.out).is_dir():
        raise DataError("is a directory, expected a file", options.out)


def write_predictions(found: Predictions, options: argparse.Namespace) -> None:
    r"""Prints predictions, or writes them to a file.

    Args:
        found (Predictions): The predictions.
        options (argparse.Namespace): The options.
    """
    ending = Path(options.out or "").suffix.lower()
    text = _text(found, options.format or _ENDINGS.get(ending, "table"))
    if options.out is None:
        print(text, end="")
        return
    write_text(options.out, text)
    print(f"saved {options.out}")


def _text(found: Predictions, form: str) -> str:
    if form == "csv":
        return found.to_csv()
    if form == "json":
        return json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n"
    return f"{found}\n"
