"""Positions on rings around a centre, and arrows between them."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.transforms import Bbox

Points = dict[int, np.ndarray]

_GRID = 720
_BENDS = (0.0, 0.15, -0.15, 0.3, -0.3, 0.45, -0.45)
_APART = 0.2
# In inches: how far labels may be from their arrow, arrows from other boxes.
_ASIDE = (0.0, 0.15, -0.15, 0.3, -0.3, 0.45, -0.45)
_CLEAR = 0.15


def ring_places(
    rings: Sequence[Sequence[int]],
    neighbours: Mapping[int, set[int]],
    width: float,
    height: float,
) -> Points:
    """Places entities on ellipses by their distance, with linked ones close
    together.

    The outermost ellipse is twice as wide and high as :obj:`width` and
    :obj:`height`.
    """
    places: Points = {rings[0][0]: np.zeros(2)}
    for i, ring in enumerate(rings[1:], start=1):
        fraction = i / (len(rings) - 1)
        spots = _even_spots(len(ring), fraction * width, fraction * height)
        order = _arrange(list(ring), spots, places, neighbours)
        places |= dict(zip(order, spots))
    return places


def curve_points(head: np.ndarray, tail: np.ndarray, bend: float) -> np.ndarray:
    """Returns points of an arrow, bent as matplotlib's :obj:`arc3` bends it."""
    across = tail - head
    control = (head + tail) / 2 + bend * np.array([across[1], -across[0]])
    t = np.linspace(0, 1, 101)[:, None]
    return (1 - t) ** 2 * head + 2 * t * (1 - t) * control + t**2 * tail


def bend_of(
    head: np.ndarray,
    tail: np.ndarray,
    others: Sequence[Bbox],
    i: int,
    number: int,
    turned: bool,
) -> float:
    """Returns the bend of an arrow that avoids all other boxes.

    It is the :obj:`i`-th of the :obj:`number` arrows of its pair of entities, and
    :obj:`turned` if it is opposite to the first of them.
    """
    if number > 1:
        side = _APART * (2 * i / (number - 1) - 1)
        return -side if turned else side

    def crossed(bend: float) -> int:
        points = curve_points(head, tail, bend)
        return sum(box.padded(_CLEAR).count_contains(points) for box in others)

    return min(_BENDS, key=crossed)


def free_spot(curve: np.ndarray, label: Bbox, taken: Sequence[Bbox]) -> Bbox:
    """Returns the position along a curve at which a label overlaps others least.

    It is placed on the curve, as close to its middle as possible, or beside it.
    """
    along = curve[-1] - curve[0]
    aside = np.array([-along[1], along[0]]) / np.linalg.norm(along)
    middle = len(curve) // 2
    inner = sorted(range(10, len(curve) - 10), key=lambda i: abs(i - middle))
    spots = np.concatenate([curve[inner] + d * aside for d in _ASIDE])[:, None]
    low, high = np.array([box.get_points() for box in taken]).transpose(1, 0, 2)
    half = np.divide(label.size, 2)
    shared = np.minimum(spots + half, high) - np.maximum(spots - half, low)
    hidden = shared.clip(min=0).prod(axis=2).sum(axis=1)
    best = spots[hidden.argmin(), 0]
    return Bbox([best - half, best + half])


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
