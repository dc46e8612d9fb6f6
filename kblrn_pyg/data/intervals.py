"""Intervals of numbers, from coarse to fine."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.ids import check_id
from kblrn_pyg.data.words import minus, value_text
from kblrn_pyg.settings import check_bins

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

# The least mean number of entities in a bin.
_LEAST_IN_BIN = 5


@dataclass(frozen=True, eq=False)
class Intervals:
    r"""Intervals :math:`\textrm{low} \leq \textrm{value} < \textrm{high}` of each
    attribute; those of attribute :obj:`a` are :obj:`ptr[a]:ptr[a + 1]`.

    Args:
        attributes (list): The names of all attributes.
        ptr (numpy.ndarray): Where the intervals of each attribute begin.
        low (numpy.ndarray): The lower bound of each, :math:`-\infty` for none.
        high (numpy.ndarray): The exclusive upper bound of each, :math:`\infty` for
            none.
    """

    attributes: list[str]
    ptr: Ids
    low: Floats
    high: Floats

    def __post_init__(self) -> None:
        shape = len(self.attributes) + 1, len(self.low), len(self.low)
        if (len(self.ptr), len(self.low), len(self.high)) != shape:
            raise ValueError("'ptr', 'low' and 'high' must fit to 'attributes'")
        ends = [*self.ptr[:1].tolist(), *self.ptr[-1:].tolist()]
        if ends != [0, len(self.low)] or (np.diff(self.ptr) < 0).any():
            raise ValueError(f"'ptr' must ascend from 0 to {len(self.low)}")
        if not (self.low < self.high).all():  # which NaN is not, either
            raise ValueError("'low' must be less than 'high'")

    def __len__(self) -> int:
        return len(self.low)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Intervals):
            return NotImplemented
        return self.attributes == other.attributes and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("ptr", "low", "high")
        )

    __hash__ = None  # type: ignore[assignment]

    def around(self, attribute: int, interval: int) -> tuple[str, str]:
        r"""Returns the texts before and after a value that state its interval.

        Args:
            attribute (int): The attribute.
            interval (int): The position of the interval among those of the
                attribute, -1 for any value.

        Example:
            >>> ends = np.array([-np.inf, 0.5, 0.5]), np.array([0.5, np.inf, 0.75])
            >>> intervals = Intervals(["value"], np.array([0, 3]), *ends)
            >>> for i in range(-1, 3):
            ...     print("value".join(intervals.around(0, i)))
            value is known
            value < 0.5
            value ≥ 0.5
            0.5 ≤ value < 0.75
        """
        if interval == -1:
            return "", " is known"
        attribute = check_id(attribute, "attribute", len(self.attributes))
        number = int(self.ptr[attribute + 1] - self.ptr[attribute])
        interval = check_id(interval, "interval", number)
        name, place = self.attributes[attribute], self.ptr[attribute] + interval
        low, high = (_exact(name, float(one[place])) for one in (self.low, self.high))
        if math.isinf(self.high[place]):
            return "", f" ≥ {low}" if math.isfinite(self.low[place]) else " is known"
        return f"{low} ≤ " if math.isfinite(self.low[place]) else "", f" < {high}"

    def holders(self, x: Floats) -> tuple[Ids, Ids]:
        r"""Finds the entities with each attribute, and those with a value in each
        interval.

        Args:
            x (numpy.ndarray): The values, NaN where unknown.

        Returns:
            The starts of the entities of each attribute, followed by those of each
            interval; and all these entities, in order.
        """
        if x.ndim != 2 or x.shape[1] != len(self.attributes):
            shape = list(x.shape)
            raise ValueError(
                f"'x' must have {len(self.attributes)} attributes (got {shape})"
            )
        known, within = [], []
        for a, column in enumerate(x.T):
            entities = np.flatnonzero(~np.isnan(column))
            known.append(entities)
            order = np.argsort(column[entities], kind="stable")
            values = column[entities][order]
            own = slice(self.ptr[a], self.ptr[a + 1])
            first, last = (
                np.searchsorted(values, ends[own]) for ends in (self.low, self.high)
            )
            within += [np.sort(entities[order[i:j]]) for i, j in zip(first, last)]
        sizes = [len(one) for one in (*known, *within)]
        ptr = np.append(0, np.cumsum(sizes, dtype=np.int64))
        return ptr, np.concatenate([np.empty(0, np.int64), *known, *within])

    def to_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values."""
        columns = {
            name: torch.from_numpy(getattr(self, name))
            for name in ("ptr", "low", "high")
        }
        return {"attributes": self.attributes, **columns}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Intervals":
        """Reverses :meth:`to_dict`, and refuses invalid content."""
        if not isinstance(content, dict):
            raise DataError("the intervals of numbers must be a dictionary")
        types = {"ptr": torch.int64, "low": torch.double, "high": torch.double}
        if missing := {"attributes", *types} - set(content):
            raise DataError(f"the intervals of numbers lack {sorted(missing)}")
        for name, dtype in types.items():
            column = content[name]
            is_right = isinstance(column, Tensor) and column.dtype == dtype
            if not is_right or column.dim() != 1:
                raise DataError(f"'{name}' must be one row of type {dtype}")
        names = content["attributes"]
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise DataError("'attributes' must be a list of names")
        columns = (content[name].numpy() for name in types)
        return cls(names, *columns)


