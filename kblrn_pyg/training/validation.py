"""Validation sets, each with its own early stopping and best weights."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.evaluation import kb_for
from kblrn_pyg.settings import check_types
from kblrn_pyg.training.checkpoint import Position, Weights
from kblrn_pyg.training.interface import Best, Trainable

Graph: TypeAlias = HeteroData | Data


@dataclass
class EarlyStopping:
    r"""Keeps track of the best validation and decides when to stop.

    Training stops after :obj:`patience + 1` consecutive validations without a new
    best. With a patience of zero this is the rule of the
    `"KBLRN" <https://arxiv.org/abs/1709.04676>`_ paper, which stops at the first
    validation that is not better than the one before.

    Args:
        patience (int, optional): The number of consecutive validations without a
            new best to tolerate. (default: :obj:`0`)

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
        check_types(EarlyStopping, state)
        vars(self).update(state, patience=self.patience)


@dataclass(eq=False)
class ValidationSet:
    """A split to validate on."""

    name: str  # what the log calls it
    data: HeteroData
    filter_with: Sequence[Graph]  # whose answers do not count as wrong, either
    stopping: EarlyStopping
    weights: Weights | None = None  # of the best validation

    @property
    def asked(self) -> tuple[Tensor, ...]:
        """The triples that are ranked."""
        triples = flat_triples(self.data, "edge_label_index")
        if triples[0].numel() == 0:
            raise ValueError(f"'{self.name}' must have at least one triple (got none)")
        return triples

    @property
    def best(self) -> Best | None:
        """The best validation, if there was one."""
        epoch, mrr = self.stopping.best_epoch, self.stopping.best_value
        if epoch is None or mrr is None or self.weights is None:
            return None
        return Best(epoch, mrr, self.stopping.stopped, self.weights)


def validation_sets(
    model: Trainable,
    val: Graph | Mapping[str, Graph] | None,
    filter_with: Sequence[Graph] | Mapping[str, Sequence[Graph]],
    patience: int,
) -> list[ValidationSet]:
    """Brings the validation sets of :meth:`fit` into one form."""
    if not isinstance(val, Mapping):
        val = {} if val is None else {"val": val}
    if not isinstance(filter_with, Mapping):
        filter_with = dict.fromkeys(val, filter_with)
    if unknown := [name for name in filter_with if name not in val]:
        raise ValueError(
            f"'filter_with' must have names of validation sets (got {unknown[0]!r})"
        )
    log_fields = Position(triples=1).log_line()
    if reserved := [name for name in val if name in log_fields]:
        raise ValueError(
            f"'val' must not use the names of other log fields (got {reserved[0]!r})"
        )
    return [
        ValidationSet(
            name,
            kb_for(model, data, name),
            tuple(filter_with.get(name, ())),
            EarlyStopping(patience),
        )
        for name, data in val.items()
    ]


def known_splits(model: Trainable, sets: Sequence[ValidationSet]) -> list[HeteroData]:
    """Returns all splits whose answers are known in validation, without
    duplicates."""
    splits = [one.data for one in sets]
    for one in sets:
        splits += [kb_for(model, split, "filter_with") for split in one.filter_with]
    return list({id(split): split for split in splits}.values())
