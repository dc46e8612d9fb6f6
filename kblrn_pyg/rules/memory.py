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
        self.walks = self._columns().walks()

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
        r"""Walks queries, those asked most often first, until memory is full.

        Args:
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            walk (callable): Walks queries, given their entities and relations;
                see :class:`QueryFeatures` for what it returns.
            step (callable, optional): Called with the number of queries
                after each batch. (default: does nothing)
        """
        key, counts = np.unique(rel * self.num_entities + entity, return_counts=True)
        key = key[np.argsort(-counts, kind="stable")]
        columns = self._columns()
        for begin in range(0, len(key), _QUERIES_AT_ONCE):
            asked = key[begin : begin + _QUERIES_AT_ONCE]
            found = walk(asked % self.num_entities, asked // self.num_entities)
            if not columns.add(*found, self.max_bytes):
                break
            step(len(asked))
        self.walks = columns.walks()
        key = key[: len(self.walks.run_ptr) - 1]
        self._place = np.argsort(key)
        self._key = key[self._place]

    def find(self, entity: Ids, rel: Ids) -> Ids:
        r"""Returns the position of each query in the memory, -1 if it is not there.

        Args:
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
        """
        if len(self) == 0:
            return np.full(len(entity), -1)
        key = rel * self.num_entities + entity
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return np.where(self._key[at] == key, self._place[at], -1)

    def _columns(self) -> "_Columns":
        return _Columns(np.uint16 if self.num_entities <= 2**16 else np.int32)


class _Columns:
    """The columns of walks while they grow."""

    def __init__(self, entity_dtype: type) -> None:
        self.run_ptr, self.ptr = _Growing(np.int64), _Growing(np.int64)
        self.rule, self.reached = _Growing(np.int32), _Growing(entity_dtype)
        self.run_ptr.append(np.zeros(1))
        self.ptr.append(np.zeros(1))

    def add(self, ptr: Ids, candidate: Ids, rule: Ids, max_bytes: int) -> bool:
        """Adds queries unless that takes too much memory; returns whether it did."""
        query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        begins_run = np.ones(len(rule), bool)
        begins_run[1:] = (rule[1:] != rule[:-1]) | (query[1:] != query[:-1])
        run = np.flatnonzero(begins_run)
        new = (
            (self.run_ptr, self.rule.size + np.searchsorted(run, ptr[1:])),
            (self.ptr, self.reached.size + np.append(run, len(rule))[1:]),
            (self.rule, rule[run]),
            (self.reached, candidate),
        )
        if sum(column.bytes_with(values) for column, values in new) > max_bytes:
            return False
        for column, values in new:
            column.append(values)
        return True

    def walks(self) -> Walks:
        columns = self.run_ptr, self.rule, self.ptr, self.reached
        return Walks(*(column.finished() for column in columns))


class _Growing:
    """An array that grows in place: joining parts would need twice the memory."""

    def __init__(self, dtype: type) -> None:
        self.size = 0
        self.values: np.ndarray = np.empty(0, dtype)

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
