"""Calibrate the scores of a run to probabilities, on its validation set."""

import argparse

from kblrn_pyg.cli.options import add_run
from kblrn_pyg.data import DataError
from kblrn_pyg.table import format_table
from kblrn_pyg.training.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser, needs_splits=True)
    parser.add_argument(
        "--negatives",
        choices=("observed", "all"),
        default="observed",
        help="the entities that replace one of a true triple to get a false one: those "
        "that the relation has on that side, or all (default: observed)",
    )
    parser.add_argument(
        "--ratio",
        type=float,
        default=1.0,
        metavar="X",
        help="the number of false triples for each true one (default: 1)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="the seed for choosing false triples"
    )
    parser.add_argument(
        "--bins", action="store_true", help="print the reliability of each bin"
    )


def run(options: argparse.Namespace) -> None:
    if not 0 < options.ratio < float("inf"):
        raise DataError(f"--ratio must be positive (got {options.ratio})")
    of_run = Run(options.run)
    of_run.read_settings()  # or else it is not a run
    of_run.lock()  # a training would replace the model
    try:
        _calibrate(options, of_run)
    finally:
        of_run.close()


def _calibrate(options: argparse.Namespace, of_run: Run) -> None:
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.data import DataError
    from kblrn_pyg.data.kb import num_edges
    from kblrn_pyg.evaluation import calibrate, reliability_of
    from kblrn_pyg.runs import load_run

    model, splits, _ = load_run(options.run, dataset=options.dataset)
    asked = {name for name, kb in splits.items() if num_edges(kb, "edge_label_index")}
    if "val" not in asked:
        raise DataError("the val split has no triples to learn probabilities from")
    choices = {"ratio": options.ratio, "negatives": options.negatives}
    choices |= {"seed": options.seed}
    model.calibration = calibrate(model, splits["val"], [splits["test"]], **choices)
    model.save(of_run.model_path)  # before a reader of what follows has seen enough
    own, total = model.calibration.num_own, len(model.calibration)
    print(f"{own:,} of {total:,} relations have numbers of their own")
    rows, bins = [], []
    for split, other in (("val", "test"), ("test", "val")):
        if split not in asked:
            continue
        found = reliability_of(model, splits[split], [splits[other]], options.seed + 1)
        rows.append([split, int(found.count.sum()), f"{found.error:.4f}"])
        bins.append(f"\n{split}\n{found}")
    header = ["split", "triples", "expected calibration error"]
    print(format_table(header, rows))
    if options.bins:
        print("\n".join(bins))
    print(f"saved {of_run.model_path}")
