"""A trained model on one page: metrics, rules, numbers and explained examples."""

from kblrn_pyg.report.context import Context
from kblrn_pyg.report.examples import choose_rows
from kblrn_pyg.report.experts import expert_section
from kblrn_pyg.report.html import Html, Section, element, join
from kblrn_pyg.report.page import report_page

__all__ = [
    "Context",
    "Html",
    "Section",
    "choose_rows",
    "element",
    "expert_section",
    "join",
    "report_page",
]
