"""Why a triple scores as it does: exact parts, in words, as JSON and as a graph."""

from kblrn_pyg.explain.reasons import (
    Atom,
    BodyReason,
    Named,
    NumberReason,
    Reasons,
    ScorerReason,
    Standing,
)
from kblrn_pyg.explain.triple import explain

__all__ = [
    "Atom",
    "BodyReason",
    "Named",
    "NumberReason",
    "Reasons",
    "ScorerReason",
    "Standing",
    "explain",
]
