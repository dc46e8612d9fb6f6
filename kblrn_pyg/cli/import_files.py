"""Turn your own files into a data set that every other command takes by path."""

import argparse

from kblrn_pyg.cli.table import format_table
from kblrn_pyg.data import DataError, read_kb
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.datasets.load import known_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    triples = "head, relation, tail; .tsv, .txt, .csv or .nt, .gz or not"
    parser.add_argument("--train", required=True, help=f"training triples: {triples}")
    parser.add_argument("--valid", help="validation triples")
    parser.add_argument("--test", help="test triples")
    parser.add_argument(
        "--holdout",
        type=float,
        metavar="FRACTION",
        help="without --valid and --test: the part of the training triples that each "
        "of them gets, for example 0.05",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of --holdout")
    parser.add_argument("--numerical", help="numbers: entity, attribute, value")
    parser.add_argument(
        "--min-entities",
        type=int,
        default=5,
        help="keep an attribute if so many entities have a value (default: 5)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse two values for one entity and attribute instead of averaging",
    )
    parser.add_argument("--out", required=True, help="the directory to make")


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
    kbs, report = read_kb(
        options.train,
        options.valid,
        options.test,
        options.numerical,
        min_entities=options.min_entities,
        holdout=options.holdout,
        seed=options.seed,
        strict=options.strict,
        progress=True,
    )
    write_local_kb(options.out, kbs, report)
    train = kbs["train"]
    row = [train["entity"].num_nodes, len(train.edge_types)]
    row += [*report.num_triples.values(), len(train.attribute_names)]
    header = ["entities", "relations", "train", "valid", "test", "attributes"]
    print(format_table(header, [row]))
    for line in report.lines():
        print(line)
    print(f"saved: kblrn data {options.out}")
