"""Places on rings around a centre, and arrows between them that avoid others."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

Points = dict[int, np.ndarray]

_GRID = 720
_BENDS = (0.0, 0.15, -0.15, 0.3, -0.3, 0.45, -0.45)
_APART = 0.2
# In inches: how far labels may be from their arrow, arrows from other boxes.
_ASIDE = (0.0, 0.15, -0.15, 0.3, -0.3, 0.45, -0.45)
_CLEAR = 0.15


class Box(NamedTuple):
    r"""A rectangle.

    Args:
        left (float): Its smallest x.
        bottom (float): Its smallest y.
        right (float): Its largest x.
        top (float): Its largest y.
    """

    left: float
    bottom: float
    right: float
    top: float

    @property
    def centre(self) -> tuple[float, float]:
        """The point in its middle."""
        return (self.left + self.right) / 2, (self.bottom + self.top) / 2

    def around(self, point: np.ndarray) -> "Box":
        """Returns a box of this size around a point."""
        x, y = (float(p - c) for p, c in zip(point, self.centre))
        return Box(self.left + x, self.bottom + y, self.right + x, self.top + y)

    def grown(self, margin: float) -> "Box":
        """Returns a box that is larger on all sides."""
        low, high = -margin, margin
        return Box(*(e + m for e, m in zip(self, (low, low, high, high))))

    def num_inside(self, points: np.ndarray) -> int:
        """Returns how many points lie inside."""
        x, y = points.T
        is_between = (self.left <= x) & (x <= self.right)
        return int((is_between & (self.bottom <= y) & (y <= self.top)).sum())

    def shared(self, other: "Box") -> float:
        """Returns the area of the overlap with another box."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)


def ring_places(
    rings: Sequence[Sequence[int]],
    neighbours: Mapping[int, set[int]],
    width: float,
    height: float,
) -> Points:
    r"""Places entities on ellipses, linked ones close together.

    Args:
        rings (sequence): The entities by their distance.
        neighbours (dict): The entities that each is linked with.
        width (float): Half of the width of the outermost ellipse.
        height (float): Half of its height.
    """
    places: Points = {rings[0][0]: np.zeros(2)}
    for i, ring in enumerate(rings[1:], start=1):
        fraction = i / (len(rings) - 1)
        spots = _even_spots(len(ring), fraction * width, fraction * height)
        order = _arrange(list(ring), spots, places, neighbours)
        places |= dict(zip(order, spots))
    return places


def curve_points(head: np.ndarray, tail: np.ndarray, bend: float) -> np.ndarray:
    r"""Returns points of an arrow, bent as matplotlib's :obj:`arc3` bends it.

    Args:
        head (numpy.ndarray): Where it begins.
        tail (numpy.ndarray): Where it ends.
        bend (float): The distance of its control point from the straight line,
            in lengths of the line.
    """
    across = tail - head
    control = (head + tail) / 2 + bend * np.array([across[1], -across[0]])
    t = np.linspace(0, 1, 101)[:, None]
    return (1 - t) ** 2 * head + 2 * t * (1 - t) * control + t**2 * tail


def bend_of(
    head: np.ndarray,
    tail: np.ndarray,
    others: Sequence[Box],
    i: int = 0,
    number: int = 1,
    turned: bool = False,
) -> float:
    r"""Returns how much to bend an arrow, so that it crosses no other box.

    Args:
        head (numpy.ndarray): Where it begins.
        tail (numpy.ndarray): Where it ends.
        others (sequence): The boxes to keep clear of.
        i (int, optional): Which of the arrows of its pair it is.
            (default: :obj:`0`)
        number (int, optional): How many arrows the pair has.
            (default: :obj:`1`)
        turned (bool, optional): Whether it is opposite to the first of them.
            (default: :obj:`False`)
    """
    if number > 1:
        side = _APART * (2 * i / (number - 1) - 1)
        return -side if turned else side

    def crossed(bend: float) -> int:
        points = curve_points(head, tail, bend)
        return sum(box.grown(_CLEAR).num_inside(points) for box in others)

    return min(_BENDS, key=crossed)


def free_spot(curve: np.ndarray, label: Box, taken: Sequence[Box]) -> Box:
    r"""Returns where along a curve a label overlaps others least.

    It is placed on the curve, as close to its middle as possible, or beside it.

    Args:
        curve (numpy.ndarray): The points of the curve.
        label (Box): The label, anywhere.
        taken (sequence): The boxes to avoid.
    """
    along = curve[-1] - curve[0]
    aside = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    middle = len(curve) // 2
    inner = sorted(range(10, len(curve) - 10), key=lambda i: abs(i - middle))
    spots = [label.around(curve[i] + d * aside) for d in _ASIDE for i in inner]

    def hidden(spot: Box) -> float:
        return sum(spot.shared(box) for box in taken)

    free = (spot for spot in spots if hidden(spot) == 0)
    return next(free, None) or min(spots, key=hidden)


def _even_spots(number: int, width: float, height: float) -> list[np.ndarray]:
    """Points at equal distances along an ellipse, not at equal angles."""
    angle = np.linspace(0, 2 * math.pi, _GRID + 1)
    curve = np.column_stack([width * np.cos(angle), height * np.sin(angle)])
    length = np.append(0, np.linalg.norm(np.diff(curve, axis=0), axis=1).cumsum())
    wanted = np.arange(number) / number * length[-1]
    return [curve[i] for i in np.searchsorted(length, wanted)]


def _arrange(
    ring: list[int],
    spots: list[np.ndarray],
    places: Points,
    neighbours: Mapping[int, set[int]],
) -> list[int]:
    """Rotates the ring, then swaps entities while that makes their links shorter."""

    def length(order: list[int]) -> float:
        at = places | dict(zip(order, spots))
        return sum(
            float(np.linalg.norm(at[one] - at[other]))
            for one in order
            for other in neighbours[one]
            if other in at
        )

    def angle(one: int) -> float:
        inwards = [places[other] for other in neighbours[one] if other in places]
        x, y = np.mean(inwards, axis=0) if inwards else (1.0, 0.0)
        return math.atan2(y, x)

    ring.sort(key=angle)
    ring = min((ring[i:] + ring[:i] for i in range(len(ring))), key=length)
    best, improved = length(ring), True
    while improved:
        improved = False
        for i in range(len(ring)):
            for j in range(i):
                ring[i], ring[j] = ring[j], ring[i]
                if (now := length(ring)) < best - 1e-9:
                    best, improved = now, True
                else:
                    ring[i], ring[j] = ring[j], ring[i]
    return ring
