"""Explanations of scores, and the contribution of each expert to a model."""

from kblrn_pyg.explain.contributions import Contributions, contributions, mean_lifts
from kblrn_pyg.explain.heaviest import WeightedRules, heaviest_rules
from kblrn_pyg.explain.reasons import Named, NamedFact, Reason, Reasons, Standing
from kblrn_pyg.explain.triple import explain

__all__ = [
    "Contributions",
    "Named",
    "NamedFact",
    "Reason",
    "Reasons",
    "Standing",
    "WeightedRules",
    "contributions",
    "explain",
    "heaviest_rules",
    "mean_lifts",
]
