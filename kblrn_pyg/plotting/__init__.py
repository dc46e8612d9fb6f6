"""Figures; the scripts in ``viz/`` are thin shells around these functions."""

from kblrn_pyg.plotting.differences import plot_differences
from kblrn_pyg.plotting.output import show_or_save

__all__ = ["plot_differences", "show_or_save"]
