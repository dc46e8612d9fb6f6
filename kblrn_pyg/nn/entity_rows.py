"""The source of the rows of entities in a step."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from kblrn_pyg.nn.rows import TakeRows
from kblrn_pyg.shard import Shard


class EntityRows:
    r"""The rows of entities that one scorer compares queries with, for one step.

    They are those of its table, those that were looked up for the whole step, or
    those of other processes.

    Args:
        scorer (Scorer): The scorer.
        shard (Shard, optional): The entities of this process.
            (default: :obj:`None`, all)
        own_entities (torch.Tensor, optional): The same as a tensor, by which all
            rows of this process are asked for. (default: :obj:`None`)
    """

    def __init__(
        self,
        scorer: Any,
        shard: Shard | None = None,
        own_entities: Tensor | None = None,
    ) -> None:
        self.scorer, self.shard, self._own_entities = scorer, shard, own_entities
        # The tables, if all of their rows get gradients.
        self._whole: list[Tensor] | None = None
        # Tensors of entities, and their rows.
        self._fetched: list[tuple[Tensor, Tensor]] = []

    @cached_property
    def encoded(self) -> Any:
        """What all queries of the step share."""
        return self.scorer.encode()

    def prepare(self, entities: Sequence[Tensor] | None) -> None:
        r"""Gets ready for what the step is going to look up.

        Args:
            entities (sequence, optional): The tensors of entities, :obj:`None` if
                all entities are scored.
        """
        if entities is None and self.scorer.is_plain:
            self._whole = [one.weight for one in self.scorer.embeddings]
        if entities and self.shard is None:
            # At once: each look-up has its own gradient, and adding up row-sparse
            # ones takes long.
            sizes = [index.numel() for index in entities]
            rows = self.scorer.table(self.encoded, torch.cat(list(entities)))
            self._fetched = list(zip(entities, rows.split(sizes)))

    def candidates(self, index: Tensor | None = None) -> Tensor:
        r"""Returns the rows of candidates, all of which this process has.

        Args:
            index (torch.Tensor, optional): The entities.
                (default: :obj:`None`, all)
        """
        if self.shard is not None and index is not None:
            index = None if self._is_all(index) else self.shard.local(index)
        if index is None and self._whole is not None:
            several = self._whole
            return several[0] if len(several) == 1 else torch.cat(several, dim=-1)
        fetched = (rows for entities, rows in self._fetched if entities is index)
        rows = next(fetched, None)
        return self.scorer.table(self.encoded, index) if rows is None else rows

    def tables(self, index: Tensor | None = None) -> list[Tensor]:
        r"""Returns tables that hold the rows of candidates side by side, without
        copying them where that is possible.

        Args:
            index (torch.Tensor, optional): The entities.
                (default: :obj:`None`, all)
        """
        if self._is_all(index) and self._whole is not None:
            return self._whole
        return [self.candidates(index)]

    def anywhere(self, index: Tensor) -> Tensor:
        r"""Returns the rows of entities, whichever process has them.

        Args:
            index (torch.Tensor): The entities.
        """
        if self.shard is None and self._whole is None:
            return self.candidates(index)
        local = index if self.shard is None else self.shard.local(index)
        if self._whole is None:
            rows = self.scorer.table(self.encoded, local)
        else:
            rows = self.embeddings(local)
        return rows if self.shard is None else self.shard.rows(rows, index)

    def embeddings(self, local: Tensor) -> Tensor:
        r"""Returns the embeddings of entities, side by side.

        Args:
            local (torch.Tensor): Places in the tables of this process.
        """
        if self._whole is None:
            return torch.cat([one(local) for one in self.scorer.embeddings], dim=-1)
        rows, *self._whole = TakeRows.apply(local, *self._whole)
        return rows

    def _is_all(self, index: Tensor | None) -> bool:
        return index is None or index is self._own_entities