def quantile_intervals(data: HeteroData, num_bins: int) -> Intervals:
    r"""Splits the known values of each attribute at quantiles, from coarse to fine.

    Starting with two bins of about the same number of entities, all bins are
    repeatedly split until there are :obj:`num_bins`, or until bins would have fewer
    than five entities on average. Every bin is an interval, and so is each side of
    every cut. Equal values are never separated. An attribute that cannot be split
    has no intervals.

    Args:
        data (HeteroData): The knowledge base.
        num_bins (int): The maximum number of bins of an attribute: a power of two.
    """
    found = []
    for levels in _cuts(data, num_bins):
        sides = [
            side
            for cuts in levels
            for cut in cuts
            for side in ((-math.inf, cut), (cut, math.inf))
        ]
        inner = [pair for cuts in levels for pair in zip(cuts, cuts[1:])]
        found.append(list(dict.fromkeys([*sides, *inner])))
    return _build(data, found)


def nested_intervals(data: HeteroData, num_bins: int) -> Intervals:
    r"""Returns the bins of each attribute, without the sides of cuts; see
    :meth:`quantile_intervals`.

    Args:
        data (HeteroData): The knowledge base.
        num_bins (int): The maximum number of bins of an attribute: a power of two.
    """
    found = []
    for levels in _cuts(data, num_bins):
        ends = [[-math.inf, *cuts, math.inf] for cuts in levels]
        bins = [pair for cuts in ends for pair in zip(cuts, cuts[1:])]
        found.append(list(dict.fromkeys(bins)))
    return _build(data, found)


def _build(data: HeteroData, found: list[list[tuple[float, float]]]) -> Intervals:
    """Creates intervals from pairs of ends, for each attribute."""
    low, high = np.array([pair for pairs in found for pair in pairs]).reshape(-1, 2).T
    ptr = np.append(0, np.cumsum([len(pairs) for pairs in found], dtype=np.int64))
    return Intervals(list(data.attribute_names), ptr, low.copy(), high.copy())


def _cuts(data: HeteroData, num_bins: int) -> list[list[list[float]]]:
    """Returns the cuts of the values of each attribute, from coarse to fine."""
    check_bins("num_bins", num_bins)
    x = data["entity"].x.detach().double().numpy()
    if np.isinf(x).any():
        raise DataError("data['entity'].x must be finite, or NaN where unknown")
    return [_nested_cuts(column[~np.isnan(column)], num_bins) for column in x.T]


def _nested_cuts(values: Floats, num_bins: int) -> list[list[float]]:
    """Returns the cuts of values for two bins, four bins, and so on."""
    distinct, count = np.unique(values, return_counts=True)
    below = np.cumsum(count)[:-1]  # of each place between two values
    levels: list[list[float]] = []
    number = 2
    while number <= num_bins and number * _LEAST_IN_BIN <= len(values) and len(below):
        wanted = np.arange(1, number) / number * len(values)
        place = np.unique(_nearest(below, wanted))
        levels.append([_cut(distinct[i], distinct[i + 1]) for i in place.tolist()])
        number *= 2
    return levels


def _nearest(places: Ids, wanted: Floats) -> Ids:
    """Returns which of some ascending numbers is nearest to each wanted one."""
    right = np.clip(np.searchsorted(places, wanted), 1, max(len(places) - 1, 1))
    right = np.minimum(right, len(places) - 1)
    left = np.maximum(right - 1, 0)
    is_left = wanted - places[left] <= places[right] - wanted
    return np.where(is_left, left, right)


def _cut(low: float, high: float) -> float:
    """Returns the number with the fewest digits above one value, and at most another.

    Example:
        >>> _cut(1947, 1953), _cut(0.4983, 0.5021), _cut(-3.0, 8.0)
        (1950.0, 0.5, 0.0)
    """
    if low < 0 <= high:
        return 0.0
    first = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for digits in range(-first, 17 - first):
        step = 10.0**-digits
        rounded = round(math.floor(high / step) * step, digits)
        if low < rounded <= high:
            return float(rounded)
    return float(high)


def _exact(attribute: str, value: float) -> str:
    """Formats a value for readers, with more digits if that is necessary to be
    exact."""
    if not math.isfinite(value):
        return ""
    text = value_text(attribute, value)
    if float(text.replace(",", "").replace("−", "-")) == value:
        return text
    texts = (f"{value:.{digits}g}" for digits in (15, 16, 17))
    return minus(next(text for text in texts if float(text) == value))
