"""Turn your own files into a data set that every other command takes by path."""

import argparse

from kblrn_pyg.cli.options import shows_progress
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.names import known_name
from kblrn_pyg.table import format_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    triples = "head, relation, tail; .tsv, .txt, .csv or .nt, .gz or not, or .parquet"
    parser.add_argument("--train", required=True, help=f"training triples: {triples}")
    parser.add_argument("--valid", help="validation triples")
    parser.add_argument("--test", help="test triples")
    parser.add_argument(
        "--holdout",
        type=float,
        metavar="FRACTION",
        help="without --valid and --test: the fraction of the training triples that "
        "each of them gets, for example 0.05",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of --holdout")
    parser.add_argument("--numerical", help="numbers: entity, attribute, value")
    parser.add_argument(
        "--derive",
        action="append",
        default=[],
        metavar="NAME=FUNCTION(A,B)",
        help="a number of two entities together, for layers of numbers: their "
        "haversine(latitude, longitude), or the difference or log_ratio of two "
        "attributes; may be given more than once",
    )
    parser.add_argument(
        "--min-entities",
        type=int,
        default=5,
        help="the least number of entities that must have a value of an attribute "
        "to keep it (default: 5)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse two values for one entity and attribute instead of averaging",
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row of each file is a header (default: if it consists "
        "of well-known names such as head, relation, tail)",
    )
    parser.add_argument(
        "--columns",
        type=_three_names,
        metavar="HEAD,RELATION,TAIL",
        help="the columns to read, by their names in the header of the triples",
    )
    parser.add_argument(
        "--numerical-columns",
        type=_three_names,
        metavar="ENTITY,ATTRIBUTE,VALUE",
        help="the columns to read, by their names in the header of the numbers",
    )
    parser.add_argument("--out", required=True, help="the directory to create")


def _three_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) != 3 or not all(names):
        raise argparse.ArgumentTypeError(f"expected three names, got {text!r}")
    return names


def run(options: argparse.Namespace) -> None:
    if options.holdout is None and not (options.valid and options.test):
        raise DataError(
            "the validation or test split is missing, expected --valid and --test, "
            "or --holdout FRACTION to take them from the training triples"
        )
    known = known_name(options.out)
    if known is not None:
        raise DataError(
            f"--out {options.out} is the name of the data set {known}, expected another"
        )
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data import derive, read_kb
    from kblrn_pyg.datasets import write_local_kb

    kbs, report = read_kb(
        options.train,
        options.valid,
        options.test,
        options.numerical,
        min_entities=options.min_entities,
        holdout=options.holdout,
        seed=options.seed,
        strict=options.strict,
        header=options.header,
        columns=options.columns,
        numerical_columns=options.numerical_columns,
        progress=shows_progress(),
    )
    if options.derive:
        kbs = {split: derive(kb, *options.derive) for split, kb in kbs.items()}
    write_local_kb(options.out, kbs, report)
    train = kbs["train"]
    row = [train["entity"].num_nodes, len(train.edge_types)]
    row += [*report.num_triples.values(), len(train.attribute_names)]
    header = ["entities", "relations", "train", "valid", "test", "attributes"]
    print(format_table(header, [row]))
    for line in report.lines():
        print(line)
    print(f"saved {options.out}, see: kblrn data {options.out}")
