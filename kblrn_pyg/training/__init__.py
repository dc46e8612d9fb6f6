"""Training with early stopping and exact resumption."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.training.balancing import (
        balance,
        balance_relations,
        scale_experts,
    )
    from kblrn_pyg.training.checkpoint import (
        Checkpoint,
        load_checkpoint,
        save_checkpoint,
    )
    from kblrn_pyg.training.fold_in import FoldInSettings
    from kblrn_pyg.training.interface import Best, FitResult, Progress, Trainable
    from kblrn_pyg.training.loop import fit
    from kblrn_pyg.training.process import Interrupted, seed_all, set_threads
    from kblrn_pyg.training.run import Run
    from kblrn_pyg.training.settings import FitSettings
    from kblrn_pyg.training.update import apply_update, read_update, update_model
    from kblrn_pyg.training.validation import EarlyStopping
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "Best",
    "Checkpoint",
    "EarlyStopping",
    "FitResult",
    "FitSettings",
    "FoldInSettings",
    "Interrupted",
    "Progress",
    "Run",
    "Trainable",
    "apply_update",
    "balance",
    "balance_relations",
    "fit",
    "load_checkpoint",
    "read_update",
    "save_checkpoint",
    "scale_experts",
    "seed_all",
    "set_threads",
    "update_model",
]
