"""What each expert gave, and each of its parts, as bars."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from kblrn_pyg.explain import NumberReason, Reasons
from kblrn_pyg.explain.text import plain, rank_text, signed
from kblrn_pyg.plotting.fitting import fit, minus
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE
from kblrn_pyg.plotting.words import in_words, number_text

# All in inches.
LABELS = 2.9
_ROW = 0.37
# From here on numbers are written as 9.83M; years are not.
_LARGE = 1e5


@dataclass(frozen=True)
class Bar:
    r"""One bar.

    Args:
        label (str): What it stands for.
        note (str): More about it, in small letters.
        value (float): Its length.
        is_expert (bool): Whether it is the sum of those that follow.
    """

    label: str
    note: str
    value: float
    is_expert: bool = False


def bars_of(reasons: Reasons, max_bodies: int) -> list[Bar]:
    r"""Returns the experts, each before its parts.

    Args:
        reasons (Reasons): The explanation.
        max_bodies (int): How many bodies have a bar of their own.
    """
    bars = []
    for expert, value in reasons.experts.items():
        bars.append(_expert_bar(reasons, expert, value))
        if expert == "latent" and len(reasons.latent or ()) > 1:
            bars += [Bar(p.scorer, "", p.contribution) for p in reasons.latent or ()]
        elif expert == "relational":
            bars += _body_bars(reasons, max_bodies)
        elif expert == "numerical":
            bars += [_number_bar(one) for one in reasons.numerical or ()]
    return bars


def _expert_bar(reasons: Reasons, expert: str, value: float) -> Bar:
    label, note = expert, _ranks(reasons, expert)
    if expert == "latent" and reasons.latent is not None and len(reasons.latent) == 1:
        label = f"latent ({reasons.latent[0].scorer})"
    if expert == "numerical" and not reasons.numerical:
        note = "the relation has no numerical attributes"
    return Bar(label, note, value, is_expert=True)


def _ranks(reasons: Reasons, expert: str) -> str:
    tail, head = reasons.tail_query.without, reasons.head_query.without
    if expert not in tail:
        return ""
    ranks = rank_text(tail[expert]), rank_text(head[expert])
    return "without it, the tail has rank {}, the head {}".format(*ranks)


def _body_bars(reasons: Reasons, max_bodies: int) -> list[Bar]:
    bodies = reasons.relational or ()
    bars = [
        Bar(f"path {number}", "", body.weight)
        for number, body in enumerate(bodies[:max_bodies], start=1)
    ]
    left = bodies[max_bodies:]
    if left:
        weight = sum(body.weight for body in left)
        bars.append(Bar(f"{len(left):,} more paths", "", weight))
    return bars


def _number_bar(one: NumberReason) -> Bar:
    label = in_words(one.attribute.name)
    head, tail = _number(one.head), _number(one.tail)
    if one.difference is None:
        return Bar(label, f"{head} and {tail}", one.contribution)
    tail = f"({tail})" if tail.startswith("−") else tail
    note = f"{head} − {tail} = {_number(one.difference)}"
    if one.centre is not None and one.width is not None:
        centre, width = _number(one.centre, one.width), _number(one.width, one.width)
        note += f", usual {centre} ± {width}"
    return Bar(label, note, one.contribution)


def _number(value: float | None, scale: float | None = None) -> str:
    if value is not None and max(abs(value), scale or 0) >= _LARGE:
        return minus(EngFormatter(places=2, sep="")(value))
    if value is not None and scale is not None:
        return minus(number_text(value, scale))
    return minus(plain(value))


def height_of_bars(bars: Sequence[Bar]) -> float:
    """Returns the room that bars take."""
    return _ROW * len(bars)


def draw_bars(axes: Axes, bars: Sequence[Bar]) -> None:
    r"""Draws the bars from the top downwards.

    Args:
        axes (matplotlib.axes.Axes): Where to.
        bars (sequence): The bars.
    """
    values = [bar.value for bar in bars]
    low, high = min(0.0, *values), max(0.0, *values)
    room = 0.3 * ((high - low) or 1.0)  # for the figures at the ends
    height = height_of_bars(bars)
    axes.set_xlim(low - (room if low < 0 else 0), high + room)
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
    weight = "bold" if bar.is_expert else "normal"
    _write(
        axes, bar.label, 10 if bar.is_expert else 9, y + 0.07 * bool(bar.note), weight
    )
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
