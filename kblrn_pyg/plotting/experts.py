"""The contribution of each expert, as bars."""

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.words import in_words, minus, short_names, signed
from kblrn_pyg.explain import Contributions
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.style import CYCLE, DARK, GREY

# All in inches.
_BAR, _PANEL, _LABEL = 0.17, 3.7, 2.0
_LEGEND, _BOTTOM, _GAP = 0.2, 0.6, 0.35
_LEAST_ROW = 0.54  # a name of two lines, and the number of triples
_COLUMNS = 2  # of a legend


@with_fonts
def plot_contributions(data: HeteroData, found: Contributions) -> Figure:
    r"""Draws the contribution of each expert to the answers of a model.

    To the left is how much each expert lifts the true answers of a relation
    (see :meth:`~kblrn_pyg.explain.mean_lifts`), to the right the
    mean reciprocal rank with all experts and, with the same weights, without
    each of them.

    Args:
        data (HeteroData): The knowledge base.
        found (Contributions): The result of
            :meth:`~kblrn_pyg.explain.contributions`.
    """
    row = max(_LEAST_ROW, _BAR * (len(found.lifts) + 2))
    height = row * len(found.relations)
    top = _LEGEND * (math.ceil((len(found.mrr_without) + 1) / _COLUMNS) + 1)
    total = np.array([_LABEL + 2 * _PANEL + 2 * _GAP, top + height + _BOTTOM])
    figure = plt.figure(figsize=total)

    def add(left: float) -> Axes:
        place = left / total[0], _BOTTOM / total[1]
        return figure.add_axes((*place, _PANEL / total[0], height / total[1]))

    lifts, ranks = add(_LABEL), add(_LABEL + _PANEL + _GAP)
    _draw_lifts(lifts, found, _BAR / row)
    _draw_ranks(ranks, found, _BAR / row)
    names = short_names(Vocabulary.of(data).relations.identifiers)
    labels = [
        "\n".join([*fit(in_words(names[r]), 9, _LABEL - 0.2, 2), f"{count:,} triples"])
        for r, count in zip(found.relations, found.counts)
    ]
    lifts.set_yticks(range(len(labels)), labels, fontsize=9, parse_math=False)
    ranks.set_yticks([])
    return figure


def _style(i: int, strength: float = 1.0) -> dict[str, Any]:
    """The look of an expert; beyond the colours, bars are hatched."""
    colour = 1 - strength * (1 - np.array(to_rgb(CYCLE[i % len(CYCLE)])))
    hatch = "///" * (i // len(CYCLE))
    return {"facecolor": tuple(colour), "edgecolor": "white", "hatch": hatch}


def _draw_lifts(axis: Axes, found: Contributions, thick: float) -> None:
    rows, handles = np.arange(len(found.relations)), []
    for i, (name, values) in enumerate(found.lifts.items()):
        at = rows + (i - (len(found.lifts) - 1) / 2) * thick
        axis.barh(at, values, thick, linewidth=0, **_style(i))
        handles.append(Patch(**_style(i), label=f"{name} expert"))
    axis.axvline(0, color="black", linewidth=0.8)
    _finish(axis, len(rows), "log-score of the true answer above the average entity")
    _legend(axis, handles)


def _draw_ranks(axis: Axes, found: Contributions, thick: float) -> None:
    rows, without = np.arange(len(found.relations)), found.mrr_without
    first = rows - len(without) / 2 * thick
    axis.barh(first, found.mrr, thick, color=DARK)
    end = 1.2 * max(max(values) for values in (found.mrr, *without.values()))
    axis.set_xlim(0, end or 1)
    _finish(axis, len(rows), "mean reciprocal rank")
    handles = [Patch(facecolor=DARK, edgecolor="white", label="all experts")]
    for i, name in enumerate(found.lifts):
        if name not in without:
            continue
        style = _style(i, strength=0.6)
        handles.append(Patch(**style, label=f"without {name}"))
        for row, (mrr, less) in enumerate(zip(found.mrr, without[name])):
            y, note = first[row] + (i + 1) * thick, "no effect"
            if found.speaks[name][row]:
                axis.barh(y, less, thick, linewidth=0, **style)
                note = minus(signed(less - mrr))
            start = less if found.speaks[name][row] else 0
            where = start + 0.015 * (end or 1), y
            axis.text(*where, note, va="center_baseline", fontsize=7, color=GREY)
    _legend(axis, handles)


def _finish(axis: Axes, num_rows: int, label: str) -> None:
    axis.set_ylim(num_rows - 0.5, -0.5)  # the first one on top
    axis.set_xlabel(label, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _legend(axis: Axes, handles: list[Patch]) -> None:
    if len(handles) == 1:
        return
    legend = axis.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=_COLUMNS,
        fontsize=8.5,
        frameon=False,
        borderaxespad=0.2,
        handlelength=1,
        columnspacing=1,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
        text.set_text(fit(text.get_text(), 8.5, _PANEL / _COLUMNS - 0.4, 1)[0])
