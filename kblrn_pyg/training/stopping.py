"""When to stop learning."""

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass
class EarlyStopping:
    r"""Remembers the best validation and decides when to stop.

    Training stops after :obj:`patience + 1` validations in a row without a new
    best. With a patience of zero this is the rule of the `"KBLRN"
    <https://arxiv.org/abs/1709.04676>`_ paper, which stops at the first
    validation that is not better than the one before.

    Args:
        patience (int, optional): The number of validations in a row that may
            bring no new best. (default: :obj:`0`)

    Example:
        >>> stopping = EarlyStopping(patience=0)
        >>> [stopping.update(epoch, mrr) for epoch, mrr in [(5, 0.2), (10, 0.3)]]
        [True, True]
        >>> stopping.update(15, 0.25), stopping.stopped, stopping.best_epoch
        (False, True, 10)
    """

    patience: int = 0
    best_value: float | None = None
    best_epoch: int | None = None
    num_without_best: int = 0

    def __post_init__(self) -> None:
        if self.patience < 0:
            raise ValueError(f"'patience' must not be negative (got {self.patience})")

    @property
    def stopped(self) -> bool:
        """Whether training should stop."""
        return self.num_without_best > self.patience

    def update(self, epoch: int, value: float, counts: bool = True) -> bool:
        r"""Takes a validation and returns whether it is the best so far.

        Args:
            epoch (int): The epoch after which it was measured, from 1.
            value (float): Its result, the larger the better.
            counts (bool, optional): If set to :obj:`False`, a validation
                without a new best does not count. (default: :obj:`True`)
        """
        if math.isnan(value):
            raise ValueError("'value' must be a number (got nan)")
        if self.best_value is None or value > self.best_value:
            self.best_value, self.best_epoch = float(value), epoch
            self.num_without_best = 0
            return True
        self.num_without_best += counts
        return False

    def state_dict(self) -> dict[str, Any]:
        """Returns the state to save."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        r"""Restores what :meth:`state_dict` returned.

        Args:
            state (dict): The state; the patience stays as it is.
        """
        for name in ("best_value", "best_epoch", "num_without_best"):
            setattr(self, name, state[name])
