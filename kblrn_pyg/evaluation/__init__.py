"""Filtered ranks of true answers, their metrics, and tables of these."""

from kblrn_pyg.evaluation.calibrate import (
    LabelledTriples,
    calibrate,
    expert_scores,
    labelled_triples,
    reliability_of,
    triple_scores,
)
from kblrn_pyg.evaluation.evaluate import evaluate, evaluate_each
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
from kblrn_pyg.evaluation.reliability import Reliability
from kblrn_pyg.evaluation.report import Report, to_json, to_markdown

__all__ = [
    "LabelledTriples",
    "Metrics",
    "QueryResult",
    "RankTable",
    "Reliability",
    "Report",
    "ScoringModel",
    "auc_pr",
    "calibrate",
    "device_of",
    "evaluate",
    "evaluate_each",
    "evaluating",
    "expert_scores",
    "kb_for",
    "labelled_triples",
    "listed",
    "query_auc",
    "rank_one_query",
    "reliability_of",
    "score_rows",
    "to_json",
    "to_markdown",
    "triple_scores",
]
