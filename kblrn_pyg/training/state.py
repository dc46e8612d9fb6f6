"""The state of a training run, which checkpoints store."""

import logging
import warnings
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from kblrn_pyg.data import DataError
from kblrn_pyg.data.digest import ids_digest
from kblrn_pyg.data.store import MALFORMED
from kblrn_pyg.nn.model_file import versions
from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.settings import default_of
from kblrn_pyg.training import process
from kblrn_pyg.training.checkpoint import Checkpoint, Position, load_checkpoint
from kblrn_pyg.training.interface import Trainable
from kblrn_pyg.training.optimizers import make_optimizer
from kblrn_pyg.training.settings import FitSettings
from kblrn_pyg.training.sharded import ShardedModel
from kblrn_pyg.training.validation import ValidationSet

logger = logging.getLogger(__name__)


class TrainingState:
    r"""The weights of a model, its optimizer, and the position in training.

    Args:
        model (KBLRN): The model, which is split if there are several processes.
        sets (sequence): The validation sets.
        settings (FitSettings): The settings.
        triples (sequence): The heads, relations and tails of the training triples.
    """

    def __init__(
        self,
        model: Trainable,
        sets: Sequence[ValidationSet],
        settings: FitSettings,
        triples: Sequence[Tensor],
    ) -> None:
        self.model, self.sets = model, sets
        asked = [column for one in sets for column in one.asked]
        # What must be the same to continue bit for bit; more epochs are fine.
        self.shaped_by = {
            **model.config,
            **asdict(settings),
            "validation_sets": [one.name for one in sets],
            "triples": ids_digest(*triples, *asked),
        }
        del self.shaped_by["epochs"]
        self.fingerprint = model.fingerprint()
        self.sharded = ShardedModel(model)
        groups = _parameter_groups(model, settings)
        self.optimizer = make_optimizer(settings.optimizer, groups)
        self.rates = [group["lr"] for group in self.optimizer.param_groups]
        self.position = Position()
        self.history: list[dict[str, Any]] = []
        self.rng: dict[str, Any] | None = None  # of the checkpoint

    @property
    def stopped(self) -> bool:
        """Whether all validation sets have stopped."""
        return bool(self.sets) and all(one.stopping.stopped for one in self.sets)

    def scale_rates(self, factor: float) -> None:
        r"""Sets the learning rates to a fraction of the initial ones.

        Args:
            factor (float): The fraction.
        """
        for group, rate in zip(self.optimizer.param_groups, self.rates):
            group["lr"] = rate * factor

    def checkpoint(self) -> Checkpoint:
        """Returns a checkpoint; all processes must call this."""
        checkpoint = Checkpoint(
            model=self.model.state_dict(),
            optimizer=self.optimizer.state_dict(),
            rng=process.get_rng_states(),
            position=asdict(self.position),
            stopping={one.name: one.stopping.state_dict() for one in self.sets},
            history=self.history,
            best={one.name: one.weights for one in self.sets if one.weights},
            settings=self.shaped_by,
            fingerprint=self.fingerprint,
            num_threads=process.set_threads(None),
        )
        return self.sharded.whole(checkpoint, self.optimizer)

    def load(self, path: Path) -> None:
        r"""Resumes from a checkpoint of the same training run.

        Args:
            path (Path): The file.
        """
        given = self.fingerprint, self.shaped_by, _default_settings()
        checkpoint = load_checkpoint(path, *given)
        try:
            self._take(checkpoint, path)
        except MALFORMED as error:
            raise DataError(f"cannot be continued from ({error!r})", path) from error

    def _take(self, checkpoint: Checkpoint, path: Path) -> None:
        now = {"threads": process.set_threads(None), **versions()}
        then = {"threads": checkpoint.num_threads, **checkpoint.versions}
        changed = [f"{key} {then[key]}" for key in now if now[key] != then[key]]
        if changed:
            logger.warning("%s was made with %s", path, ", ".join(changed))
        checkpoint = self.sharded.own(checkpoint, self.optimizer)
        self.model.load_state_dict(checkpoint.model)
        self.optimizer.load_state_dict(checkpoint.optimizer)
        _check_shapes(self.optimizer)
        process.set_rng_states(checkpoint.rng)  # so that wrong ones are told now
        self.position = Position(**checkpoint.position)
        for one in self.sets:
            one.stopping.load_state_dict(checkpoint.stopping[one.name])
            one.weights = checkpoint.best.get(one.name)
        self.history, self.rng = checkpoint.history, checkpoint.rng


def _parameter_groups(model: Trainable, settings: FitSettings) -> list[dict[str, Any]]:
    """Returns the parameters of a model with their learning rates."""
    lr, feature_lr = settings.lr, settings.feature_lr
    features = [] if feature_lr is None else model.feature_parameters()
    if feature_lr is not None and not features:
        message = "'feature_lr' has no effect, the model has no feature weights"
        warnings.warn(message, stacklevel=5)
    is_feature = set(map(id, features))
    others = [one for one in model.parameters() if id(one) not in is_feature]
    groups = {"params": others, "lr": lr}, {"params": features, "lr": feature_lr}
    return [group for group in groups if group["params"]]


def _default_settings() -> dict[str, Any]:
    """Returns the defaults of all settings by name."""
    every = (*fields(ModelSettings), *fields(FitSettings))
    return {field.name: default_of(field) for field in every}


def _check_shapes(optimizer: Optimizer) -> None:
    """Refuses state whose shapes differ from the parameters, because kernels do not
    check them."""
    for parameter, state in optimizer.state.items():
        for name, value in state.items():
            shapes = (), parameter.shape, (len(parameter), 1)
            if isinstance(value, Tensor) and value.shape not in shapes:
                raise ValueError(
                    f"'{name}' of the optimizer must have the shape "
                    f"{list(parameter.shape)} (got {list(value.shape)})"
                )
