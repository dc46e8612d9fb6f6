"""Turn your own files into a data set; other commands accept its path."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.cli.options import add_header, shows_progress, tell
from kblrn_pyg.data import DataError, HeaderError
from kblrn_pyg.datasets.names import known_name
from kblrn_pyg.table import format_table

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

    from kblrn_pyg.data import BuildReport

_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    triples = (
        "head, relation, tail; .tsv, .txt, .csv, .nt, .ttl or .rdf, optionally "
        ".gz, or .parquet"
    )
    parser.add_argument(
        "--train",
        required=True,
        metavar="FILE|FOLDER",
        help=f"training triples: {triples}; or a folder with files called train, "
        "valid and test, and optionally numbers and labels",
    )
    parser.add_argument("--valid", help="validation triples")
    parser.add_argument("--test", help="test triples")
    parser.add_argument(
        "--holdout",
        type=float,
        metavar="FRACTION",
        help="instead of --valid and --test: the fraction of the training triples "
        "that each of them gets, for example 0.05",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of --holdout")
    parser.add_argument(
        "--numerical",
        help="numbers or dates: entity, attribute, value, or a wide table with a "
        "column for each attribute",
    )
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="names of identifiers: id, name; or an RDF file with labels",
    )
    parser.add_argument(
        "--derive",
        action="append",
        default=[],
        metavar="NAME=FUNCTION(A,B)",
        help="a value derived from the numbers of two entities, for layers of "
        "numbers: haversine(latitude, longitude), or the difference or log_ratio of "
        "two attributes (repeatable)",
    )
    parser.add_argument(
        "--min-entities",
        type=int,
        default=5,
        help="the minimum number of entities with a value of an attribute, to keep "
        "the attribute (default: 5)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse two values for one entity and attribute instead of averaging",
    )
    add_header(parser)
    parser.add_argument(
        "--columns",
        type=_three_names,
        metavar="HEAD,RELATION,TAIL",
        help="the columns to read, by their names in the header of the triples",
    )
    parser.add_argument(
        "--numerical-columns",
        type=_names,
        metavar="ENTITY,ATTRIBUTE,VALUE",
        help="the columns to read, by their names in the header of the numbers; with "
        "--wide, the column of entities and those of attributes",
    )
    parser.add_argument(
        "--label-columns",
        type=_names,
        metavar="ID,NAME",
        help="the columns to read, by their names in the header of the labels",
    )
    parser.add_argument(
        "--wide",
        action=argparse.BooleanOptionalAction,
        help="whether numbers have a column for each attribute (default: detected "
        "from their header and their second column)",
    )
    parser.add_argument(
        "--sep",
        type=_separator,
        metavar="CHARACTER",
        help="the separator of fields, also 'tab' or 'space' (default: tabs, or "
        "commas in .csv files, or another one that fits the first row)",
    )
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="the decimal point of numbers (default: .)",
    )
    parser.add_argument("--out", required=True, help="the directory to create")


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) < 2 or len(set(names)) != len(names) or not all(names):
        raise argparse.ArgumentTypeError(f"expected different names, got {text!r}")
    return names


def _three_names(text: str) -> list[str]:
    names = _names(text)
    if len(names) != 3:
        raise argparse.ArgumentTypeError(f"expected three names, got {text!r}")
    return names


def _separator(text: str) -> str:
    separator = _SEPARATORS.get(text, text)
    if len(separator) != 1 or separator in '"\n\r':
        raise argparse.ArgumentTypeError(f"expected one character, got {text!r}")
    return separator


def run(options: argparse.Namespace) -> None:
    known = known_name(options.out)
    if known is not None:
        raise DataError(
            f"--out {options.out} is the name of the data set {known}, expected another"
        )
    for name in ("train", "valid", "test", "numerical", "labels"):
        path = getattr(options, name)
        if path is not None and not os.path.exists(path):
            raise DataError("no such file", path)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data import derive
    from kblrn_pyg.datasets import write_local_kb

    kbs, report = _read(options)
    if options.derive:
        kbs = {split: derive(kb, *options.derive) for split, kb in kbs.items()}
    write_local_kb(options.out, kbs, report)
    train = kbs["train"]
    row = [train["entity"].num_nodes, len(train.edge_types)]
    row += [report.num_triples.get(split, 0) for split in ("train", "val", "test")]
    row.append(len(train.attribute_names))
    header = ["entities", "relations", "train", "valid", "test", "attributes"]
    print(format_table(header, [row]))
    for line in [*report.lines(), *_missing_splits(kbs)]:
        print(line)
    print(f"saved {options.out}, see: kblrn data {options.out}")


def _read(options: argparse.Namespace) -> "tuple[dict[str, HeteroData], BuildReport]":
    """Reads all files, and asks about headers if necessary."""
    from kblrn_pyg.data import read_kb

    answers: dict[str, Any] = {
        "header": options.header,
        "columns": options.columns,
        "numerical_columns": options.numerical_columns,
    }
    while True:
        try:
            return read_kb(
                options.train,
                options.valid,
                options.test,
                options.numerical,
                min_entities=options.min_entities,
                holdout=options.holdout,
                seed=options.seed,
                strict=options.strict,
                separator=options.sep,
                decimal=options.decimal,
                wide=options.wide,
                labels=options.labels,
                label_columns=options.label_columns,
                progress=shows_progress(),
                **answers,
            )
        except HeaderError as error:
            # A second question about the same columns would never end.
            kind = "columns" if error.expected[0] == "head" else "numerical_columns"
            is_asked = answers[kind] is None and answers["header"] is None
            if not is_asked or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            answers |= _asked(error, kind)


def _asked(error: HeaderError, kind: str) -> dict[str, Any]:
    """Asks whether a row is a header, and which of its columns to read."""
    name = Path(error.path or "the file").name
    tell(f"{name} begins with: {', '.join(error.row)}")
    if not _says_yes("are these the names of its columns?"):
        if len(error.row) != len(error.expected):
            raise error
        return {"header": False, "numerical_header": None}
    if len(error.row) == len(error.expected):
        meant = ", ".join(error.expected)
        if _says_yes(f"are they, in this order, {meant}?"):
            return {kind: error.row}
    return {kind: [_column(what, error.row) for what in error.expected]}


def _says_yes(question: str) -> bool:
    return _answer(f"{question} [Y/n] ").lower() in ("", "y", "yes")


def _column(what: str, names: list[str]) -> str:
    """Asks for a column until the answer is valid."""
    by_name = {name.strip().lower(): name for name in names}
    while True:
        answer = _answer(f"which one is the {what}? ").lower()
        if answer in by_name:
            return by_name[answer]
        tell(f"expected one of {', '.join(names)}")


def _answer(question: str) -> str:
    # Not by input(), whose questions would end up in what is printed.
    tell(question, end="")
    line = sys.stdin.readline()
    if not line:
        raise KeyboardInterrupt
    return line.strip()


def _missing_splits(kbs: "dict[str, HeteroData]") -> list[str]:
    """Describes the consequences of missing validation or test triples."""
    means = {
        "val": "no validation triples: training neither stops early nor keeps its best "
        "weights, and settings cannot be compared",
        "test": "no test triples: nothing tells how good a model is",
    }
    lines = [text for split, text in means.items() if split not in kbs]
    if len(lines) == len(means):  # else --holdout is refused
        lines.append("--holdout 0.05 would take both from the training triples")
    return lines
