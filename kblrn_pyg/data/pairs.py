"""Comparisons of the numbers of two entities: differences, ratios, distances."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EARTH_RADIUS = 6371.0  # in kilometres
# The kinds, with the number of columns that each of them makes of an entity.
KINDS = {"difference": 1, "log_ratio": 1, "signed_log": 1, "haversine": 3}


@dataclass(frozen=True)
class PairAttribute:
    r"""A value that compares the numbers of two entities.

    * :obj:`"difference"`: :obj:`a` of the head minus :obj:`b` of the tail.
    * :obj:`"log_ratio"`: the logarithm of their ratio; numbers that are not
      positive are unknown.
    * :obj:`"signed_log"`: the difference of
      :math:`\mathrm{sign}(x) \log(1 + |x| / s)`, for numbers with heavy tails on
      both sides.
    * :obj:`"haversine"`: the distance on the Earth in kilometres, of :obj:`a`
      and :obj:`b` as latitude and longitude of either entity.

    Args:
        name (str): Its name.
        kind (str): One of the above.
        a (int): A column of numbers.
        b (int): A column of numbers, possibly the same.
        scale (float, optional): The unit :math:`s` of :obj:`"signed_log"`.
            (default: :obj:`1.0`)
    """

    name: str
    kind: str
    a: int
    b: int
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(
                f"'kind' must be one of {', '.join(KINDS)} (got {self.kind!r})"
            )
        if not 0 < self.scale < np.inf:
            raise ValueError(f"'scale' must be positive (got {self.scale})")

    def side(self, x: Floats, is_tail: bool) -> Floats:
        r"""Returns the values to compare, as rows of numbers; NaN is unknown.

        Args:
            x (numpy.ndarray): The numbers of entities, a column for each attribute.
            is_tail (bool): Whether the entities are tails.
        """
        if self.kind == "haversine":
            return _on_sphere(x[:, self.a], x[:, self.b])
        values = x[:, self.b if is_tail else self.a]
        if self.kind == "log_ratio":
            positive = np.where(values > 0, values, np.nan)
            return np.log(positive)[None]
        if self.kind == "signed_log":
            return (np.sign(values) * np.log1p(np.abs(values) / self.scale))[None]
        return values[None].astype(np.float64)


def compare_rows(head: Floats, tail: Floats) -> Floats:
    r"""Compares rows of numbers of heads with those of tails.

    Args:
        head (numpy.ndarray): The output of :meth:`PairAttribute.side` for heads.
        tail (numpy.ndarray): Its output for tails.
    """
    apart = head - tail
    return apart[0] if len(apart) == 1 else np.sqrt((apart**2).sum(axis=0))


def in_own_unit(kind: str, compared: Floats) -> Floats:
    r"""Converts the values of layers to ratios, and to kilometres on the Earth.

    Args:
        kind (str): The kind of a :class:`PairAttribute`.
        compared (numpy.ndarray): Logarithms of ratios, differences, or lengths
            of straight lines through the Earth.
    """
    if kind == "log_ratio":
        return np.exp(compared)
    if kind == "haversine":
        half = np.minimum(compared / (2 * EARTH_RADIUS), 1.0)
        return 2 * EARTH_RADIUS * np.arcsin(half)
    return compared


def from_own_unit(kind: str, values: Floats) -> Floats:
    r"""Reverses :meth:`in_own_unit`.

    Args:
        kind (str): The kind of a :class:`PairAttribute`.
        values (numpy.ndarray): Ratios, differences, or kilometres on the Earth.
    """
    if kind == "log_ratio":
        return np.log(values)
    if kind == "haversine":
        return 2 * EARTH_RADIUS * np.sin(values / (2 * EARTH_RADIUS))
    return values


def _on_sphere(latitude: Floats, longitude: Floats) -> Floats:
    """Returns points in space, whose distances grow with those on the Earth."""
    phi, theta = np.radians(latitude), np.radians(longitude)
    axes = np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)
    points = EARTH_RADIUS * np.stack(axes)
    # The sine alone would be known without the longitude.
    return np.where(np.isnan(points).any(axis=0), np.nan, points)


def plain_attributes(x: Floats, names: Sequence[str]) -> list[PairAttribute]:
    r"""Returns the comparisons of each attribute with itself: by difference, and by
    logarithms, too, if numbers have heavy tails and logarithms do not.

    Args:
        x (numpy.ndarray): The numbers of entities.
        names (sequence): The name of each attribute.
    """
    found = []
    for i, name in enumerate(names):
        found.append(PairAttribute(name, "difference", i, i))
        found += _by_logarithms(i, name, x[:, i])
    return found


def _by_logarithms(i: int, name: str, column: Floats) -> list[PairAttribute]:
    values = column[~np.isnan(column)]
    nonzero = np.abs(values[values != 0])
    if not len(nonzero):
        return []
    scale = float(np.quantile(nonzero, 0.05))
    is_positive = bool((values > 0).all())
    if is_positive:
        logs = np.log(values)
    else:
        logs = np.sign(values) * np.log1p(np.abs(values) / scale)
    if _tails(values) < max(_HEAVY, 2 * _tails(logs)):
        return []
    if is_positive:
        return [PairAttribute(name, "log_ratio", i, i)]
    return [PairAttribute(name, "signed_log", i, i, scale)]


# From this on, tails are heavy. Those of a normal distribution are 3.4.
_HEAVY = 12.0


def _tails(values: Floats) -> float:
    """Returns the range of 98 % of numbers, in units of that of the middle half."""
    low, quarter, three, high = np.quantile(values, [0.01, 0.25, 0.75, 0.99])
    return float(high - low) / float(three - quarter) if three > quarter else 0.0
