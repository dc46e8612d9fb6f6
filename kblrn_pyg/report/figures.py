"""Figures as images inside the page."""

import base64
import io
from collections.abc import Sequence

import matplotlib.pyplot as plt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from kblrn_pyg.report.html import Html, element

_MARGIN = 0.05  # in inches


def pictures(figure: Figure, description: str) -> list[Html]:
    """Returns each axes of a figure as a separate image, and closes the figure.

    Separate images can be arranged in a window of any width, and identifiers
    inside of one SVG do not clash with those of another.
    """
    figure.canvas.draw()
    figure.set_layout_engine("none")  # keeps everything where it is
    for legend in figure.legends:
        legend.set_visible(False)
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    images = []
    for axes, area in zip(drawn, _areas(figure, drawn)):
        for other in drawn:
            other.set_visible(other is axes)
        images.append(element("img", src=_source(figure, area), alt=description))
    plt.close(figure)
    return images


def _areas(figure: Figure, drawn: Sequence[Axes]) -> list[Bbox]:
    """The area of each axes, all of one size, so that letters are of one size."""
    boxes = [
        box.transformed(figure.dpi_scale_trans.inverted())
        for box in (axes.get_tightbbox() for axes in drawn)
        if box is not None
    ]
    width = max(box.width for box in boxes) + 2 * _MARGIN
    height = max(box.height for box in boxes) + 2 * _MARGIN
    return [
        Bbox.from_bounds(
            (box.x0 + box.x1 - width) / 2, box.y1 + _MARGIN - height, width, height
        )
        for box in boxes
    ]


def _source(figure: Figure, area: Bbox) -> str:
    content = io.BytesIO()
    # The same figure must always give the same bytes.
    with rc_context({"svg.hashsalt": "kblrn"}):
        figure.savefig(content, format="svg", bbox_inches=area, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(content.getvalue()).decode()}"
