"""The paths behind a score, drawn as lanes from the head to the tail."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from kblrn_pyg.data.words import in_words, minus, signed
from kblrn_pyg.explain import Named, NamedFact, Reason, Reasons
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE, PALE

# All in inches.
WIDTH = 8.4
_END = 1.45  # of the boxes of head and tail
_BETWEEN = WIDTH - 2 * _END
# What boxes and the gaps around them share of the width between the ends.
_BOX, _GAP = 2.0, 1.75
_LINE = 0.15
_SPACE = 0.26
_BELOW = 0.25
_SIZE = 8.5


class Chain(NamedTuple):
    """A path, from left to right."""

    middles: tuple[Named, ...]
    # For each gap between two neighbours, the relation that connects them and
    # whether it points to the right; None if nothing does, such as behind the end
    # of a path that does not reach the tail. Without middles, all of them lead
    # from end to end.
    steps: tuple[tuple[Named, bool] | None, ...]

    @classmethod
    def of(cls, path: Sequence[NamedFact], head: Named, tail: Named) -> "Chain":
        """Orders the facts of a path from the head at the left to the tail."""
        if all({fact.head, fact.tail} == {head, tail} for fact in path):
            return cls((), tuple((fact.relation, fact.head == head) for fact in path))
        nodes, found = [head], list[tuple[Named, bool] | None]()
        for fact in path:
            to_right = fact.head == nodes[-1]
            if nodes[-1] not in (fact.head, fact.tail):  # begins somewhere else
                to_right = fact.head != tail
                nodes.append(fact.head if to_right else fact.tail)
                found.append(None)
            nodes.append(fact.tail if to_right else fact.head)
            found.append((fact.relation, to_right))
        if nodes[-1] != tail:
            nodes.append(tail)
            found.append(None)
        return cls(tuple(nodes[1:-1]), tuple(found))


class Step(NamedTuple):
    """An arrow with the lines above it."""

    label: list[str]
    to_right: bool


class Lane(NamedTuple):
    """One part of the score that is based on paths."""

    reason: Reason
    steps: tuple[Step | None, ...]
    boxes: list[list[str]]  # the lines of each box between head and tail

    @property
    def height(self) -> float:
        """Its height."""
        labels = [_LINE * len(step.label) + 0.06 for step in self.steps if step]
        if self.boxes:
            # Labels stand above the line, which meets the boxes half-way.
            half = _LINE * max(map(len, self.boxes)) / 2 + 0.06
            return max(*labels, half) + half + _SPACE
        return sum(labels) + 0.1 * len(labels) + _SPACE


def reasons_with_paths(reasons: Reasons) -> list[Reason]:
    """Returns the parts of all experts that are based on paths, the strongest
    first."""
    found = [part for parts in reasons.parts.values() for part in parts if part.paths]
    return sorted(found, key=lambda part: -abs(part.contribution))


def lanes_of(reasons: Reasons, max_parts: int, max_middles: int) -> list[Lane]:
    """Returns the lanes of the strongest parts that are based on paths."""
    ends = reasons.head, reasons.tail
    return [
        _lane(part, [Chain.of(path, *ends) for path in part.paths], max_middles)
        for part in reasons_with_paths(reasons)[:max_parts]
    ]


def _lane(part: Reason, chains: list[Chain], max_middles: int) -> Lane:
    chain = max(chains, key=lambda one: len(one.middles))
    box, gap = _widths(len(chain.middles))
    steps = tuple(step and _step(*step, gap) for step in chain.steps)
    labels = [step.label for step in steps if step]
    if part.own:
        labels[0].append("(by this fact itself)")
    if len(chain.middles) != 1:
        boxes = [fit(one.name, _SIZE, box - 0.2, 3) for one in chain.middles]
        if part.num_paths > 1:
            labels[0].append(f"(one of {part.num_paths:,} paths)")
        return Lane(part, steps, boxes)
    alike = [m for one in chains if one.steps == chain.steps for m in one.middles]
    shown = list(dict.fromkeys(alike))[:max_middles]
    lines = [line for one in shown for line in fit(one.name, _SIZE, box - 0.2, 2)]
    if more := part.num_paths - len(shown):
        lines.append(f"and {more:,} more")
    return Lane(part, steps, [lines])


def _widths(num_boxes: int) -> tuple[float, float]:
    """The width of each box, and of the gaps around them."""
    unit = _BETWEEN / (_BOX * num_boxes + _GAP * (num_boxes + 1))
    return _BOX * unit, _GAP * unit


def _step(relation: Named, to_right: bool, gap: float) -> Step:
    # The end of a Freebase name says the most.
    width = max(gap - 0.55, 0.3)
    return Step(fit(in_words(relation.name), _SIZE, width, 3, keep_end=True), to_right)


def height_of_lanes(lanes: Sequence[Lane]) -> float:
    """Returns the total height of lanes."""
    return max(1.5, sum(lane.height for lane in lanes)) + _BELOW


def draw_lanes(axes: Axes, reasons: Reasons, lanes: Sequence[Lane]) -> None:
    """Draws the lanes between head and tail."""
    height = height_of_lanes(lanes)
    axes.set_xlim(-0.02, WIDTH + 0.02)
    axes.set_ylim(0, height)
    axes.axis("off")
    for left, entity, role in (
        (0.0, reasons.head, "head"),
        (WIDTH - _END, reasons.tail, "tail"),
    ):
        _draw_box(axes, (left, _BELOW + 0.04), _END, height - _BELOW - 0.08, PALE)
        lines = fit(entity.name, 10, _END - 0.3, 5, weight="bold")
        centre = (left + _END / 2, (_BELOW + height) / 2)
        _write(axes, *centre, "\n".join(lines), fontsize=10, fontweight="bold")
        where = centre[0], height - 0.1
        _write(axes, *where, role, fontsize=8, va="top", color=GREY)
    if not lanes:
        y = (_BELOW + height) / 2
        axes.plot([_END + 0.1, WIDTH - _END - 0.1], [y, y], ":", color=GREY)
        words = "no part of the score rests on a path"
        _write(axes, WIDTH / 2, y + 0.07, words, va="bottom", fontsize=9, color=GREY)
    strongest = max((abs(one.reason.contribution) for one in lanes), default=1.0) or 1.0
    # A few lanes stand in the middle of the ends.
    top = height - (height - _BELOW - sum(lane.height for lane in lanes)) / 2
    for number, lane in enumerate(lanes, start=1):
        width = 1 + 2.5 * abs(lane.reason.contribution) / strongest
        _draw_lane(axes, lane, number, top, width)
        top -= lane.height
    others = [part.contribution for part in reasons_with_paths(reasons)[len(lanes) :]]
    if others:
        words = f"and {len(others):,} more, together {minus(signed(sum(others)))}"
        where = WIDTH / 2, _BELOW - 0.05
        _write(axes, *where, words, va="top", fontsize=9, color=GREY)


def _draw_lane(axes: Axes, lane: Lane, number: int, top: float, width: float) -> None:
    colour = ORANGE if lane.reason.contribution < 0 else BLUE
    style = {"color": colour, "linewidth": width}
    if not lane.boxes:
        y = top - _SPACE / 2 + 0.1
        for direct in filter(None, lane.steps):
            y -= _LINE * len(direct.label) + 0.16
            _draw_step(axes, direct, (_END + 0.06, WIDTH - _END - 0.06), y, style)
        _draw_number(axes, number, y, colour)
        return
    half = _LINE * max(map(len, lane.boxes)) / 2 + 0.06
    y = top - lane.height + _SPACE / 2 + half
    box, gap = _widths(len(lane.boxes))
    for i, step in enumerate(lane.steps):
        left = _END + i * (box + gap)
        if step is not None:
            _draw_step(axes, step, (left + 0.06, left + gap - 0.06), y, style)
        if i < len(lane.boxes):
            high = _LINE * len(lane.boxes[i]) + 0.12
            _draw_box(axes, (left + gap, y - high / 2), box, high, "#F2F2F2")
            words = "\n".join(lane.boxes[i])
            _write(axes, left + gap + box / 2, y, words)
    _draw_number(axes, number, y, colour)


def _draw_step(
    axes: Axes, step: Step, ends: tuple[float, float], y: float, style: dict[str, Any]
) -> None:
    start, end = ends if step.to_right else ends[::-1]
    width = style["linewidth"]
    arrow = f"head_length={0.35 + 0.05 * width},head_width={0.18 + 0.04 * width}"
    axes.annotate(
        "",
        (end, y),
        (start, y),
        arrowprops={
            "arrowstyle": f"-|>,{arrow}",
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 14,
            **style,
        },
    )
    _write(axes, sum(ends) / 2, y + 0.09, "\n".join(step.label), va="bottom")


def _draw_number(axes: Axes, number: int, y: float, colour: str) -> None:
    circle = {"boxstyle": "circle,pad=0.25", "facecolor": colour, "edgecolor": "white"}
    _write(axes, _END, y, str(number), fontsize=8, color="white", bbox=circle)


def _draw_box(
    axes: Axes, corner: tuple[float, float], width: float, height: float, colour: str
) -> None:
    box = FancyBboxPatch(
        corner,
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=colour,
        edgecolor=GREY,
        linewidth=0.8,
    )
    axes.add_patch(box)


def _write(axes: Axes, x: float, y: float, words: str, **style: Any) -> None:
    # Names are not mathematics, even with dollar signs.
    style = {"fontsize": _SIZE, "ha": "center", "va": "center", **style}
    axes.text(x, y, words, parse_math=False, linespacing=1.15, **style)
