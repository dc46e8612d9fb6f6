"""Draw how reliable the probabilities of a calibrated model are."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.data import DataError
from kblrn_pyg.evaluation import reliability_of
from kblrn_pyg.plotting import plot_reliability
from kblrn_pyg.runs import load_run, other_answers
from kblrn_pyg.viz.figure_parser import FigureParser


def draw(options: argparse.Namespace) -> Figure:
    model, splits, _ = load_run(options.run, options.root, options.dataset)
    if model.calibration is None:
        raise DataError(f"is not calibrated, run: kblrn calibrate {options.run}")
    found = {
        split: reliability_of(model, splits[split], other_answers(splits, split))
        for split in options.split or ("val", "test")
        if split in splits
    }
    if not found:
        raise DataError(f"unknown split, expected one of {', '.join(splits)}")
    return plot_reliability(found)


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_run()
    parser.add_argument(
        "--split",
        action="append",
        help="(repeatable; default: validation and test split)",
    )
    parser.run(draw)


if __name__ == "__main__":
    main()
