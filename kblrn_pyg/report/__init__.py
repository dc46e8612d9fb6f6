"""A trained model on one page: figures, numbers, rules and explained examples."""

from kblrn_pyg.report.choose import choose_rows
from kblrn_pyg.report.page import report_page

__all__ = ["choose_rows", "report_page"]
