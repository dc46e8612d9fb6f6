"""The experts and the model."""

from kblrn_pyg.nn.kblrn import INSTANCES, KBLRN
from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.relational import RelationalExpert

__all__ = [
    "INSTANCES",
    "KBLRN",
    "LatentExpert",
    "NumericalExpert",
    "RelationalExpert",
]
