"""Add facts, entities and numbers to the model of a run, or retract facts."""

import argparse
from pathlib import Path

from kblrn_pyg.cli.options import add_header, add_run
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--triples",
        metavar="FILE",
        help="facts to add: head, relation, tail; entities may be new",
    )
    parser.add_argument(
        "--numbers",
        metavar="FILE",
        help="numbers to add or replace: entity, attribute, value, or a wide "
        "table with a column for each attribute",
    )
    parser.add_argument(
        "--retract", metavar="FILE", help="facts to remove: head, relation, tail"
    )
    parser.add_argument(
        "--fold-in",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="learn embeddings of new entities in a few steps; otherwise, experts "
        "with embeddings give them a score of zero (default: --fold-in)",
    )
    add_header(parser)
    parser.add_argument(
        "--decimal",
        choices=(".", ","),
        default=".",
        help="the decimal point of numbers (default: .)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="the model file to write (default: updated.pt beside the model)",
    )


def run(options: argparse.Namespace) -> None:
    sources = options.triples, options.numbers, options.retract
    if not any(sources):
        raise DataError("nothing to do, expected --triples, --numbers or --retract")
    of_run = Run(options.run)
    of_run.require_model()
    model_path = of_run.model_path if of_run.path.is_dir() else of_run.path
    out = Path(options.out or model_path.with_name("updated.pt"))
    _check_output(out, of_run, is_chosen=options.out is not None)
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.runs import load_model
    from kblrn_pyg.training import apply_update, read_update

    model = load_model(options.run)
    update = read_update(model, *sources, options.header, options.decimal)
    updated = apply_update(model, update, options.fold_in)
    updated.save(out)
    for line in update.lines():
        print(line)
    if update.num_new:
        how = "folded in" if options.fold_in else "left out"
        for name, expert in updated.experts.items():
            if expert.entity_tables():  # type: ignore[operator]
                print(f"the {name} expert: new entities are {how}")
    print(f"saved {out}")


def _check_output(out: Path, of_run: Run, is_chosen: bool) -> None:
    """Refuses files that hold something else."""
    if out.is_dir():
        raise DataError("is a directory, expected a file", out)
    if out == of_run.model_path and of_run.path.is_dir():
        raise DataError(
            "is the model of the run, which can be trained further: choose another "
            "file by --out",
            out,
        )
    if out.exists() and not is_chosen and out != of_run.path:
        raise DataError("exists already, choose a file by --out", out)
