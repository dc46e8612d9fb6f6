"""Loss and validation by epoch."""

from pathlib import Path

from kblrn_pyg.plotting import plot_training
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import Section, element, join
from kblrn_pyg.training import Run
from kblrn_pyg.training.history import read_histories


def curve_section(path: Path) -> Section | None:
    r"""Draws loss and validation by epoch, if anything has been logged.

    Args:
        path (pathlib.Path): The folder of the run.
    """
    if not Run(path).log_path.exists():
        return None
    (history,) = read_histories([path])
    if not history.loss:
        return None
    best, last = history.best_epoch, max(history.loss)
    text = f"Epochs: {last:,}. There was no validation."
    if best is not None:
        text = (
            f"Epochs: {last:,}. The best validation was after epoch {best:,}, with an "
            f"MRR of {history.mrr[best]:.3f}; the model has the weights of that epoch."
        )
    images = pictures(plot_training([history]), "Loss and validation by epoch")
    if best is None:
        images = images[:1]  # the other one is empty
    shown = element("div", *images, class_="pictures large")
    content = join([element("p", text, class_="note"), shown])
    return Section("training", "Training", content)
