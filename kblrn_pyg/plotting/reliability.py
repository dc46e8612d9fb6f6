"""Reliability diagrams: the fraction of true triples by predicted probability."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from kblrn_pyg.data import DataError
from kblrn_pyg.evaluation import Reliability
from kblrn_pyg.plotting.style import BLUE, GREY


def plot_reliability(several: Mapping[str, Reliability]) -> Figure:
    r"""Draws the fraction of true triples by predicted probability.

    If probabilities are reliable, bars end on the diagonal. The larger the dot of a
    bar, the more triples it represents.

    Args:
        several (dict): The reliability results to draw, by title.
    """
    if not several:
        raise DataError("there is nothing to draw, expected a reliability")
    figure, grid = plt.subplots(
        *(1, len(several)),
        figsize=(3.9 * len(several), 4.1),
        layout="constrained",
        squeeze=False,
    )
    for axes, (title, found) in zip(grid[0], several.items()):
        some = found.count > 0
        width = found.edges[1] - found.edges[0]
        axes.bar(
            found.edges[:-1][some],
            found.accuracy[some],
            width=width,
            align="edge",
            color=BLUE,
            alpha=0.35,
            edgecolor="white",
        )
        size = 90 * found.count[some] / found.count.max()
        axes.scatter(
            found.confidence[some], found.accuracy[some], s=size + 6, color=BLUE
        )
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
        axes.set_title(
            f"{title}\nexpected calibration error {found.error:.3f}",
            fontsize=10,
            loc="left",
            parse_math=False,  # names may contain dollar signs
        )
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes.set_xlabel("probability", fontsize=9)
        axes.set_ylabel("fraction that is true", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    return figure
