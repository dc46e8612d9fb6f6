"""What the rules of queries reach, kept up to a limit of memory."""

from collections.abc import Callable

import numpy as np

from kblrn_pyg.kernels.recall import Walks
from kblrn_pyg.rules.ruleset import Ids

# The number of queries that are walked at once, which bounds the memory needed.
_QUERIES_AT_ONCE = 1024


class WalkMemory:
    r"""Keeps what the rules of queries reach, up to a limit of memory.

    Training asks the same queries in every epoch, and looking up which bodies
    have a first step at all takes longer than adding up what they reach.

    Args:
        num_entities (int): The number of entities.
        max_bytes (int): The approximate limit of the memory of the walks.
    """

    def __init__(self, num_entities: int, max_bytes: int) -> None:
        self.num_entities, self.max_bytes = num_entities, max_bytes
        self._key, self._place = np.empty(0, np.int64), np.empty(0, np.int64)
        zero, none = np.zeros(1, np.int64), np.empty(0, np.int32)
        reached = none.astype(np.uint16 if num_entities <= 2**16 else np.int32)
        self.walks = Walks(zero, none, zero, reached)

    def __len__(self) -> int:
        return len(self._key)

    @property
    def num_bytes(self) -> int:
        """The memory of the walks."""
        return sum(int(array.nbytes) for array in self.walks)

    def fill(
        self,
        entity: Ids,
        rel: Ids,
        walk: Callable[[Ids, Ids], tuple[Ids, Ids, Ids]],
        step: Callable[[int], object] = lambda number: None,
    ) -> None:
        """Walks queries, those asked most often first, until memory is full.

        ``walk`` takes entities and relations and returns what
        :class:`QueryFeatures` holds; ``step`` is called with the number of
        queries after each batch.
        """
        key, counts = np.unique(rel * self.num_entities + entity, return_counts=True)
        key = key[np.argsort(-counts, kind="stable")]
        columns = [_Growing(array) for array in self.walks]
        _, rules, _, entities = columns
        for begin in range(0, len(key), _QUERIES_AT_ONCE):
            asked = key[begin : begin + _QUERIES_AT_ONCE]
            entity, rel = asked % self.num_entities, asked // self.num_entities
            ptr, candidate, rule = walk(entity, rel)
            query = np.repeat(np.arange(len(asked)), np.diff(ptr))
            # A run begins where the rule or the query changes.
            begins_run = np.ones(len(rule), bool)
            begins_run[1:] = (rule[1:] != rule[:-1]) | (query[1:] != query[:-1])
            run = np.flatnonzero(begins_run)
            run_ptr = rules.size + np.searchsorted(run, ptr[1:])
            run_end = entities.size + np.append(run, len(rule))[1:]
            new = list(zip(columns, (run_ptr, rule[run], run_end, candidate)))
            num_bytes = sum(column.bytes_with(values) for column, values in new)
            if num_bytes > self.max_bytes:
                break
            for column, values in new:
                column.append(values)
            step(len(asked))
        self.walks = Walks(*(column.finished() for column in columns))
        key = key[: len(self.walks.run_ptr) - 1]
        self._place = np.argsort(key)
        self._key = key[self._place]

    def find(self, entity: Ids, rel: Ids) -> Ids:
        """Returns the position of each query in the memory, -1 if it is not there."""
        if len(self) == 0:
            return np.full(len(entity), -1)
        key = rel * self.num_entities + entity
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return np.where(self._key[at] == key, self._place[at], -1)


class _Growing:
    """An array that grows in place: joining parts would need twice the memory."""

    def __init__(self, values: np.ndarray) -> None:
        self.size = len(values)
        self.values = values.copy()

    def bytes_with(self, values: np.ndarray) -> int:
        return (self.size + len(values)) * int(self.values.itemsize)

    def append(self, values: np.ndarray) -> None:
        size = self.size + len(values)
        if size > len(self.values):
            self.values.resize(size + size // 4, refcheck=False)
        self.values[self.size : size] = values
        self.size = size

    def finished(self) -> np.ndarray:
        self.values.resize(self.size, refcheck=False)
        return self.values
