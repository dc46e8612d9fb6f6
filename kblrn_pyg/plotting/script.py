"""What the scripts in ``viz/`` share: options, and errors of one line."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from kblrn_pyg.data import DataError
from kblrn_pyg.plotting.output import check_output


class FigureParser(argparse.ArgumentParser):
    r"""A parser with :obj:`--out` that reports errors in one line.

    Args:
        description (str): What the script draws.
    """

    def __init__(self, description: str | None) -> None:
        super().__init__(prog=Path(sys.argv[0]).stem, description=description)
        self.add_argument("--out", help="the .png, .svg or .pdf file to write")

    def add_source(self, what_of_run: str) -> None:
        r"""Adds the choice between a data set and a run.

        Args:
            what_of_run (str): What is taken from the run.
        """
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
        self.add_argument("--root", help="where data sets are kept")

    def add_run(self) -> None:
        """Adds a run, as scripts need it that are about a model."""
        self.add_argument(
            "--run", required=True, help="the folder that 'kblrn train' wrote"
        )
        self.add_argument(
            "--dataset", help="the data set, if the run does not say which, or it moved"
        )
        self.add_argument("--root", help="where data sets are kept, if they moved")

    def parse(self) -> argparse.Namespace:
        """Parses the options, and checks them before anything takes time."""
        options = self.parse_args()
        with self.mistakes():
            check_output(options.out)
        return options

    @contextmanager
    def mistakes(self) -> Iterator[None]:
        """Exits with one line if what the user gave is wrong."""
        try:
            yield
        except (DataError, OSError) as error:
            self.error(str(error))

    def error(self, message: str) -> NoReturn:
        """Exits with one line, without the usage."""
        self.exit(2, f"{self.prog}: {message}\n")


def positive(text: str) -> int:
    r"""Reads a positive integer.

    Args:
        text (str): The text.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1 (got {text!r})")
    return int(text)
