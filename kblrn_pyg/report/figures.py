"""Figures as pictures inside of the page."""

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
    r"""Returns each axes of a figure as an image of its own and closes it.

    Alone they find their place in a window of any width, and as images they
    keep the identifiers of one SVG from those of others.

    Args:
        figure (matplotlib.figure.Figure): The figure.
        description (str): What it shows, for those who do not see it.
    """
    figure.canvas.draw()
    figure.set_layout_engine("none")  # nothing moves any more
    for legend in figure.legends:
        legend.set_visible(False)
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    rooms = _rooms(figure, drawn)
    images = []
    for axes, room in zip(drawn, rooms):
        for other in drawn:
            other.set_visible(other is axes)
        images.append(element("img", src=_source(figure, room), alt=description))
    plt.close(figure)
    return images


def _rooms(figure: Figure, drawn: Sequence[Axes]) -> list[Bbox]:
    """The place of each axes, of one size, or their letters would not be."""
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


def _source(figure: Figure, room: Bbox) -> str:
    content = io.BytesIO()
    # The same figure shall always be the same bytes.
    with rc_context({"svg.hashsalt": "kblrn"}):
        figure.savefig(content, format="svg", bbox_inches=room, metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(content.getvalue()).decode()}"
