"""Named answers to queries, and the most probable missing facts."""

from kblrn_pyg.predict.answers import Several, predict_heads, predict_tails
from kblrn_pyg.predict.missing import complete
from kblrn_pyg.predict.predictions import Prediction, Predictions
from kblrn_pyg.predict.scored import ScoredTriples, score_triples

__all__ = [
    "Prediction",
    "Predictions",
    "ScoredTriples",
    "Several",
    "complete",
    "predict_heads",
    "predict_tails",
    "score_triples",
]
