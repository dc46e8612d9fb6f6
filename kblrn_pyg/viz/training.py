"""Draw loss and validation by epoch, of one run or several."""

import argparse

from matplotlib.figure import Figure

from kblrn_pyg.plotting import plot_training
from kblrn_pyg.training.history import read_histories
from kblrn_pyg.viz.figure_parser import FigureParser


def draw(options: argparse.Namespace) -> Figure:
    return plot_training(read_histories(options.run))


def main() -> None:
    """Draws what the options ask for."""
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run",
        nargs="+",
        action="extend",
        required=True,
        help="folders that 'kblrn train' wrote (repeatable)",
    )
    parser.run(draw)


if __name__ == "__main__":
    main()
