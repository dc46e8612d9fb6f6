"""What each expert gave, and each of its parts, as bars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from kblrn_pyg.data.words import in_words, minus, rank_text, signed
from kblrn_pyg.explain import Reason, Reasons
from kblrn_pyg.plotting.explained_paths import Lane
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

# All in inches.
LABELS = 2.9
_ROW = 0.37


@dataclass(frozen=True)
class Bar:
    r"""One bar.

    Args:
        label (str): What it stands for.
        note (str): More about it, in small letters.
        value (float): Its length.
        is_expert (bool, optional): Whether it is the sum of the bars that
            follow. (default: :obj:`False`)
    """

    label: str
    note: str
    value: float
    is_expert: bool = False


def bars_of(reasons: Reasons, lanes: Sequence[Lane], max_parts: int) -> list[Bar]:
    r"""Returns the bars of the experts, each followed by those of its parts.

    Args:
        reasons (Reasons): The explanation.
        lanes (sequence): The parts that are drawn as lanes, too.
        max_parts (int): At most how many parts of an expert have a bar.
    """
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
    r"""Returns what to say of an expert, and its parts that are worth a line.

    A single part without paths or note is not: it goes behind the name of the
    expert, or into a note if the expert has nothing to say.

    Args:
        expert (str): The name of the expert.
        parts (sequence): Its parts.
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


def height_of_bars(bars: Sequence[Bar]) -> float:
    """Returns the height that bars take."""
    return _ROW * len(bars)


def draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    r"""Draws the bars from top to bottom.

    Args:
        axes (matplotlib.axes.Axes): Where to.
        bars (sequence): The bars.
    """
    values = [bar.value for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    space = 0.3 * ((high - low) or 1.0)  # for the numbers at the ends
    height = height_of_bars(bars)
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
        fit(words, size, LABELS, 1, weight=weight)[0],
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
