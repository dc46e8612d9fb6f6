"""The experts and the model."""

from kblrn_pyg.nn.kblrn import INSTANCES, KBLRN
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.rescal import RESCAL

__all__ = [
    "INSTANCES",
    "KBLRN",
    "RESCAL",
    "LatentExpert",
    "NumericalExpert",
    "RelationalExpert",
]
