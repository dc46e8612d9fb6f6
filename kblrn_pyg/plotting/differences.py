"""Histograms of numerical differences with their radial basis functions."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator
from torch_geometric.data import HeteroData

from kblrn_pyg.data import (
    DataError,
    NumericalFeatures,
    Vocabulary,
    differences,
    numerical_features,
)
from kblrn_pyg.data.names import shorten
from kblrn_pyg.data.words import in_words, number_text, short_names
from kblrn_pyg.nn import KBLRN, LayerExpert, NumericalExpert
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.layers import plot_layers, set_log_axis
from kblrn_pyg.plotting.panels import new_panels
from kblrn_pyg.plotting.style import BLUE, GREY, ORANGE

_WIDTH = 4.2  # of a panel, in inches
# How many widths to each side of the centre are drawn.
_REACH = 5
# Beyond this, ticks are written as 20M.
_LARGE = 1e4
# How many relations an error lists.
_MAX_LISTED = 12


class Panel(NamedTuple):
    """One numerical feature of a relation, with its learned parameters."""

    relation: int
    attribute: int
    # The mean and the standard deviation of head minus tail in training triples.
    centre: float
    width: float
    weight: float | None = None
    learned: tuple[float, float] | None = None  # centre and width
    has_rbf: bool = True  # or else the activation is the sign


@with_fonts
def plot_differences(
    data: HeteroData,
    relations: Sequence[str],
    threshold: float | None = None,
    num_bins: int | None = None,
    model: KBLRN | None = None,
    attribute: str | None = None,
    log: bool = False,
) -> Figure:
    r"""Draws the differences of head and tail that the numerical expert uses.

    There is one panel for every numerical feature of the relations: the normalised
    histogram of :math:`n_h - n_t` over the training triples, and over it the radial
    basis function :math:`\phi(d) = \exp(-(d - c)^2 / \sigma^2)` (Figure 3 of the
    paper). With a model, the caption gives the learned weight of each; if the model
    has layers, the learned layers are drawn (see :meth:`plot_layers`).

    Args:
        data (HeteroData): The knowledge base.
        relations (sequence): The relations, by name.
        threshold (float, optional): The fraction of a relation's training
            triples that must have both numbers. (default: :obj:`None`, that of
            the model, or else 0.9)
        num_bins (int, optional): The number of bars. (default: :obj:`None`,
            chosen by the number of triples)
        model (KBLRN, optional): A model of the knowledge base.
            (default: :obj:`None`)
        attribute (str, optional): The attribute to draw.
            (default: :obj:`None`, all)
        log (bool, optional): Whether the axis of differences is logarithmic.
            (default: :obj:`False`)
    """
    experts = () if model is None else model.experts.values()
    for expert in experts:
        if isinstance(expert, LayerExpert):
            return plot_layers(data, expert, relations, attribute, num_bins, log)
    panels = difference_panels(data, relations, threshold, model)
    if attribute is not None:
        panels = _panels_of(data, panels, attribute)
    figure, axes = new_panels(len(panels), _WIDTH, 3.6 if model is None else 3.9)
    names = Vocabulary.of(data)
    titles = short_names(names.relations.identifiers)
    for axis, panel in zip(axes, panels):
        attribute = in_words(names.attributes[panel.attribute])
        values = differences(data, panel.relation, panel.attribute).numpy()
        _draw_panel(axis, panel, values, num_bins)
        if log:
            set_log_axis(axis, panel.width / 4, *axis.get_xlim())
            axis.set_ylim(top=1.55)  # which leaves the legend alone
        title = "\n".join(fit(in_words(titles[panel.relation]), 11, _WIDTH - 0.5, 2))
        axis.set_title(title, fontsize=11, parse_math=False)
        low, high = (panel.centre + sign * _REACH * panel.width for sign in (-1, 1))
        num_outside = int(((values < low) | (values > high)).sum())
        caption = _caption(panel, attribute, (len(values), num_outside))
        axis.set_xlabel(caption, fontsize=9, parse_math=False)
    figure.tight_layout()
    return figure


@with_fonts
def difference_panels(
    data: HeteroData,
    relations: Sequence[str],
    threshold: float | None = None,
    model: KBLRN | None = None,
) -> list[Panel]:
    r"""Returns the numerical features of relations, with their learned parameters.

    Args:
        data (HeteroData): The knowledge base.
        relations (sequence): The relations, by name.
        threshold (float, optional): The fraction of a relation's training
            triples that must have both numbers. (default: :obj:`None`, that of
            the model, or else 0.9)
        model (KBLRN, optional): A model of the knowledge base.
            (default: :obj:`None`)
    """
    names = Vocabulary.of(data)
    if threshold is None:
        known = None if model is None else model.settings
        threshold = ModelSettings.threshold if known is None else known.threshold
    features = numerical_features(data, threshold)
    expert = None if model is None else _expert(model, features)
    panels = []
    for relation in relations:
        r = names.relations.resolve(relation)
        places = range(*features.of(r).indices(len(features)))
        if not places:
            _refuse_without_features(names, features, r)
        panels += [_panel(features, expert, r, i) for i in places]
    return panels


def _expert(model: KBLRN, features: NumericalFeatures) -> NumericalExpert:
    experts = model.experts.values()
    found = [expert for expert in experts if isinstance(expert, NumericalExpert)]
    if not found:
        raise DataError(
            f"the model has no numerical expert, its experts are {model.instance!r}"
        )
    if not found[0].attribute.cpu().equal(features.attribute):
        raise DataError("the model has other numerical features than the data")
    return found[0]


def _panel(
    features: NumericalFeatures, expert: NumericalExpert | None, relation: int, i: int
) -> Panel:
    known = Panel(
        relation,
        int(features.attribute[i]),
        float(features.centre[i]),
        float(features.width[i]),
    )
    if expert is None:
        return known
    learned = None
    if expert.learn_rbf:
        learned = expert.centre[i].item(), expert.log_width[i].exp().item()
    return known._replace(
        weight=expert.weight[i].item(),
        learned=learned,
        has_rbf=expert.activation == "rbf",
    )


def _refuse_without_features(
    names: Vocabulary, features: NumericalFeatures, relation: int
) -> None:
    short = shorten(names.relations.identifiers)
    having = [short[r] for r in features.relations.tolist()]
    listed = ", ".join(having[:_MAX_LISTED])
    if len(having) > _MAX_LISTED:
        listed += f" and {len(having) - _MAX_LISTED} more"
    raise DataError(
        f"relation {names.relations[relation]!r} has no numerical features; "
        f"these have: {listed or 'none'}"
    )


def _draw_panel(
    axis: Axes, panel: Panel, values: np.ndarray, num_bins: int | None
) -> None:
    low, high = (panel.centre + sign * _REACH * panel.width for sign in (-1, 1))
    counts, edges = np.histogram(values, _bin_edges(values, panel, num_bins))
    # As in the paper, the highest bar is 1, as high as the RBF.
    axis.bar(
        edges[:-1],
        counts / max(counts.max(), 1),
        np.diff(edges),
        align="edge",
        color=BLUE,
        alpha=0.55,
        label="training triples",
    )
    if panel.has_rbf:
        _draw_rbfs(axis, panel, np.linspace(low, high, 400))
    axis.axvline(0, color=GREY, linewidth=0.8, linestyle=":")
    # A learned centre may be anywhere: its peak stays below the legend.
    axis.set_ylim(0, 1.12 if panel.learned is None else 1.55)
    axis.set_yticks([0, 0.5, 1])
    axis.xaxis.set_major_locator(MaxNLocator(5))
    if high - low > _LARGE:
        axis.xaxis.set_major_formatter(EngFormatter(sep=""))
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.legend(
        fontsize=8, loc="upper right", framealpha=1, edgecolor="white", borderpad=0.1
    )


def _draw_rbfs(axis: Axes, panel: Panel, grid: np.ndarray) -> None:
    fixed = _rbf(grid, panel.centre, panel.width)
    if panel.learned is None:
        axis.plot(grid, fixed, color=ORANGE, linewidth=2, label="RBF")
        return
    axis.plot(grid, fixed, color=GREY, linestyle="--", label="initial RBF")
    learned = _rbf(grid, *panel.learned)
    axis.plot(grid, learned, color=ORANGE, linewidth=2, label="learned RBF")


def _rbf(grid: np.ndarray, centre: float, width: float) -> np.ndarray:
    return np.exp(-((grid - centre) ** 2) / width**2)


def _panels_of(data: HeteroData, panels: list[Panel], attribute: str) -> list[Panel]:
    names = Vocabulary.of(data).attributes
    found = [one for one in panels if names[one.attribute] == attribute]
    if not found:
        having = ", ".join(dict.fromkeys(names[one.attribute] for one in panels))
        raise DataError(f"no such attribute: {attribute!r}; there are: {having}")
    return found


def _caption(panel: Panel, attribute: str, counts: tuple[int, int]) -> str:
    def both(centre: float, width: float) -> str:
        texts = (number_text(value, panel.width) for value in (centre, width))
        return "centre {}, width {}".format(*texts)

    lines = [f"{attribute}, head − tail"]
    num_triples, num_outside = counts
    lines.append(f"{num_triples:,} triples, {both(panel.centre, panel.width)}")
    if num_outside:
        lines.append(f"{num_outside:,} of them are too far away to be drawn")
    if panel.weight is None:
        return "\n".join(lines)
    weight = number_text(panel.weight, scale=1)
    if panel.learned is not None:
        lines.append(f"learned: {both(*panel.learned)}, weight {weight}")
    else:
        what = "RBF" if panel.has_rbf else "sign"
        lines.append(f"learned weight of the {what}: {weight}")
    return "\n".join(lines)


def _bin_edges(values: np.ndarray, panel: Panel, num_bins: int | None) -> np.ndarray:
    if num_bins is None:
        num_bins = int(np.clip(2 * np.sqrt(len(values)), 10, 40)) | 1
    reach = _REACH * panel.width
    if panel.width < 1 or (values != np.round(values)).any():
        return np.linspace(panel.centre - reach, panel.centre + reach, num_bins + 1)
    # Each bar covers the same number of integers, or there would be gaps. It is
    # an odd number, so that the bar in the middle is around the centre.
    step = math.ceil(2 * reach / num_bins) | 1
    half = math.ceil(reach / step)
    return round(panel.centre) + (np.arange(-half, half + 2) - 0.5) * step
