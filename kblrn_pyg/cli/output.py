"""Output files and formats for tables of triples."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kblrn_pyg.cli.options import to_json, write_output
from kblrn_pyg.data import DataError

if TYPE_CHECKING:
    from kblrn_pyg.predict.triple_table import TripleTable

FORMATS = ("table", "csv", "json", "parquet", "nt")
STATEMENTS = ("plain", "star", "reified")


def add_output(parser: argparse.ArgumentParser) -> None:
    """Adds the options about output."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="nt is N-Triples (default: by the ending of '--out', else table)",
    )
    parser.add_argument("--out", metavar="FILE", help="write to a file")
    parser.add_argument(
        "--statement",
        choices=STATEMENTS,
        help="how N-Triples state probabilities: not at all, about triple terms of "
        "RDF 1.2 (RDF-star), or about reified statements (default: plain)",
    )


def check_output(options: argparse.Namespace) -> None:
    """Refuses wrong options before anything takes time."""
    if options.out is not None and Path(options.out).is_dir():
        raise DataError("is a directory, expected a file", options.out)
    form = chosen_format(options)
    if form == "parquet" and options.out is None:
        raise DataError("Parquet is not text, expected --out FILE")
    if options.statement is not None and form != "nt":
        raise DataError("--statement has no effect without N-Triples (--format nt)")


def chosen_format(options: argparse.Namespace) -> str:
    """Returns the format that was given, or else that of the file ending."""
    ending = Path(options.out or "").suffix.lower().removeprefix(".")
    return options.format or (ending if ending in FORMATS else "table")


def write_table(found: "TripleTable", options: argparse.Namespace) -> None:
    """Prints a table of triples, or writes it to a file."""
    form = chosen_format(options)
    if form == "parquet":
        found.to_parquet(options.out)
        print(f"saved {options.out}")
        return
    texts = {
        "csv": found.to_csv,
        "json": lambda: to_json(found.to_json()),
        "nt": lambda: found.to_ntriples(options.statement or "plain"),
        "table": lambda: f"{found}\n",
    }
    write_output(texts[form](), options.out)
