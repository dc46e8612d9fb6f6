"""Loss and validation of one run or several by epoch."""

import argparse

from figure_parser import FigureParser
from matplotlib.figure import Figure

from kblrn_pyg.plotting import plot_training
from kblrn_pyg.training.history import read_histories


def draw(options: argparse.Namespace) -> Figure:
    return plot_training(read_histories(options.run))


if __name__ == "__main__":
    parser = FigureParser(__doc__)
    parser.add_argument(
        "--run", nargs="+", required=True, help="folders that 'kblrn train' wrote"
    )
    parser.run(draw)
