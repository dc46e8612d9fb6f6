"""The search space of tuning: the settings of a stage and their ranges."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kblrn_pyg.nn.settings import ModelSettings
from kblrn_pyg.recipes.recipe import Stage
from kblrn_pyg.settings import concerns, used_by


class Trial(Protocol):
    """The interface of objects that suggest values, such as trials of Optuna."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """Suggests one of several values."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool) -> float:
        """Suggests a number."""


@dataclass(frozen=True)
class Options:
    """Values to choose from."""

    values: tuple[Any, ...]

    def suggest(self, trial: Trial, name: str) -> Any:
        """Asks for one of them."""
        return trial.suggest_categorical(name, self.values)

    def __contains__(self, value: Any) -> bool:
        return value in self.values


@dataclass(frozen=True)
class Range:
    """Positive numbers to choose from, on a logarithmic scale."""

    low: float
    high: float

    def suggest(self, trial: Trial, name: str) -> float:
        """Asks for one of them."""
        return trial.suggest_float(name, self.low, self.high, log=True)

    def __contains__(self, value: Any) -> bool:
        return self.low <= value <= self.high


Space = dict[str, Options | Range]

# Settings of the model. Those of experts that a stage lacks are not tried.
_MODEL: Space = {
    "scorer": Options(("complex", "distmult")),
    "hidden_channels": Options((32, 64, 128, 256, 512)),
    "reciprocal": Options((False, True)),
    "dropout": Options((0.0, 0.2, 0.3, 0.5)),
    "n3": Options((0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5)),
    "relation_prediction": Options((0.0, 1.0, 4.0)),
    "numerical": Options(("layer", "rbf")),
    "threshold": Options((0.1, 0.5, 0.9)),
    "evidence_kinds": Options((False, True)),
    "evidence_shrinkage": Options((2.0, 5.0, 10.0)),
}
_TRAINING: Space = {
    "lr_decay": Options((0.8, 0.9, 1.0)),
    "batch_size": Options((128, 256, 512)),
}
_RATES = {"adam": Range(0.0003, 0.1), "adagrad": Range(0.01, 0.5)}
# What row-sparse gradients leave to choose.
_SPARSE = ("hidden_channels", "dropout", "numerical", "threshold")


def suggest_stage(base: Stage, trial: Trial, fixed: Mapping[str, Any]) -> Stage:
    r"""Returns a stage with settings that a trial suggests.

    Args:
        base (Stage): The settings that are not suggested.
        trial (Trial): The trial.
        fixed (dict): The names of settings that are not to be suggested.
    """
    model = {
        name: one.suggest(trial, name)
        for name, one in _model_space(base).items()
        if name not in fixed
    }
    if "scorer" in model:
        model["scorer"] = [model["scorer"]]
    training = {
        name: one.suggest(trial, name)
        for name, one in _training_space(base).items()
        if name not in fixed
    }
    optimizer = base.fit_settings.optimizer
    if "optimizer" not in fixed and not base.model.get("sparse"):
        optimizer = trial.suggest_categorical("optimizer", tuple(_RATES))
        training["optimizer"] = optimizer
    if "lr" not in fixed:
        training["lr"] = _RATES[optimizer].suggest(trial, f"{optimizer}_lr")
    return replace(base, model=base.model | model, training=base.training | training)


def parameters_of(stage: Stage, fixed: Mapping[str, Any]) -> dict[str, Any] | None:
    r"""Returns the values that a trial must suggest to get a stage, if that is
    possible.

    Args:
        stage (Stage): The stage.
        fixed (dict): The names of settings that are not suggested.
    """
    settings, training = stage.model_settings, stage.fit_settings
    values: dict[str, Any] = {}
    for name, one in (_model_space(stage) | _training_space(stage)).items():
        if name not in fixed:
            has_it = hasattr(training, name)
            value = getattr(training if has_it else settings, name)
            values[name] = value[0] if name == "scorer" else value
            if values[name] not in one:
                return None
    if "optimizer" not in fixed and not stage.model.get("sparse"):
        values["optimizer"] = training.optimizer
    if "lr" not in fixed:
        if training.lr not in _RATES[training.optimizer]:
            return None
        values[f"{training.optimizer}_lr"] = training.lr
    return values


def _model_space(stage: Stage) -> Space:
    letters = used_by(ModelSettings)
    is_sparse = stage.model.get("sparse")
    return {
        name: one
        for name, one in _MODEL.items()
        if concerns(letters[name], stage.experts) and (not is_sparse or name in _SPARSE)
    }


def _training_space(stage: Stage) -> Space:
    return {} if stage.model.get("sparse") else dict(_TRAINING)
