"""Mini-batches of triples, or of the queries that they answer."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from kblrn_pyg.data.ids import check_shape

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
# How many rows of a random order become Python numbers at once.
_AT_ONCE = 1 << 16


class _Rows(Dataset):
    """Returns a whole batch at once, instead of collating single rows."""

    def __init__(self, *columns: Tensor) -> None:
        _check_columns(*columns)
        self.columns = columns

    def __len__(self) -> int:
        return self.columns[0].numel()

    def __getitems__(self, index: list[int]) -> tuple[Tensor, ...]:
        rows = torch.tensor(index, dtype=torch.long)
        return tuple(column[rows] for column in self.columns)


def _check_columns(head_index: Tensor, rel_type: Tensor, tail_index: Tensor) -> None:
    """Refuses anything but three columns of the same length."""
    columns = {"head_index": head_index, "rel_type": rel_type, "tail_index": tail_index}
    for name, column in columns.items():
        if not isinstance(column, Tensor):
            raise ValueError(f"'{name}' must be a tensor (got {type(column).__name__})")
        if column.dtype not in _INTEGERS or column.layout != torch.strided:
            raise ValueError(f"'{name}' must hold integers (got {column.dtype})")
        if column.is_meta:
            raise ValueError(f"'{name}' must have values, which are not on 'meta'")
        check_shape(name, column, (head_index.numel(),))


def _as_it_is(batch: Any) -> Any:
    return batch


class TripleLoader(DataLoader):
    r"""A mini-batch loader of triples of all relations, like PyG's
    :class:`~torch_geometric.nn.kge.loader.KGTripletLoader`.

    Args:
        head_index (torch.Tensor): The head indices.
        rel_type (torch.Tensor): The relation types.
        tail_index (torch.Tensor): The tail indices.
        **kwargs (optional): Additional arguments of
            :class:`torch.utils.data.DataLoader`, such as :obj:`batch_size`,
            :obj:`shuffle`, :obj:`generator` or :obj:`num_workers`.
    """

    def __init__(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor, **kwargs: Any
    ) -> None:
        rows = _Rows(head_index, rel_type, tail_index)
        if kwargs.get("shuffle") and "sampler" not in kwargs:
            del kwargs["shuffle"]
            kwargs["sampler"] = _Shuffled(len(rows), kwargs.get("generator"))
        super().__init__(rows, collate_fn=_as_it_is, **kwargs)


class _Shuffled(Sampler):
    """Random order, as torch's own sampler draws it, which would hold a Python
    number for each of maybe millions of triples."""

    def __init__(self, size: int, generator: torch.Generator | None) -> None:
        self.size, self.generator = size, generator

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(self.size, generator=self.generator)
        for part in order.split(_AT_ONCE):
            yield from part.tolist()


class _Queries(Dataset):
    """Gives the triples that answer some of the distinct queries of one side."""

    def __init__(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> None:
        _check_columns(head_index, rel_type, tail_index)
        triples = torch.stack([head_index, rel_type, tail_index])
        self.sides = [_by_query(triples, column) for column in (0, 2)]
        self.sizes = [ptr.numel() - 1 for ptr, _ in self.sides]

    def __len__(self) -> int:
        return sum(self.sizes)

    def __getitems__(self, index: list[int]) -> tuple[Tensor, Tensor, Tensor, str]:
        query = torch.tensor(index, dtype=torch.long)
        side = int(query[0] >= self.sizes[0])
        query = query - side * self.sizes[0]
        ptr, triples = self.sides[side]
        counts = ptr[query + 1] - ptr[query]
        begin = (ptr[query] - (counts.cumsum(0) - counts)).repeat_interleave(counts)
        rows = begin + torch.arange(begin.numel(), device=begin.device)
        head_index, rel_type, tail_index = triples[:, rows]
        return head_index, rel_type, tail_index, ("tail", "head")[side]


def _by_query(triples: Tensor, column: int) -> tuple[Tensor, Tensor]:
    """Orders triples by their (entity, relation), and says where each begins."""
    entity, rel_type = triples[column].long(), triples[1].long()  # narrow ones overflow
    num_entities = int(entity.max()) + 1 if entity.numel() else 1
    key = rel_type * num_entities + entity
    order = torch.argsort(key, stable=True)
    _, counts = torch.unique_consecutive(key[order], return_counts=True)
    ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return ptr, triples[:, order]


class _OneSideBatches:
    """Batches of query numbers, each of one side only, in random order."""

    def __init__(
        self,
        sizes: list[int],
        batch_size: int,
        shuffle: bool,
        generator: torch.Generator | None,
    ) -> None:
        self.sizes, self.batch_size = sizes, batch_size
        self.shuffle, self.generator = shuffle, generator

    def __len__(self) -> int:
        return sum(-(-size // self.batch_size) for size in self.sizes)

    def __iter__(self) -> Any:
        batches, first = [], 0
        for size in self.sizes:
            if size:
                batches += (first + self._order(size)).split(self.batch_size)
            first += size
        for place in self._order(len(batches)).tolist():
            yield batches[place].tolist()

    def _order(self, size: int) -> Tensor:
        if self.shuffle:
            return torch.randperm(size, generator=self.generator)
        return torch.arange(size)


class QueryLoader(DataLoader):
    r"""A mini-batch loader of distinct queries with all of their answers.

    A batch is :obj:`(head_index, rel_type, tail_index, side)`: the triples that
    answer :obj:`batch_size` queries :obj:`(h, r, ?)`, if :obj:`side` is
    :obj:`"tail"`, or :obj:`(?, r, t)`, if it is :obj:`"head"`. Triples of one query
    are adjacent, so that its candidates are scored once.

    Args:
        head_index (torch.Tensor): The head indices.
        rel_type (torch.Tensor): The relation types.
        tail_index (torch.Tensor): The tail indices.
        batch_size (int, optional): The number of queries in a batch.
            (default: :obj:`512`)
        shuffle (bool, optional): Whether to shuffle queries and batches.
            (default: :obj:`True`)
        generator (torch.Generator, optional): The random number generator of the
            order. (default: :obj:`None`)
        **kwargs (optional): Additional arguments of
            :class:`torch.utils.data.DataLoader`.
    """

    def __init__(
        self,
        head_index: Tensor,
        rel_type: Tensor,
        tail_index: Tensor,
        batch_size: int = 512,
        shuffle: bool = True,
        generator: torch.Generator | None = None,
        **kwargs: Any,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"'batch_size' must be positive (got {batch_size})")
        queries = _Queries(head_index, rel_type, tail_index)
        batches = _OneSideBatches(queries.sizes, batch_size, shuffle, generator)
        super().__init__(queries, batch_sampler=batches, collate_fn=_as_it_is, **kwargs)
