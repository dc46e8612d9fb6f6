"""Validation sets, each with early stopping and best weights of its own."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.evaluation import kb_for
from kblrn_pyg.training.checkpoint import Weights
from kblrn_pyg.training.stopping import EarlyStopping
from kblrn_pyg.training.trainable import Trainable

Graph: TypeAlias = HeteroData | Data
#: The fields of a log line; no validation set may be called the same.
LOG_FIELDS = ("epoch", "loss", "seconds", "triples_per_second")


@dataclass(frozen=True)
class Best:
    r"""The best validation on one validation set.

    Args:
        epoch (int): Its epoch.
        mrr (float): Its mean reciprocal rank.
        stopped_early (bool): Whether the training was stopped after it, as far
            as this set is concerned.
        weights (dict): The weights of the model.
    """

    epoch: int
    mrr: float
    stopped_early: bool
    weights: Weights = field(compare=False, repr=False)


@dataclass(eq=False)
class ValidationSet:
    r"""A split to validate on.

    Args:
        name (str): What the log calls it.
        data (HeteroData): The split.
        filter_with (sequence): Further splits whose answers do not count as
            wrong.
        stopping (EarlyStopping): Decides when to stop.
        weights (dict, optional): The weights of the best validation.
            (default: :obj:`None`)
    """

    name: str
    data: HeteroData
    filter_with: Sequence[Graph]
    stopping: EarlyStopping
    weights: Weights | None = None

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
    r"""Brings what :meth:`fit` validates on into one form.

    Args:
        model (Trainable): The model.
        val (HeteroData or Data or dict, optional): The split, or splits by
            name.
        filter_with (sequence or dict): The splits to filter with, for all
            validation sets or by the name of each.
        patience (int): See :class:`EarlyStopping`.
    """
    if val is None:
        val = {}
    elif not isinstance(val, Mapping):
        val = {"val": val}
    if not isinstance(filter_with, Mapping):
        filter_with = dict.fromkeys(val, filter_with)
    if unknown := [name for name in filter_with if name not in val]:
        raise ValueError(
            f"'filter_with' must have names of validation sets (got {unknown[0]!r})"
        )
    if reserved := [name for name in val if name in LOG_FIELDS]:
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


def known_splits(model: Trainable, sets: Iterable[ValidationSet]) -> list[HeteroData]:
    r"""Returns all splits that validation knows the answers of, each once.

    Args:
        model (Trainable): The model.
        sets (iterable): The validation sets.
    """
    splits = {id(one.data): one.data for one in sets}
    for split in (split for one in sets for split in one.filter_with):
        kb = kb_for(model, split, "filter_with")
        splits[id(kb)] = kb
    return list(splits.values())
