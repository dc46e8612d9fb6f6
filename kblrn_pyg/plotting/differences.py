"""Histograms of numerical differences with their radial basis functions."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch_geometric.data import HeteroData

from kblrn_pyg.data import (
    DataError,
    NumericalFeatures,
    Vocabulary,
    differences,
    numerical_features,
)
from kblrn_pyg.data.names import last_segment
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

_MAX_COLUMNS = 3
# How many widths to each side of the centre are drawn.
_REACH = 5


def plot_differences(
    data: HeteroData,
    relations: Sequence[str],
    threshold: float = 0.9,
    num_bins: int | None = None,
) -> Figure:
    r"""Draws the differences of head and tail that the numerical experts see.

    There is one panel for every numerical feature of the relations: the
    normalised histogram of :math:`n_h - n_t` over the training triples, and
    over it the radial basis function
    :math:`\phi(d) = \exp(-(d - c)^2 / \sigma^2)` (Figure 3 of the paper).

    Args:
        data (HeteroData): The knowledge base.
        relations (sequence): The relations, by name.
        threshold (float, optional): The part of a relation's training triples
            that must have both numbers. (default: :obj:`0.9`)
        num_bins (int, optional): The number of bars. (default: :obj:`None`,
            as many as the number of triples can fill)
    """
    names = Vocabulary.of(data)
    features = numerical_features(data, threshold)
    panels = []
    for relation in relations:
        r = names.relations.resolve(relation)
        places = range(*features.of(r).indices(len(features)))
        if not places:
            _refuse_without_features(names, features, r)
        panels += [(r, i) for i in places]

    columns = 2 if len(panels) == 4 else min(len(panels), _MAX_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False
    )
    for axis, (r, i) in zip(axes.flat, panels):
        _draw_panel(axis, data, names, features, r, i, num_bins)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    figure.tight_layout()
    return figure


def _draw_panel(
    axis: Axes,
    data: HeteroData,
    names: Vocabulary,
    features: NumericalFeatures,
    relation: int,
    feature: int,
    num_bins: int | None,
) -> None:
    attribute = int(features.attribute[feature])
    centre, width = float(features.centre[feature]), float(features.width[feature])
    values = differences(data, relation, attribute).numpy()
    low, high = centre - _REACH * width, centre + _REACH * width
    counts, edges = np.histogram(values, _bin_edges(values, low, high, num_bins))
    # The paper's histograms are normalised; a height of 1 shares the RBF's scale.
    axis.bar(
        edges[:-1],
        counts / max(counts.max(), 1),
        np.diff(edges),
        align="edge",
        color=BLUE,
        alpha=0.55,
        label="training triples",
    )
    grid = np.linspace(low, high, 400)
    rbf = np.exp(-((grid - centre) ** 2) / width**2)
    axis.plot(grid, rbf, color=ORANGE, linewidth=2, label="RBF")
    axis.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    readable = names.attributes[attribute].replace("_", " ")
    axis.set_title(last_segment(names.relations[relation]), fontsize=11)
    axis.set_xlabel(
        f"{readable}, head − tail\n"
        f"{len(values):,} triples, centre {centre:.3g}, width {width:.3g}",
        fontsize=9,
    )
    axis.set_ylim(0, 1.12)
    axis.set_yticks([0, 0.5, 1])
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(fontsize=8, frameon=False, loc="upper right")


def _bin_edges(
    values: np.ndarray, low: float, high: float, num_bins: int | None
) -> np.ndarray:
    if num_bins is None:
        num_bins = int(np.clip(2 * np.sqrt(len(values)), 10, 40))
    if (values != np.round(values)).any():
        return np.linspace(low, high, num_bins + 1)
    # Whole numbers: each bar covers equally many of them, or gaps would appear.
    step = max(1, math.ceil((high - low) / num_bins))
    return np.arange(math.floor(low), high + 2 * step, step) - 0.5


def _refuse_without_features(
    names: Vocabulary, features: NumericalFeatures, relation: int
) -> None:
    having = [names.relations[r] for r in features.relations.tolist()]
    listed = ", ".join(having[:12]) + (" ..." if len(having) > 12 else "")
    raise DataError(
        f"relation {names.relations[relation]!r} has no numerical features; "
        f"these have: {listed or 'none'}"
    )
