"""Saves a figure to a file, or shows it in a window."""

import logging
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.figure import Figure

from kblrn_pyg.data import DataError
from kblrn_pyg.data.whole import whole_file
from kblrn_pyg.plotting.fonts import note_missing_letters, without_glyph_warnings

logger = logging.getLogger(__name__)


def check_output(out: str | None = None) -> None:
    r"""Makes sure that a figure can be saved or shown.

    Args:
        out (str, optional): The file, or :obj:`None` for a window.
            (default: :obj:`None`)
    """
    if out is None:
        if matplotlib.get_backend().lower() == "agg":
            raise DataError("there is no screen to show the figure on, expected --out")
        return
    known = FigureCanvasBase.get_supported_filetypes()
    if _format(out) not in known:
        kinds = ", ".join(f".{kind}" for kind in ("png", "svg", "pdf"))
        raise DataError(f"has an unknown ending, expected one of {kinds}", out)


def show_or_save(figure: Figure, out: str | None = None) -> None:
    r"""Saves a figure, or shows it in a window.

    Args:
        figure (matplotlib.figure.Figure): The figure.
        out (str, optional): The file to write; its ending determines the format. If
            :obj:`None`, a window opens. (default: :obj:`None`)
    """
    check_output(out)
    note_missing_letters(figure)
    if out is None:
        plt.show()
        return
    with whole_file(out) as file, without_glyph_warnings():
        figure.savefig(file, dpi=150, format=_format(out))
    logger.info("saved %s", out)


def _format(out: str) -> str:
    return Path(out).suffix.removeprefix(".").lower()
