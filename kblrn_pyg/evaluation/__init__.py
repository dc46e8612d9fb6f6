"""Filtered ranks of true answers, what they sum up to, and tables of it."""

from kblrn_pyg.evaluation.evaluate import (
    QueryResult,
    Scorer,
    evaluate,
    evaluating,
    query_auc,
)
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.ranks import RankTable
from kblrn_pyg.evaluation.report import Report, to_json, to_markdown

__all__ = [
    "Metrics",
    "QueryResult",
    "RankTable",
    "Report",
    "Scorer",
    "auc_pr",
    "evaluate",
    "evaluating",
    "query_auc",
    "to_json",
    "to_markdown",
]
