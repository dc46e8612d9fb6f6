"""Loss and validation by epoch."""

from collections.abc import Sequence
from itertools import product

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from kblrn_pyg.data import DataError
from kblrn_pyg.plotting.fonts import with_fonts
from kblrn_pyg.plotting.style import CYCLE
from kblrn_pyg.training.history import History

# Beyond the colours, lines are dashed or dotted.
_STYLES = [(colour, dashes) for dashes, colour in product(("-", "--", ":"), CYCLE)]


@with_fonts
def plot_training(histories: Sequence[History]) -> Figure:
    r"""Draws the loss and the validation MRR of runs by epoch.

    A dot marks the best validation, whose weights the run keeps.

    Args:
        histories (sequence): The output of
            :meth:`~kblrn_pyg.training.history.read_histories`.
    """
    histories = [history for history in histories if history.loss]
    if not histories:
        raise DataError("no epoch has been logged yet")
    if len(histories) > len(_STYLES):
        raise DataError(f"at most {len(_STYLES)} runs can be told apart")
    figure, (loss, mrr) = plt.subplots(
        1, 2, figsize=(10, 3.9 + 0.22 * len(histories)), layout="constrained"
    )
    lines: list[Line2D] = []
    for history, (colour, dashes) in zip(histories, _STYLES):
        line = {"color": colour, "linestyle": dashes, "linewidth": 1.6}
        # A line of one point would be invisible.
        marker = "o" if len(history.loss) == 1 else None
        lines += loss.plot(*_xy(history.loss), marker=marker, **line)
        mrr.plot(*_xy(history.mrr), **line)
        best = history.best_epoch
        if best is not None:
            mrr.plot(best, history.mrr[best], marker="o", color=colour)
    _finish(loss, "mean loss of the epoch")
    _finish(mrr, "mean reciprocal rank in validation")
    labels = [_label(history) for history in histories]
    legend = figure.legend(
        lines, labels, loc="outside lower left", fontsize=9, frameon=False
    )
    for text in legend.get_texts():
        text.set_parse_math(False)  # names may contain dollar signs
    return figure


def _xy(values: dict[int, float]) -> tuple[list[int], list[float]]:
    return list(values), list(values.values())


def _label(history: History) -> str:
    best = history.best_epoch
    if best is None:
        return f"{history.name}, not validated"
    return f"{history.name}, best MRR {history.mrr[best]:.3f} after epoch {best}"


def _finish(axis: Axes, title: str) -> None:
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_xlabel("epoch", fontsize=9)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axis.tick_params(labelsize=8)
    axis.grid(color="#DDDDDD", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
