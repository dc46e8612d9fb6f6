"""Learning weights, stopping early, and continuing bit for bit."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.training.balancing import balance
    from kblrn_pyg.training.checkpoint import (
        Checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from kblrn_pyg.training.interface import Best, FitResult, Progress, Trainable
    from kblrn_pyg.training.loop import fit
    from kblrn_pyg.training.process import Interrupted, seed_all, set_threads
    from kblrn_pyg.training.run import Run
    from kblrn_pyg.training.settings import FitSettings
    from kblrn_pyg.training.validation import EarlyStopping
else:
    __getattr__, __dir__ = lazy_imports(__name__)

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
    "balance",
    "fit",
    "load_checkpoint",
    "save_checkpoint",
    "seed_all",
    "set_threads",
]
