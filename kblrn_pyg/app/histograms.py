"""The numbers of a triple in the histograms of its relation's training triples."""

import math
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import Module
from torch_geometric.data import HeteroData

from kblrn_pyg.data import differences
from kblrn_pyg.data.layers import compared_triples
from kblrn_pyg.data.pairs import from_own_unit, in_own_unit
from kblrn_pyg.nn import LayerExpert, NumericalExpert

Floats = NDArray[np.float64]

_NUM_BARS = 31
_NUM_POINTS = 121
# The fraction of triples at either end that may lie outside.
_OUTSIDE = 0.01
_WORDS = {
    "difference": "head − tail",
    "signed_log": "head − tail",
    "log_ratio": "head / tail",
    "haversine": "kilometres apart",
}


class Histogram(NamedTuple):
    """The distribution of a number over training triples, with the model's
    function."""

    attribute: str
    compared: str  # how the numbers of head and tail are compared
    is_log: bool  # whether the horizontal axis is logarithmic
    edges: list[float]
    counts: list[int]
    num_triples: int
    num_outside: int
    curve_x: list[float]
    curve_y: list[float]  # what the expert adds to the score there
    value: float | None  # that of the asked triple
    contribution: float


@singledispatch
def histograms(
    expert: Module, data: HeteroData, triple: tuple[int, int, int]
) -> list[Histogram]:
    r"""Returns the histograms for an expert's score of a triple, by default none.

    Args:
        expert (Expert): The expert.
        data (HeteroData): The knowledge base.
        triple (tuple): Head, relation and tail.
    """
    return []


@histograms.register
def _radial(
    expert: NumericalExpert, data: HeteroData, triple: tuple[int, int, int]
) -> list[Histogram]:
    relation, found = triple[1], []
    begin, end = expert.ptr[relation : relation + 2].tolist()
    for i, part in zip(range(begin, end), expert.parts(*triple)):
        values = differences(data, relation, int(expert.attribute[i])).cpu().numpy()
        if len(values) == 0:
            continue
        weight, details = float(expert.weight[i]), part.details
        value, centre, width = (details[key] for key in ("difference", *_RADIAL))
        low, high = _limits(values)
        x = np.linspace(low, high, _NUM_POINTS)
        if centre is not None:
            y = weight * np.exp(-(((x - centre) / width) ** 2))
        else:
            y = weight * np.sign(x)
        what = details["attribute"], "difference", value, part.contribution
        found.append(_histogram(values, (x, y), *what))
    return found


_RADIAL = ("centre", "width")


@histograms.register
def _layered(
    expert: LayerExpert, data: HeteroData, triple: tuple[int, int, int]
) -> list[Histogram]:
    relation, features, found = triple[1], expert.features, []
    layers = range(*features.of(relation).indices(len(features)))
    with torch.no_grad():
        table = expert.table().double().cpu().numpy()
    for i, part in zip(layers, expert.parts(*triple)):
        attribute = features.attributes[int(features.pair[i])]
        kind = attribute.kind
        values = in_own_unit(kind, compared_triples(data, relation, attribute))
        if len(values) == 0:
            continue
        place = slice(int(features.knot_ptr[i]), int(features.knot_ptr[i + 1]))
        low, high = _limits(values)
        if kind == "log_ratio":
            low = max(low, float(values.min()))
            x = np.geomspace(low, max(high, 1.001 * low), _NUM_POINTS)
        else:
            x = np.linspace(low, high, _NUM_POINTS)
        y = np.interp(from_own_unit(kind, x), features.knot[place], table[place])
        what = attribute.name, kind, part.details["compared"], part.contribution
        found.append(_histogram(values, (x, y), *what))
    return found


def _limits(values: Floats) -> tuple[float, float]:
    """Returns what to draw: nearly all triples, and some space around them."""
    low, high = np.quantile(values, [_OUTSIDE, 1 - _OUTSIDE]).tolist()
    space = 0.15 * (high - low) or 0.5 * max(abs(low), 1.0)
    return low - space, high + space


def _histogram(
    values: Floats,
    curve: tuple[Floats, Floats],
    attribute: str,
    kind: str,
    value: Any,
    contribution: float,
) -> Histogram:
    x, y = curve
    is_log = kind == "log_ratio"
    low, high = float(x[0]), float(x[-1])
    edges = _edges(values, low, high, is_log)
    counts = np.histogram(values, edges)[0]
    num_outside = len(values) - int(counts.sum())
    return Histogram(
        attribute,
        _WORDS[kind],
        is_log,
        edges.tolist(),
        counts.tolist(),
        len(values),
        num_outside,
        x.tolist(),
        y.tolist(),
        value,
        contribution,
    )


def _edges(values: Floats, low: float, high: float, is_log: bool) -> Floats:
    if is_log:
        return np.geomspace(low, high, _NUM_BARS + 1)
    if (values != np.round(values)).any():
        return np.linspace(low, high, _NUM_BARS + 1)
    # Each bar covers the same number of integers, or there would be gaps.
    step = max(1, math.ceil((high - low) / _NUM_BARS))
    first = math.floor(low) - 0.5
    return np.arange(first, high + step, step, dtype=np.float64)
