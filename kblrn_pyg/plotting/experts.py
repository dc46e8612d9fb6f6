"""What each expert contributes, as bars."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.plotting.contributions import Contributions
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.style import BLUE, DARK, GREEN, GREY, LIGHT, ORANGE
from kblrn_pyg.plotting.words import in_words, short_names

# All in inches.
_ROW, _PANEL, _LABEL = 0.54, 3.7, 2.0
_TOP, _BOTTOM, _GAP = 0.4, 0.6, 0.35

_COLOURS = {"latent": BLUE, "relational": GREEN, "numerical": ORANGE}


def plot_contributions(data: HeteroData, found: Contributions) -> Figure:
    r"""Draws what each expert contributes to the answers of a model.

    To the left is how much each expert lifts the true answers of a relation
    (see :meth:`mean_lifts`), to the right the mean reciprocal rank with all
    experts and, with the same weights, without the numerical one.

    Args:
        data (HeteroData): The knowledge base.
        found (Contributions): What :meth:`contributions` measured.
    """
    height = _ROW * len(found.relations)
    total = np.array([_LABEL + 2 * _PANEL + 2 * _GAP, _TOP + height + _BOTTOM])
    figure = plt.figure(figsize=total)

    def add(left: float) -> Axes:
        place = left / total[0], _BOTTOM / total[1]
        return figure.add_axes((*place, _PANEL / total[0], height / total[1]))

    lifts, ranks = add(_LABEL), add(_LABEL + _PANEL + _GAP)
    _draw_lifts(lifts, found)
    _draw_ranks(ranks, found)
    names = short_names(Vocabulary.of(data).relations.identifiers)
    labels = [
        "\n".join([*fit(in_words(names[r]), 9, _LABEL - 0.2, 2), f"{count:,} triples"])
        for r, count in zip(found.relations, found.counts)
    ]
    lifts.set_yticks(range(len(labels)), labels, fontsize=9, parse_math=False)
    ranks.set_yticks([])
    return figure


def _draw_lifts(axis: Axes, found: Contributions) -> None:
    rows, thick = np.arange(len(found.relations)), 0.78 / len(found.lifts)
    for i, (name, values) in enumerate(found.lifts.items()):
        at = rows + (i - (len(found.lifts) - 1) / 2) * thick
        axis.barh(at, values, thick, color=_COLOURS[name], label=name)
    axis.axvline(0, color="black", linewidth=0.8)
    _finish(axis, len(rows), "log-score of the true answer above the average entity")
    _legend(axis, [Patch(color=_COLOURS[n], label=f"{n} expert") for n in found.lifts])


def _draw_ranks(axis: Axes, found: Contributions) -> None:
    rows = np.arange(len(found.relations))
    if found.mrr_without is None:
        axis.barh(rows, found.mrr, 0.4, color=DARK)
        _finish(axis, len(rows), "mean reciprocal rank")
        return
    end = 1.25 * max(*found.mrr, *found.mrr_without)
    for row, has_numbers in enumerate(found.has_numbers):
        both = found.mrr[row], found.mrr_without[row]
        note = "no numbers"
        if has_numbers:
            axis.barh([row - 0.19, row + 0.19], both, 0.36, color=[DARK, LIGHT])
            note = f"{both[0] - both[1]:+.3f}".replace("-", "−")
        else:
            axis.barh(row, both[0], 0.36, color=DARK)
        where = (max(both) + 0.015 * end, row)
        axis.text(*where, note, va="center", fontsize=8, color=GREY)
    axis.set_xlim(0, end)
    _finish(axis, len(rows), "mean reciprocal rank")
    labels = {"all experts": DARK, "numerical one switched off": LIGHT}
    _legend(axis, [Patch(color=c, label=text) for text, c in labels.items()])


def _finish(axis: Axes, num_rows: int, label: str) -> None:
    axis.set_ylim(num_rows - 0.5, -0.5)  # the first one on top
    axis.set_xlabel(label, fontsize=9)
    axis.tick_params(labelsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _legend(axis: Axes, handles: list[Patch]) -> None:
    axis.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        ncols=len(handles),
        fontsize=8.5,
        frameon=False,
        borderaxespad=0.2,
        handlelength=1,
        columnspacing=1,
    )
