"""Scorers: the components of a latent expert."""

from kblrn_pyg.nn.scorers.complex import ComplExScorer, RotatEScorer
from kblrn_pyg.nn.scorers.conve import ConvE, ConvEScorer
from kblrn_pyg.nn.scorers.delegating import DelegatingScorer
from kblrn_pyg.nn.scorers.distmult import DistMultScorer
from kblrn_pyg.nn.scorers.make import (
    SCORERS,
    AnyScorer,
    make_named_scorer,
    make_scorer,
    scorer_list,
    scorer_name,
)
from kblrn_pyg.nn.scorers.pykeen import PyKEENModel, PyKEENScorer
from kblrn_pyg.nn.scorers.reciprocal import ReciprocalScorer
from kblrn_pyg.nn.scorers.rescal import RESCAL, RESCALScorer
from kblrn_pyg.nn.scorers.rgcn import RGCNScorer
from kblrn_pyg.nn.scorers.scorer import Scorer
from kblrn_pyg.nn.scorers.transe import FreeTransE, TransEScorer, UnitTransEScorer
from kblrn_pyg.nn.scorers.transh import TransH, TransHScorer
from kblrn_pyg.nn.scorers.transr import TransR, TransRScorer
from kblrn_pyg.nn.scorers.tucker import TuckER, TuckERScorer

__all__ = [
    "RESCAL",
    "SCORERS",
    "AnyScorer",
    "ComplExScorer",
    "ConvE",
    "ConvEScorer",
    "DelegatingScorer",
    "DistMultScorer",
    "FreeTransE",
    "PyKEENModel",
    "PyKEENScorer",
    "RESCALScorer",
    "RGCNScorer",
    "ReciprocalScorer",
    "RotatEScorer",
    "Scorer",
    "TransEScorer",
    "TransH",
    "TransHScorer",
    "TransR",
    "TransRScorer",
    "TuckER",
    "TuckERScorer",
    "UnitTransEScorer",
    "make_named_scorer",
    "make_scorer",
    "scorer_list",
    "scorer_name",
]
