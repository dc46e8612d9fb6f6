"""Find the most probable triples that the knowledge base of a run lacks."""

import argparse

from kblrn_pyg.cli.options import add_run, is_first_process, shows_progress, tell
from kblrn_pyg.cli.output import write_table
from kblrn_pyg.cli.predict import add_output_arguments, check_output_options
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--relation", action="append", help="only triples of this relation (repeatable)"
    )
    add_output_arguments(parser, 100)
    parser.add_argument(
        "--candidates",
        choices=("observed", "types", "all"),
        default="observed",
        help="the entities to consider, in queries and as answers: those that the "
        "relation has, or entities of their kind; those of its node types; or all "
        "(default: observed)",
    )
    parser.add_argument(
        "--min-probability",
        type=float,
        metavar="P",
        help="only triples with at least this probability, after 'kblrn calibrate'",
    )


def run(options: argparse.Namespace) -> None:
    check_output_options(options)
    least = options.min_probability
    if least is not None and not 0 <= least <= 1:
        raise DataError(f"--min-probability must lie in 0 to 1 (got {least})")
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.predict import complete
    from kblrn_pyg.runs import load_model

    model = load_model(options.run)
    if least is not None and model.calibration is None:
        raise DataError(
            f"is not calibrated, run: kblrn calibrate {options.run} (a model that has "
            "learned all facts has none left for that)",
            options.run,
        )
    found = complete(
        model,
        options.k,
        options.relation,
        progress=shows_progress(),
        candidates=options.candidates,
        min_probability=least,
    )
    if is_first_process():
        write_table(found, options)
        for line in _notes(len(found), options):
            tell(line)


def _notes(number: int, options: argparse.Namespace) -> list[str]:
    """Describes the triples that are left out, if there could be more."""
    least = options.min_probability
    if least is not None:
        return [
            f"--min-probability {least:g} keeps {number:,} of the {options.k:,} best "
            "triples or fewer; --k considers more"
        ]
    if number:
        return []
    text = "nothing to propose: queries of single-valued relations get no second answer"
    if options.candidates == "observed":
        text += ", and only entities that fit count (--candidates all: every entity)"
    return [text]
