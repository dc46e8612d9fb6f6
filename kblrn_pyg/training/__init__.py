"""Learning weights, stopping early, and continuing bit for bit."""

from kblrn_pyg.training.checkpoint import (
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from kblrn_pyg.training.fit import fit
from kblrn_pyg.training.interface import Best, FitResult, Progress, Trainable
from kblrn_pyg.training.process import Interrupted, seed_all, set_threads
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings
from kblrn_pyg.training.validation import EarlyStopping

__all__ = [
    "Best",
    "Checkpoint",
    "EarlyStopping",
    "FitResult",
    "FitSettings",
    "Interrupted",
    "Progress",
    "Run",
    "Trainable",
    "fit",
    "load_checkpoint",
    "save_checkpoint",
    "seed_all",
    "set_threads",
]
