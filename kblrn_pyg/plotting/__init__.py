"""Figures; the scripts in ``viz/`` are thin wrappers around these functions."""

from kblrn_pyg.plotting.differences import difference_panels, plot_differences
from kblrn_pyg.plotting.experts import plot_contributions
from kblrn_pyg.plotting.explanation import plot_explanation
from kblrn_pyg.plotting.fragment import plot_fragment
from kblrn_pyg.plotting.layers import layer_panels, plot_layers
from kblrn_pyg.plotting.output import check_output, show_or_save
from kblrn_pyg.plotting.reliability import plot_reliability
from kblrn_pyg.plotting.rules import plot_rules
from kblrn_pyg.plotting.training import plot_training

__all__ = [
    "check_output",
    "difference_panels",
    "layer_panels",
    "plot_contributions",
    "plot_differences",
    "plot_explanation",
    "plot_fragment",
    "plot_layers",
    "plot_reliability",
    "plot_rules",
    "plot_training",
    "show_or_save",
]
