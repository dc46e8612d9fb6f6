"""Learning weights, stopping early, and continuing bit for bit."""

from kblrn_pyg.training.checkpoint import (
    Checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from kblrn_pyg.training.fit import FitResult, Progress, fit
from kblrn_pyg.training.process import Interrupted, Process, seed_all, set_threads
from kblrn_pyg.training.run import Run
from kblrn_pyg.training.settings import FitSettings
from kblrn_pyg.training.stopping import EarlyStopping
from kblrn_pyg.training.trainable import Trainable
from kblrn_pyg.training.validation import Best

__all__ = [
    "Best",
    "Checkpoint",
    "EarlyStopping",
    "FitResult",
    "FitSettings",
    "Interrupted",
    "Process",
    "Progress",
    "Run",
    "Trainable",
    "fit",
    "load_checkpoint",
    "save_checkpoint",
    "seed_all",
    "set_threads",
]
