"""An explanation as a picture: the paths between two entities, and all parts."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kblrn_pyg.explain import Reasons
from kblrn_pyg.explain.text import rank_text, signed
from kblrn_pyg.plotting.explained_parts import (
    LABELS,
    bars_of,
    draw_bars,
    height_of_bars,
)
from kblrn_pyg.plotting.explained_paths import (
    WIDTH,
    draw_lanes,
    height_of_lanes,
    lanes_of,
)
from kblrn_pyg.plotting.fitting import fit, minus
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE
from kblrn_pyg.plotting.words import in_words

# All in inches.
_TITLE, _FOOT, _MARGIN = 0.95, 0.45, 0.15
_BARS = 2.6


def plot_explanation(
    reasons: Reasons, max_bodies: int = 6, max_middles: int = 3
) -> Figure:
    r"""Draws the reasons for a score.

    To the left are the strongest bodies that hold, one below the other, each a
    way from the head to the tail; to the right is what each expert gave, and
    each of its parts. What is blue raises the score, what is orange lowers it.

    Args:
        reasons (Reasons): The reasons, as
            :meth:`~kblrn_pyg.explain.explain` gives them.
        max_bodies (int, optional): How many bodies are drawn; what the others
            give is summed up. (default: :obj:`6`)
        max_middles (int, optional): How many of the entities in the middle of
            a body are named. (default: :obj:`3`)
    """
    if max_bodies < 1:
        raise ValueError(f"'max_bodies' must be positive (got {max_bodies})")
    if max_middles < 1:
        raise ValueError(f"'max_middles' must be positive (got {max_middles})")
    lanes = lanes_of(reasons, max_bodies, max_middles)
    bars = bars_of(reasons, max_bodies)
    height = max(height_of_lanes(lanes), height_of_bars(bars))
    width = WIDTH + LABELS + _BARS + 3 * _MARGIN
    figure = plt.figure(figsize=(width, height + _TITLE + _FOOT))
    axes = _add_axes(figure, _MARGIN, WIDTH, height_of_lanes(lanes))
    draw_lanes(axes, reasons, lanes)
    left = WIDTH + LABELS + 2 * _MARGIN
    draw_bars(_add_axes(figure, left, _BARS, height_of_bars(bars)), bars)
    _write_title(figure, reasons)
    return figure


def _add_axes(figure: Figure, left: float, width: float, height: float) -> Axes:
    """Adds axes below the title."""
    total_width, total_height = figure.get_size_inches()
    bottom = total_height - _TITLE - height
    return figure.add_axes(
        (
            left / total_width,
            bottom / total_height,
            width / total_width,
            height / total_height,
        )
    )


def _write_title(figure: Figure, reasons: Reasons) -> None:
    width, height = figure.get_size_inches()
    relation = in_words(reasons.relation.name)
    asked = f"{reasons.head.name}  —  {relation}  →  {reasons.tail.name}"
    room = width - 2 * _MARGIN
    tails, heads = reasons.tail_query, reasons.head_query
    known = "a known fact" if reasons.known else "not a known fact"
    standing = (
        f"score {minus(signed(reasons.score))}, {known};  the tail has rank "
        f"{rank_text(tails.rank)} of {tails.num_candidates:,}, the head "
        f"{rank_text(heads.rank)} of {heads.num_candidates:,}"
    )
    for words, size, below in ((asked, 13, 0.35), (standing, 10, 0.66)):
        figure.text(
            _MARGIN / width,
            1 - below / height,
            fit(words, size, room, 1)[0],
            fontsize=size,
            parse_math=False,
        )
    for words, colour, left in (
        ("raises the score", BLUE, _MARGIN),
        ("lowers the score", ORANGE, _MARGIN + 1.5),
    ):
        figure.text(left / width, 0.15 / height, "■ ", color=colour, fontsize=9)
        figure.text((left + 0.17) / width, 0.15 / height, words, color=GREY, fontsize=9)
