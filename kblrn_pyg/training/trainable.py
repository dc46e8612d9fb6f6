"""What can be trained."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch import Tensor

from kblrn_pyg.evaluation import ScoringModel


class Trainable(ScoringModel, Protocol):
    r"""What :meth:`fit` needs of a model.

    It must draw from the global random number generators of torch, NumPy or
    Python only, or else its training cannot be continued bit for bit.
    """

    @property
    def loss(self) -> Callable[..., Tensor]:
        """Takes a batch of the loader and returns its mean loss."""

    @property
    def loader(self) -> Callable[..., Any]:
        """Makes a :class:`~torch.utils.data.DataLoader` of triples."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The settings of the model, plain values by name."""

    def feature_parameters(self) -> list[Any]:
        """The parameters that :obj:`feature_lr` is for."""

    def fingerprint(self) -> str:
        """Tells apart models whose weights do not fit each other."""

    def state_dict(self) -> dict[str, Any]:
        """The weights."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Takes weights."""
