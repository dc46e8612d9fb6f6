"""The bodies that hold as lanes from the head, over a middle, to the tail."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from kblrn_pyg.explain import Atom, BodyReason, Reasons
from kblrn_pyg.explain.text import signed
from kblrn_pyg.plotting.fitting import fit, minus
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE, PALE
from kblrn_pyg.plotting.words import in_words

# All in inches: the ends are as wide as the middle, the steps fill the gaps.
WIDTH = 8.4
_END, _MIDDLE = 1.45, 2.0
_GAP = (WIDTH - 2 * _END - _MIDDLE) / 2
_LINE = 0.15
_SPACE = 0.26
_BELOW = 0.25
_SIZE = 8.5


@dataclass(frozen=True)
class Step:
    r"""An arrow.

    Args:
        label (list): The lines above it.
        to_right (bool): Whether it points to the tail.
    """

    label: list[str]
    to_right: bool


@dataclass(frozen=True)
class Lane:
    r"""One body.

    Args:
        weight (float): Its weight.
        steps (tuple): Its arrows.
        middle (list): The lines of the box in the middle; none if head and
            tail are connected directly.
    """

    weight: float
    steps: tuple[Step, ...]
    middle: list[str]

    @property
    def height(self) -> float:
        """The room that it takes."""
        labels = [_LINE * len(step.label) + 0.06 for step in self.steps]
        if self.middle:
            # Labels stand above the line, which meets the box half-way.
            half = max(*labels, _LINE * len(self.middle) / 2 + 0.06)
            return half + _LINE * len(self.middle) / 2 + 0.06 + _SPACE
        return sum(labels) + 0.1 * len(self.steps) + _SPACE


def lanes_of(reasons: Reasons, max_bodies: int, max_middles: int) -> list[Lane]:
    r"""Returns the lanes of the strongest bodies.

    Args:
        reasons (Reasons): The explanation.
        max_bodies (int): How many there may be.
        max_middles (int): How many middle entities are named in each.
    """
    bodies = (reasons.relational or ())[:max_bodies]
    return [_lane(body, max_middles) for body in bodies]


def _lane(body: BodyReason, max_middles: int) -> Lane:
    gap = _GAP if body.num_middles else WIDTH - 2 * _END
    steps = tuple(_step(atom, gap) for atom in body.atoms)
    if body.own:
        steps[0].label.append("(by this fact itself)")
    names = [middle.name for middle in body.middles[:max_middles]]
    lines = [line for name in names for line in fit(name, _SIZE, _MIDDLE - 0.2, 2)]
    more = body.num_middles - len(names)
    if more:
        lines.append(f"and {more:,} more" if names else f"{more:,} entities")
    return Lane(body.weight, steps, lines)


def _step(atom: Atom, gap: float) -> Step:
    name = in_words(atom.relation.name)
    # The end of a Freebase name tells the most.
    label = fit(name, _SIZE, gap - 0.55, 3, keep_end=True)
    return Step(label, (atom.start, atom.end) in _TO_RIGHT)


_TO_RIGHT = {("h", "t"), ("h", "x"), ("x", "t")}


def height_of_lanes(lanes: Sequence[Lane]) -> float:
    """Returns the room that lanes take."""
    return max(1.5, sum(lane.height for lane in lanes)) + _BELOW


def draw_lanes(axes: Axes, reasons: Reasons, lanes: Sequence[Lane]) -> None:
    r"""Draws the lanes between head and tail.

    Args:
        axes (matplotlib.axes.Axes): Where to.
        reasons (Reasons): The explanation.
        lanes (sequence): The lanes.
    """
    height = height_of_lanes(lanes)
    axes.set_xlim(-0.02, WIDTH + 0.02)
    axes.set_ylim(0, height)
    axes.axis("off")
    bottom = _BELOW
    for left, entity, role in (
        (0.0, reasons.head, "head"),
        (WIDTH - _END, reasons.tail, "tail"),
    ):
        _draw_box(axes, left, bottom + 0.04, _END, height - bottom - 0.08, PALE)
        lines = fit(entity.name, 10, _END - 0.3, 5, weight="bold")
        centre = (left + _END / 2, (bottom + height) / 2)
        _write(axes, *centre, "\n".join(lines), 10, va="center", weight="bold")
        _write(axes, centre[0], height - 0.1, role, 8, va="top", color=GREY)
    if not lanes:
        _draw_nothing(axes, reasons, (bottom + height) / 2)
    strongest = max((abs(lane.weight) for lane in lanes), default=1.0) or 1.0
    # A few lanes stand in the middle of the ends.
    top = height - (height - bottom - sum(lane.height for lane in lanes)) / 2
    for number, lane in enumerate(lanes, start=1):
        width = 1 + 2.5 * abs(lane.weight) / strongest
        _draw_lane(axes, lane, number, top, width)
        top -= lane.height
    others = (reasons.relational or ())[len(lanes) :]
    if others:
        together = minus(signed(sum(body.weight for body in others)))
        words = f"and {len(others):,} more, together {together}"
        _write(axes, WIDTH / 2, bottom - 0.05, words, 9, va="top", color=GREY)


def _draw_lane(axes: Axes, lane: Lane, number: int, top: float, width: float) -> None:
    colour = ORANGE if lane.weight < 0 else BLUE
    ends = (_END + 0.06, WIDTH - _END - 0.06)
    if lane.middle:
        half = _LINE * len(lane.middle) / 2 + 0.06
        y = top - lane.height + _SPACE / 2 + half
        inner = (_END + _GAP, _END + _GAP + _MIDDLE)
        _draw_box(axes, inner[0], y - half, _MIDDLE, 2 * half, "#F2F2F2")
        words = "\n".join(lane.middle)
        _write(axes, WIDTH / 2, y, words, _SIZE, va="center")
        pairs = [(ends[0], inner[0] - 0.05), (inner[1] + 0.05, ends[1])]
        for step, (left, right) in zip(lane.steps, pairs):
            _draw_step(axes, step, left, right, y, colour, width)
    else:
        y = top - _SPACE / 2
        for step in lane.steps:
            y -= _LINE * len(step.label) + 0.06
            _draw_step(axes, step, *ends, y, colour, width)
            y -= 0.1
        y += 0.1
    _draw_number(axes, number, y, colour)


def _draw_step(
    axes: Axes,
    step: Step,
    left: float,
    right: float,
    y: float,
    colour: str,
    width: float,
) -> None:
    start, end = (left, right) if step.to_right else (right, left)
    axes.annotate(
        "",
        (end, y),
        (start, y),
        arrowprops={
            "arrowstyle": f"-|>,head_length={0.35 + 0.05 * width},"
            f"head_width={0.18 + 0.04 * width}",
            "color": colour,
            "linewidth": width,
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 14,
        },
    )
    words = "\n".join(step.label)
    _write(axes, (left + right) / 2, y + 0.09, words, _SIZE, va="bottom")


def _draw_nothing(axes: Axes, reasons: Reasons, y: float) -> None:
    words = "no path of the rules connects them"
    if reasons.relational is None:
        words = "the model has no relational expert"
    axes.plot([_END + 0.1, WIDTH - _END - 0.1], [y, y], ":", color=GREY)
    _write(axes, WIDTH / 2, y + 0.07, words, 9, va="bottom", color=GREY)


def _draw_number(axes: Axes, number: int, y: float, colour: str) -> None:
    axes.text(
        _END,
        y,
        str(number),
        fontsize=8,
        color="white",
        ha="center",
        va="center",
        bbox={"boxstyle": "circle,pad=0.25", "facecolor": colour, "edgecolor": "white"},
    )


def _draw_box(
    axes: Axes, left: float, bottom: float, width: float, height: float, colour: str
) -> None:
    box = FancyBboxPatch(
        (left, bottom),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=colour,
        edgecolor=GREY,
        linewidth=0.8,
    )
    axes.add_patch(box)


def _write(
    axes: Axes,
    x: float,
    y: float,
    words: str,
    size: float,
    va: str,
    color: str = "black",
    weight: str = "normal",
) -> None:
    axes.text(
        x,
        y,
        words,
        fontsize=size,
        ha="center",
        va=va,
        color=color,
        fontweight=weight,
        linespacing=1.15,
        parse_math=False,
    )
