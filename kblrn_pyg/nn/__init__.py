"""The experts and the model."""

from kblrn_pyg.nn.kblrn import INSTANCES, KBLRN
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.rescal import RESCAL
from kblrn_pyg.nn.scorers import SCORERS
from kblrn_pyg.nn.transe import FreeTransE

__all__ = [
    "INSTANCES",
    "KBLRN",
    "RESCAL",
    "SCORERS",
    "FreeTransE",
    "LatentExpert",
    "NumericalExpert",
    "RelationalExpert",
]
