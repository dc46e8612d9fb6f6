"""Histograms of number comparisons, with the layers that a model learned."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError, PairAttribute, Vocabulary
from kblrn_pyg.data.layers import compared_triples
from kblrn_pyg.data.pairs import from_own_unit, in_own_unit
from kblrn_pyg.data.words import in_words, number_text, short_names
from kblrn_pyg.nn import LayerExpert
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.panels import new_panels
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

_WIDTH, _HEIGHT = 4.6, 4.0  # of a panel, in inches
# The fraction of triples at either end that may lie outside of a picture, unless
# they are closer than so many times the range of the middle half.
_OUTSIDE, _REACH = 0.01, 4
# Beyond this, ticks are written as 20M.
_LARGE = 1e4
# The least distance of ticks is the axis divided by this, if it is logarithmic.
_MAX_TICKS = 6
_WORDS = {
    "difference": "head − tail",
    "signed_log": "head − tail, in signed logarithms",
    "log_ratio": "head / tail",
    "haversine": "kilometres apart",
}


class LayerPanel(NamedTuple):
    """A layer of a relation, in the unit of its attribute."""

    relation: int
    attribute: PairAttribute
    values: np.ndarray  # of the training triples
    knots: np.ndarray
    learned: np.ndarray  # the value of the layer at each knot
    no_head: float  # its value where only the head's number is unknown
    no_tail: float

    def layer_at(self, x: np.ndarray) -> np.ndarray:
        """Returns the values of the layer."""
        kind = self.attribute.kind
        places = [from_own_unit(kind, one) for one in (x, self.knots)]
        return np.interp(places[0], places[1], self.learned)


@with_fonts
def plot_layers(
    data: HeteroData,
    expert: LayerExpert,
    relations: Sequence[str],
    attribute: str | None = None,
    num_bins: int | None = None,
    log: bool = False,
) -> Figure:
    r"""Draws the number comparisons of training triples, and the learned layers.

    There is one panel for every layer of the relations. The few triples that lie
    far outside are counted instead of drawn.

    Args:
        data (HeteroData): The knowledge base.
        expert (LayerExpert): The numerical expert of a model.
        relations (sequence): The relations, by name.
        attribute (str, optional): The attribute to draw.
            (default: :obj:`None`, all)
        num_bins (int, optional): The number of bars. (default: :obj:`None`,
            chosen by the number of triples)
        log (bool, optional): Whether the axis of differences and distances is
            logarithmic. (default: :obj:`False`)
    """
    panels = layer_panels(data, expert, relations, attribute)
    figure, axes = new_panels(len(panels), _WIDTH, _HEIGHT)
    titles = short_names(Vocabulary.of(data).relations.identifiers)
    for axis, panel in zip(axes, panels):
        low, high = _limits(panel.values, log)
        num_outside = int(((panel.values < low) | (panel.values > high)).sum())
        _draw_panel(axis, panel, (low, high), num_bins, log)
        title = "\n".join(fit(in_words(titles[panel.relation]), 11, _WIDTH - 0.8, 2))
        axis.set_title(title, fontsize=11, parse_math=False)
        caption = _caption(panel, num_outside)
        axis.set_xlabel(caption, fontsize=9, parse_math=False)
    figure.tight_layout()
    return figure


@with_fonts
def layer_panels(
    data: HeteroData,
    expert: LayerExpert,
    relations: Sequence[str],
    attribute: str | None = None,
) -> list[LayerPanel]:
    r"""Returns the layers of relations, with their learned values.

    Args:
        data (HeteroData): The knowledge base.
        expert (LayerExpert): The numerical expert of a model.
        relations (sequence): The relations, by name.
        attribute (str, optional): The attribute to draw.
            (default: :obj:`None`, all)
    """
    names, features = Vocabulary.of(data), expert.features
    with torch.no_grad():
        table = expert.table().cpu().numpy()
    panels = []
    for name in relations:
        r = names.relations.resolve(name)
        layers = range(*features.of(r).indices(len(features)))
        having = {i: features.attributes[int(features.pair[i])].name for i in layers}
        chosen = [i for i in layers if attribute in (None, having[i])]
        if not chosen:
            wanted = "" if attribute is None else f" for {attribute!r}"
            raise DataError(
                f"relation {names.relations[r]!r} has no layer{wanted}; it has: "
                f"{', '.join(dict.fromkeys(having.values())) or 'none'}"
            )
        panels += [_panel(data, expert, r, i, table) for i in chosen]
    return panels


def _panel(
    data: HeteroData, expert: LayerExpert, relation: int, i: int, table: np.ndarray
) -> LayerPanel:
    features = expert.features
    attribute = features.attributes[int(features.pair[i])]
    part = slice(int(features.knot_ptr[i]), int(features.knot_ptr[i + 1]))
    return LayerPanel(
        relation,
        attribute,
        in_own_unit(attribute.kind, compared_triples(data, relation, attribute)),
        in_own_unit(attribute.kind, features.knot[part].numpy()),
        table[part],
        *expert.missing[i].tolist(),
    )


def _limits(values: np.ndarray, log: bool) -> tuple[float, float]:
    """Returns what to draw: nearly all triples, and some space around them."""
    if log:
        return float(values.min()), float(values.max())
    low, quarter, three, high = np.quantile(
        values, [_OUTSIDE, 0.25, 0.75, 1 - _OUTSIDE]
    )
    space = 0.3 * (high - low) or 0.5 * max(abs(low), 1)
    low, high = low - space, high + space
    if three > quarter:
        reach = _REACH * (three - quarter)
        low, high = max(low, quarter - reach), min(high, three + reach)
    return float(low), float(high)


def _draw_panel(
    axis: Axes,
    panel: LayerPanel,
    limits: tuple[float, float],
    num_bins: int | None,
    log: bool,
) -> None:
    low, high = limits
    is_ratio = panel.attribute.kind == "log_ratio"
    if is_ratio or panel.attribute.kind == "haversine":  # which are not negative
        low = max(low, float(panel.values.min()))
    if num_bins is None:
        num_bins = int(np.clip(2 * np.sqrt(len(panel.values)), 10, 40)) | 1
    grid = _grid(panel, low, high, is_ratio or log)
    edges = grid[:: max(len(grid) // num_bins, 1)]
    counts, edges = np.histogram(panel.values, edges)
    axis.bar(
        edges[:-1],
        counts / max(counts.max(), 1),
        np.diff(edges),
        align="edge",
        color=BLUE,
        alpha=0.55,
        label="training triples",
    )
    other = axis.twinx()
    other.plot(
        grid,
        panel.layer_at(grid),
        color=ORANGE,
        linewidth=2,
        label="learned layer",
    )
    inside = (panel.knots >= grid[0]) & (panel.knots <= grid[-1])
    other.plot(panel.knots[inside], panel.learned[inside], ".", color=ORANGE, ms=4)
    _scale(axis, grid, is_ratio, log)
    _decorate(axis, other)


def _grid(panel: LayerPanel, low: float, high: float, is_log: bool) -> np.ndarray:
    """Returns positions along the axis that look evenly spaced."""
    if not is_log:
        return np.linspace(low, high, 601)
    if panel.attribute.kind == "log_ratio":
        low = max(low, float(np.quantile(panel.values, _OUTSIDE)))
        return np.geomspace(low, max(high, 1.001 * low), 601)
    unit = _unit(panel.values)
    return _evenly(unit, low, high, 601)


def _evenly(unit: float, low: float, high: float, number: int) -> np.ndarray:
    ends = np.arcsinh(low / unit), np.arcsinh(high / unit)
    return unit * np.sinh(np.linspace(ends[0], ends[1], number))


def _unit(values: np.ndarray) -> float:
    """Returns the size up to which a logarithmic axis is linear."""
    sizes = np.abs(values[values != 0])
    return float(np.quantile(sizes, 0.25)) if len(sizes) else 1.0


def _scale(axis: Axes, grid: np.ndarray, is_ratio: bool, log: bool) -> None:
    axis.set_xlim(grid[0], grid[-1])
    if is_ratio:
        axis.set_xscale("log")
        return
    if log:
        set_log_axis(axis, _unit(grid), grid[0], grid[-1])
    else:
        axis.xaxis.set_major_locator(MaxNLocator(5))
        if grid[-1] - grid[0] > _LARGE:
            axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    if grid[0] < 0 < grid[-1]:
        axis.axvline(0, color=GREY, linewidth=0.8, linestyle=":")


def set_log_axis(axis: Axes, unit: float, low: float, high: float) -> None:
    r"""Makes a horizontal axis logarithmic on both sides of zero.

    Args:
        axis (matplotlib.axes.Axes): The axis.
        unit (float): The absolute value up to which it is linear.
        low (float): The lower end of the axis.
        high (float): The upper end of the axis.
    """
    axis.set_xscale("asinh", linear_width=unit)
    axis.set_xticks(_round_ticks(unit, low, high))
    axis.minorticks_off()
    is_large = high - low > _LARGE
    axis.xaxis.set_major_formatter(EngFormatter(sep="") if is_large else "{x:.10g}")


def _round_ticks(unit: float, low: float, high: float) -> list[float]:
    """Returns the roundest numbers that are not close to each other, zero first."""
    sizes = unit, max(-low, high, unit)
    least, most = (math.floor(math.log10(size)) for size in sizes)
    powers = [10.0**power for power in range(most, least - 2, -1)]
    round_ones = [factor * power for factor in (1, 5, 2) for power in powers]
    apart = (np.arcsinh(high / unit) - np.arcsinh(low / unit)) / _MAX_TICKS
    found: list[float] = []
    for one in [0.0, *(sign * size for size in round_ones for sign in (1, -1))]:
        steps = np.abs(np.arcsinh(one / unit) - np.arcsinh(np.array(found) / unit))
        if low <= one <= high and (steps >= apart).all():
            found.append(one)
    return sorted(found) if len(found) > 2 else _evenly(unit, low, high, 5).tolist()


def _decorate(axis: Axes, other: Axes) -> None:
    axis.set_ylim(0, 1.35)  # with space for the legend
    axis.set_yticks([0, 0.5, 1])
    bottom, top = other.get_ylim()
    other.set_ylim(bottom, top + 0.35 * (top - bottom))
    other.set_ylabel("log-score", fontsize=8, color=ORANGE)
    other.tick_params(labelsize=8, colors=ORANGE)
    axis.tick_params(labelsize=8)
    for one in (axis, other):
        one.spines["top"].set_visible(False)
    bars, labels = axis.get_legend_handles_labels()
    lines, more = other.get_legend_handles_labels()
    other.legend(
        bars + lines,
        labels + more,
        fontsize=8,
        loc="upper right",
        framealpha=1,
        edgecolor="white",
        borderpad=0.1,
    )


def _caption(panel: LayerPanel, num_outside: int) -> str:
    attribute = in_words(panel.attribute.name)
    lines = [f"{attribute}, {_WORDS[panel.attribute.kind]}"]
    outside = f", {num_outside:,} of them outside" if num_outside else ""
    lines.append(f"{len(panel.values):,} triples{outside}")
    values = (number_text(one, scale=1) for one in (panel.no_head, panel.no_tail))
    lines.append("unknown of the head {}, of the tail {}".format(*values))
    return "\n".join(lines)
