"""The interfaces of :meth:`fit`: its model, its callbacks and its result."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import Tensor

from kblrn_pyg.evaluation import ScoringModel
from kblrn_pyg.training.checkpoint import Weights
from kblrn_pyg.training.run import Run


class Trainable(ScoringModel, Protocol):
    r"""The interface of models for :meth:`fit`.

    A model must only use the global random number generators of torch, NumPy or
    Python; otherwise its training cannot be resumed bit for bit.
    """

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings of the model, plain values by name."""

    def loss(self, *args: Any, **kwargs: Any) -> Tensor:
        """Takes a batch of the loader and returns its mean loss."""

    def loader(self, *args: Any, **kwargs: Any) -> Any:
        """Creates a :class:`~torch.utils.data.DataLoader` of triples."""

    def feature_parameters(self) -> list[Any]:
        """The parameters that use :obj:`feature_lr`."""

    def fingerprint(self) -> str:
        """A digest that distinguishes models with incompatible weights."""

    def state_dict(self) -> dict[str, Any]:
        """The weights."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Loads weights."""


@dataclass(frozen=True)
class Progress:
    r"""The argument of the callbacks of :meth:`fit`.

    Args:
        model (KBLRN): The model, in evaluation mode.
        epoch (int): The epoch, from 1.
        line (dict): The line of the log. Entries that a callback adds to it are
            logged and saved, too.
        run (Run, optional): The folder of the run.
    """

    model: Trainable
    epoch: int
    line: dict[str, Any]
    run: Run | None


Callback = Callable[[Progress], object]


@dataclass(frozen=True)
class Best:
    r"""The best validation on one validation set.

    Args:
        epoch (int): Its epoch.
        mrr (float): Its mean reciprocal rank.
        stopped_early (bool): Whether early stopping ended training on this set
            after it.
        weights (dict): The weights of the model.
    """

    epoch: int
    mrr: float
    stopped_early: bool
    weights: Weights = field(compare=False, repr=False)


@dataclass(frozen=True)
class FitResult:
    r"""The result of a training run.

    Args:
        best (dict): The best validation on each validation set, by name; empty
            without validation. The model has the weights of the first one.
        epochs_done (int): The number of epochs.
        history (list): The lines of the log.
        stopped_early (bool): Whether early stopping ended the training.
    """

    best: dict[str, Best]
    epochs_done: int
    history: list[dict[str, Any]]
    stopped_early: bool

    @property
    def best_epoch(self) -> int | None:
        """The epoch of the best validation on the first validation set."""
        return next((best.epoch for best in self.best.values()), None)

    @property
    def best_mrr(self) -> float | None:
        """The mean reciprocal rank of the best validation on the first set."""
        return next((best.mrr for best in self.best.values()), None)
