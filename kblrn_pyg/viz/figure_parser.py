"""Shared code of the scripts: options, output of figures, one-line errors."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from matplotlib.figure import Figure
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.plotting import check_output, show_or_save
from kblrn_pyg.runs import load_model

Draw = Callable[[argparse.Namespace], Figure | None]


class FigureParser(argparse.ArgumentParser):
    """A parser with :obj:`--out` that reports errors in one line."""

    def __init__(self, description: str | None) -> None:
        super().__init__(prog=Path(sys.argv[0]).stem, description=description)
        self.add_argument("--out", help="the .png, .svg or .pdf file to write")

    def add_model(self) -> None:
        """Adds the option for a run or a model file."""
        self.add_argument(
            "--run", required=True, help="the folder of a run, or a model file"
        )

    def add_run(self) -> None:
        """Adds the folder of a run, and where its data set is."""
        self.add_argument(
            "--run", required=True, help="the folder that 'kblrn train' wrote"
        )
        self.add_argument(
            "--dataset", help="the data set, if the run names none or it has moved"
        )
        self.add_argument("--root", help="the directory of data sets, if it has moved")

    def add_source(self, what_of_run: str) -> None:
        """Adds the choice between a data set and a run; see :meth:`load_source`."""
        source = self.add_mutually_exclusive_group()
        source.add_argument(
            "--dataset",
            default="Families",
            help="a data set by name, or the directory of an imported one "
            "(default: Families)",
        )
        source.add_argument(
            "--run", help=f"the folder of a run or a model file: {what_of_run}"
        )
        self.add_argument("--root", help="the directory of data sets")

    def run(self, draw: Draw) -> None:
        """Parses the options, checks them before anything takes time, and draws.

        Without :obj:`--out`, a script with :obj:`--text` needs no screen.
        """
        options = self.parse_args()
        try:
            if options.out or not getattr(options, "text", False):
                check_output(options.out)
            figure = draw(options)
            if figure is not None:
                show_or_save(figure, options.out)
        except (DataError, OSError) as error:
            self.error(str(error))
        if options.out:
            print(f"saved {options.out}")

    def error(self, message: str) -> NoReturn:
        """Exits with one line, without the usage."""
        self.exit(2, f"{self.prog}: {message}\n")


def load_source(options: argparse.Namespace) -> tuple[HeteroData, KBLRN | None]:
    """Loads the knowledge base, with its model if a run is given."""
    if not options.run:
        return load_dataset(options.dataset, options.root)["train"], None
    model = load_model(options.run)
    return model.require_kb(), model


def positive(text: str) -> int:
    """Reads a positive integer."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {text!r})")
    return int(text)
