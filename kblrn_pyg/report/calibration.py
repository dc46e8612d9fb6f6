"""The report's section about the reliability of probabilities."""

from kblrn_pyg.data.kb import num_edges
from kblrn_pyg.evaluation import reliability_of
from kblrn_pyg.plotting import plot_reliability
from kblrn_pyg.report.context import Context
from kblrn_pyg.report.figures import pictures
from kblrn_pyg.report.html import Section, element, join, note
from kblrn_pyg.runs import other_answers

_TITLES = {"val": "validation", "test": "test"}


def calibration_section(context: Context) -> Section | None:
    """Draws the reliability of a calibrated model on both splits."""
    calibration = context.model.calibration
    if calibration is None:
        return None
    found = {
        title: reliability_of(
            context.model, context.splits[split], other_answers(context.splits, split)
        )
        for split, title in _TITLES.items()
        if num_edges(context.splits[split], "edge_label_index")
    }
    if not found:
        return None
    whose = "that the relation has there" if calibration.negatives == "observed" else ""
    text = note(
        "Probabilities that triples are true, fitted to the validation split: bars "
        "should end on the diagonal. True triples are those of the split; for each of "
        f"them there are {calibration.ratio:g} false ones, with another entity "
        f"{whose or 'of all'} in place of the head or of the tail. The expected "
        "calibration error is the mean distance of probability and truth. "
        f"{calibration.num_own:,} of {len(calibration):,} relations have enough "
        "triples for numbers of their own."
    )
    images = pictures(plot_reliability(found), "Reliability diagram")
    content = join([text, element("div", *images, class_="pictures large")])
    return Section("calibration", "Calibration", content)
