"""Filtered ranks of true answers, their metrics, and tables of these."""

from kblrn_pyg.evaluation.evaluate import evaluate
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.model import (
    ScoringModel,
    device_of,
    evaluating,
    kb_for,
    listed,
    score_rows,
)
from kblrn_pyg.evaluation.one_query import QueryResult, query_auc, rank_one_query
from kblrn_pyg.evaluation.ranks import RankTable
from kblrn_pyg.evaluation.report import Report, to_json, to_markdown

__all__ = [
    "Metrics",
    "QueryResult",
    "RankTable",
    "Report",
    "ScoringModel",
    "auc_pr",
    "device_of",
    "evaluate",
    "evaluating",
    "kb_for",
    "listed",
    "query_auc",
    "rank_one_query",
    "score_rows",
    "to_json",
    "to_markdown",
]
