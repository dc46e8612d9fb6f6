"""Filtered ranks of true answers, what they sum up to, and tables of it."""

from kblrn_pyg.evaluation.evaluate import evaluate
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.one_query import QueryResult, query_auc
from kblrn_pyg.evaluation.ranks import RankTable
from kblrn_pyg.evaluation.report import Report, to_json, to_markdown
from kblrn_pyg.evaluation.scorer import Scorer, evaluating, kb_for

__all__ = [
    "Metrics",
    "QueryResult",
    "RankTable",
    "Report",
    "Scorer",
    "auc_pr",
    "evaluate",
    "evaluating",
    "kb_for",
    "query_auc",
    "to_json",
    "to_markdown",
]
