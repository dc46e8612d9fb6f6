"""An explanation as a figure: the paths between two entities, and all parts."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kblrn_pyg.data.words import in_words, minus, rank_text, signed
from kblrn_pyg.explain import Reason, Reasons
from kblrn_pyg.plotting.explained_paths import (
    WIDTH,
    Lane,
    draw_lanes,
    height_of_lanes,
    lanes_of,
)
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

# All in inches.
_TITLE, _FOOT, _MARGIN = 0.95, 0.45, 0.15
_LABELS, _BARS, _ROW = 2.9, 2.6, 0.37


@with_fonts
def plot_explanation(
    reasons: Reasons, max_parts: int = 6, max_middles: int = 3
) -> Figure:
    r"""Draws the reasons for a score.

    The left side shows the paths of known facts that the score is based on, such as
    those of the relational expert's rules, the strongest first. The right side
    shows the contribution of each expert, and of each of its parts. Blue
    contributions raise the score, orange ones lower it.

    Args:
        reasons (Reasons): The result of :meth:`~kblrn_pyg.explain.explain`.
        max_parts (int, optional): The maximum number of paths, and of parts of each
            expert, to draw; the others are summed up. (default: :obj:`6`)
        max_middles (int, optional): The maximum number of middle entities of a path
            to name. (default: :obj:`3`)
    """
    for name, value in (("max_parts", max_parts), ("max_middles", max_middles)):
        if value < 1:
            raise ValueError(f"'{name}' must be positive (got {value})")
    lanes = lanes_of(reasons, max_parts, max_middles)
    bars = _bars_of(reasons, lanes, max_parts)
    heights = height_of_lanes(lanes), _ROW * len(bars)
    width = WIDTH + _LABELS + _BARS + 3 * _MARGIN
    figure = plt.figure(figsize=(width, max(heights) + _TITLE + _FOOT))
    draw_lanes(_add_axes(figure, _MARGIN, WIDTH, heights[0]), reasons, lanes)
    left = WIDTH + _LABELS + 2 * _MARGIN
    _draw_bars(_add_axes(figure, left, _BARS, heights[1]), bars)
    _write_title(figure, reasons)
    return figure


def _add_axes(figure: Figure, left: float, width: float, height: float) -> Axes:
    """Adds axes below the title."""
    total = figure.get_size_inches()
    corner = (left, total[1] - _TITLE - height) / total
    return figure.add_axes((*corner, width / total[0], height / total[1]))


def _write_title(figure: Figure, reasons: Reasons) -> None:
    width, height = figure.get_size_inches()
    relation = in_words(reasons.relation.name)
    asked = f"{reasons.head.name}  —  {relation}  →  {reasons.tail.name}"
    available = width - 2 * _MARGIN
    tails, heads = reasons.tail_query, reasons.head_query
    known = "in the knowledge base" if reasons.known else "not in the knowledge base"
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


class Bar(NamedTuple):
    """A bar with its label, a note, and its length."""

    label: str
    note: str
    value: float
    is_expert: bool = False  # the sum of the bars that follow


def _bars_of(reasons: Reasons, lanes: Sequence[Lane], max_parts: int) -> list[Bar]:
    """Returns the bars of the experts, each followed by those of its parts."""
    numbers = {id(lane.reason): i for i, lane in enumerate(lanes, start=1)}
    bars = []
    for expert, value in reasons.experts.items():
        detail, note, parts = split_parts(expert, reasons.parts[expert])
        label = f"{expert} ({detail})" if detail else expert
        note = note or _ranks(reasons, expert)
        bars.append(Bar(label, note, value, is_expert=True))
        bars += _part_bars(parts, numbers, max_parts)
    return bars


def split_parts(
    expert: str, parts: Sequence[Reason]
) -> tuple[str, str, Sequence[Reason]]:
    """Returns the note about an expert, and its parts that get a line.

    A single part without paths or note is not: it goes behind the name of the
    expert, or into a note if the expert has nothing to say.
    """
    if len(parts) != 1 or parts[0].paths or parts[0].note:
        return "", "", parts
    text = parts[0].text
    if parts[0].contribution == 0:
        return "", text, ()
    # The default part of an expert has the name of its class.
    return "" if text.lower() == expert.replace("_", "") else text, "", ()


def _ranks(reasons: Reasons, expert: str) -> str:
    tail, head = reasons.tail_query.without, reasons.head_query.without
    if expert not in tail:
        return ""
    ranks = rank_text(tail[expert]), rank_text(head[expert])
    return "without it, the tail has rank {}, the head {}".format(*ranks)


def _part_bars(
    parts: Sequence[Reason], numbers: dict[int, int], max_parts: int
) -> Iterator[Bar]:
    for part in parts[:max_parts]:
        if id(part) in numbers:
            yield Bar(f"path {numbers[id(part)]}", "", part.contribution)
        else:
            own = "(by this fact itself)" if part.own else ""
            note = f"{part.note_text} {own}".strip()
            yield Bar(in_words(part.text), note, part.contribution)
    if left := parts[max_parts:]:
        total = sum(part.contribution for part in left)
        yield Bar(f"{len(left):,} more", "", total)


def _draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    """Draws the bars from top to bottom."""
    values = [bar.value for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    space = 0.3 * ((high - low) or 1.0)  # for the numbers at the ends
    height = _ROW * len(bars)
    axes.set_xlim(low - (space if low < 0 else 0), high + space)
    axes.set_ylim(0, height)
    axes.axis("off")
    axes.axvline(0, color=GREY, linewidth=0.8)
    for i, bar in enumerate(bars):
        _draw_bar(axes, bar, height - _ROW * (i + 0.5))


def _draw_bar(axes: Axes, bar: Bar, y: float) -> None:
    axes.barh(
        y,
        bar.value,
        0.2 if bar.is_expert else 0.14,
        color=ORANGE if bar.value < 0 else BLUE,
        alpha=1 if bar.is_expert else 0.55,
    )
    axes.annotate(
        minus(signed(bar.value)),
        (bar.value, y),
        (-3 if bar.value < 0 else 3, 0),
        textcoords="offset points",
        ha="right" if bar.value < 0 else "left",
        va="center",
        fontsize=8,
    )
    size, weight = (10, "bold") if bar.is_expert else (9, "normal")
    _write(axes, bar.label, size, y + 0.07 * bool(bar.note), weight)
    _write(axes, bar.note, 7.5, y - 0.09, colour=GREY)


def _write(
    axes: Axes,
    words: str,
    size: float,
    y: float,
    weight: str = "normal",
    colour: str = "black",
) -> None:
    """Writes to the left of the bars."""
    axes.annotate(
        fit(words, size, _LABELS, 1, weight=weight)[0],
        (0, y),
        (-8, 0),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=size,
        color=colour,
        fontweight=weight,
        parse_math=False,
    )
