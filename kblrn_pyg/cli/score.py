"""Score the triples of a file with the model of a run."""

import argparse

from kblrn_pyg.cli.options import add_run, shows_progress, tell
from kblrn_pyg.cli.output import add_output, check_output, write_table
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "file", help="triples by name: .tsv, .txt or .csv, optionally .gz, or .parquet"
    )
    parser.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first row is a header (default: if it consists of known "
        "names such as head, relation, tail)",
    )
    parser.add_argument(
        "--skip-unknown",
        action="store_true",
        help="leave out triples with unknown names instead of refusing the file",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> None:
    check_output(options)
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.predict import score_triples
    from kblrn_pyg.runs import load_model

    model = load_model(options.run)
    found = score_triples(
        model,
        options.file,
        options.header,
        options.skip_unknown,
        progress=shows_progress(),
    )
    write_table(found, options)
    if found.num_unknown:
        # Not among the rows of a table for another program.
        tell(f"{found.num_unknown:,} triples with unknown names left out")
