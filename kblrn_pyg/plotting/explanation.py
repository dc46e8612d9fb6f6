"""An explanation as a picture: the paths between two entities, and all parts."""

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kblrn_pyg.data.words import in_words, minus, rank_text, signed
from kblrn_pyg.explain import Reasons
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
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

# All in inches.
_TITLE, _FOOT, _MARGIN = 0.95, 0.45, 0.15
_BARS = 2.6


def plot_explanation(
    reasons: Reasons, max_parts: int = 6, max_middles: int = 3
) -> Figure:
    r"""Draws the reasons for a score.

    To the left are the paths of known facts that the score rests on, such as
    those of the relational expert's rules, the strongest first; to the right is
    what each expert gave, and each of its parts. What is blue raises the score,
    what is orange lowers it.

    Args:
        reasons (Reasons): The reasons, as
            :meth:`~kblrn_pyg.explain.explain` gives them.
        max_parts (int, optional): At most how many paths are drawn, and parts
            of each expert; the others are summed up. (default: :obj:`6`)
        max_middles (int, optional): At most how many of the entities in the
            middle of a path are named. (default: :obj:`3`)
    """
    for name, value in (("max_parts", max_parts), ("max_middles", max_middles)):
        if value < 1:
            raise ValueError(f"'{name}' must be positive (got {value})")
    lanes = lanes_of(reasons, max_parts, max_middles)
    bars = bars_of(reasons, lanes, max_parts)
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
    available = width - 2 * _MARGIN
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
            fit(words, size, available, 1)[0],
            fontsize=size,
            parse_math=False,
        )
    for words, colour, left in (
        ("raises the score", BLUE, _MARGIN),
        ("lowers the score", ORANGE, _MARGIN + 1.5),
    ):
        figure.text(left / width, 0.15 / height, "■ ", color=colour, fontsize=9)
        figure.text((left + 0.17) / width, 0.15 / height, words, color=GREY, fontsize=9)
