"""The heaviest rules of a relation, as bars with their measures."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kblrn_pyg.data.words import short_names
from kblrn_pyg.explain import WeightedRules
from kblrn_pyg.plotting.fitting import fit, text_width
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE
from kblrn_pyg.rules import RuleSet, body_text
from kblrn_pyg.rules.text import fraction_text

# All in inches.
_MAX_BODY, _BARS, _COLUMN = 4.6, 3.0, 0.85
_LINE, _SPACE, _BAR = 0.17, 0.16, 0.2
_TOP, _BOTTOM, _MARGIN = 0.85, 0.55, 0.15

_FONT, _TITLE_FONT = 9, 12


@with_fonts
def plot_rules(found: WeightedRules) -> Figure:
    r"""Draws the rules of a relation with the largest weights.

    Each rule is shown with its body, its weight as a bar (blue raises the score
    of the pairs for which the body holds, orange lowers it), head coverage, PCA
    confidence and support.

    Args:
        found (WeightedRules): The result of
            :meth:`~kblrn_pyg.explain.heaviest_rules`.
    """
    rules = replace(found.rules, relations=short_names(found.rules.relations))
    bodies = [fit(body_text(rules, i), _FONT, _MAX_BODY, 3) for i in range(len(rules))]
    heights = np.array([_LINE * len(lines) + _SPACE for lines in bodies])
    title = _title(rules, found.num_rules)
    columns = _columns(rules)
    body = max(text_width(line, _FONT) for lines in bodies for line in lines)
    left = body + 2 * _MARGIN
    width = left + _BARS + len(columns) * _COLUMN + 2 * _MARGIN
    width = max(width, text_width(title, _TITLE_FONT) + 2 * _MARGIN)
    height = _TOP + heights.sum() + _BOTTOM
    figure = plt.figure(figsize=(width, height))
    place = (left / width, _BOTTOM / height, _BARS / width, heights.sum() / height)
    axis = figure.add_axes(place)
    centres = heights.cumsum() - heights / 2
    _draw_weights(axis, found, centres, heights.sum())
    labels = ["\n".join(lines) for lines in bodies]
    axis.set_yticks(centres, labels, fontsize=_FONT, parse_math=False)
    for i, (name, texts) in enumerate(columns.items(), start=1):
        _write_column(axis, 1 + i * _COLUMN / _BARS, name, centres, texts)
    start = _MARGIN / width, 1 - 0.35 / height
    figure.text(*start, title, fontsize=_TITLE_FONT, parse_math=False)
    return figure


def _title(rules: RuleSet, num_rules: int) -> str:
    which = f"the {len(rules)} heaviest of {num_rules:,} rules"
    if len(rules) == num_rules:
        which = f"all of its {num_rules:,} rules"
    return f"{rules.relations[rules.head[0]]}(h, t) ⇐ …,  {which}"


def _columns(rules: RuleSet) -> dict[str, list[str]]:
    return {
        "head\ncoverage": [fraction_text(value) for value in rules.head_coverage],
        "PCA\nconfidence": [
            fraction_text(*pair) for pair in zip(rules.pca_confidence, rules.estimated)
        ],
        "support": [f"{value:,}" for value in rules.support],
    }


def _draw_weights(
    axis: Axes, found: WeightedRules, centres: np.ndarray, height: float
) -> None:
    colours = [BLUE if weight > 0 else ORANGE for weight in found.weight]
    axis.barh(centres, found.weight, _BAR, color=colours)
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_ylim(height, 0)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.locator_params(axis="x", nbins=6)
    axis.set_xlabel("weight", fontsize=_FONT)
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _write_column(
    axis: Axes, x: float, name: str, centres: np.ndarray, texts: Iterable[str]
) -> None:
    """Writes numbers beside the bars, at x as a fraction of the axes' width."""
    place: dict[str, Any] = {"ha": "right", "transform": axis.get_yaxis_transform()}
    axis.text(x, -0.08, name, va="bottom", fontsize=8, color=GREY, **place)
    for centre, text in zip(centres, texts):
        axis.text(x, centre, text, va="center_baseline", fontsize=_FONT, **place)
