"""What the rules of queries reach, kept up to a limit of memory."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kblrn_pyg.kernels.recall import Walks, count_walks, write_walks
from kblrn_pyg.kernels.walking import Paths, Scratch
from kblrn_pyg.rules.ruleset import Ids

# The number of queries between two steps of a progress bar.
_QUERIES_AT_ONCE = 16384

# A query that needs more than this many times its share of the memory is not
# kept: the same room serves many others. It is not even counted to the end.
_MAX_SHARES = 16

# A query has a key and a place where its runs begin; a run, a rule and an end.
_QUERY_BYTES, _RUN_BYTES = 16, 12


class WalkMemory:
    r"""Keeps what the rules of queries reach, up to a limit of memory.

    Training asks the same queries in every epoch, and looking up which bodies
    have a first step at all takes longer than adding up what they reach.

    Args:
        paths (Paths): What is walked.
        max_bytes (int): The limit of the memory of the walks.
    """

    def __init__(self, paths: Paths, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._paths = paths
        self._num_entities = paths.adjacency.num_entities
        self._key = np.empty(0, np.int64)
        zero = np.zeros(1, np.int64)
        self.walks = self._new_walks(zero, 0)

    def __len__(self) -> int:
        return len(self._key)

    @property
    def num_bytes(self) -> int:
        """The memory of the walks."""
        return sum(int(array.nbytes) for array in (self._key, *self.walks))

    def fill(
        self,
        entity: Ids,
        rel: Ids,
        run: Callable[..., list[Any]],
        step: Callable[[int], object] = lambda number: None,
    ) -> None:
        """Keeps the queries that are worth their memory, until it is full.

        What a query reaches is counted first, and written when it is known which
        queries fit. Those asked often that need little memory come first. ``run``
        calls a function for slices of queries, with working memory, and ``step``
        is called with the number of queries after each batch of them.
        """
        key, num_asked = np.unique(
            rel * self._num_entities + entity, return_counts=True
        )
        item = self.walks.reached.itemsize
        # Each of the two arrays of ends begins with a zero.
        room = self.max_bytes - 2 * self.walks.ptr.itemsize
        limit = min(_MAX_SHARES * room // item // max(len(key), 1), 2**30)
        if limit <= 0:
            return
        batches = np.split(key, range(_QUERIES_AT_ONCE, len(key), _QUERIES_AT_ONCE))
        counts = [self._count(batch, limit, run, step) for batch in batches]
        num_runs, num_reached = np.concatenate(counts, axis=1)
        num_bytes = _QUERY_BYTES + _RUN_BYTES * num_runs + item * num_reached
        order = np.flatnonzero(num_reached >= 0)
        order = order[np.argsort(num_bytes[order] / num_asked[order], kind="stable")]
        kept = np.sort(order[np.cumsum(num_bytes[order]) <= room])
        self._key = key[kept]
        self._write(num_runs[kept], num_reached[kept], run)

    def _count(
        self,
        key: Ids,
        limit: int,
        run: Callable[..., list[Any]],
        step: Callable[[int], object],
    ) -> Ids:
        """Counts the runs of each query and what they reach, -1 if too much."""

        def count(part: slice, scratch: Scratch) -> tuple[Ids, Ids]:
            return count_walks(self._paths, *self._queries(key[part]), limit, scratch)

        found = np.concatenate(run(count, len(key)), axis=1, dtype=np.int64)
        step(len(key))
        return found

    def _write(
        self, num_runs: Ids, num_reached: Ids, run: Callable[..., list[Any]]
    ) -> None:
        run_ptr, begin = _ends(num_runs), _ends(num_reached)
        self.walks = self._new_walks(run_ptr, int(begin[-1]))

        def write(part: slice, scratch: Scratch) -> None:
            asked = self._queries(self._key[part])
            places = run_ptr[part], begin[part]
            write_walks(self._paths, *asked, *places, self.walks, scratch)

        run(write, len(num_runs))

    def find(self, entity: Ids, rel: Ids) -> Ids:
        """Returns the position of each query in the memory, -1 if it is not there."""
        if len(self) == 0:
            return np.full(len(entity), -1)
        key = rel * self._num_entities + entity
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return np.where(self._key[at] == key, at, -1)

    def _queries(self, key: Ids) -> tuple[Ids, Ids]:
        rel, entity = np.divmod(key, self._num_entities)
        return entity, rel

    def _new_walks(self, run_ptr: Ids, num_reached: int) -> Walks:
        is_small = self._num_entities <= 2**16
        return Walks(
            run_ptr,
            np.empty(run_ptr[-1], np.int32),
            np.zeros(run_ptr[-1] + 1, np.int64),
            np.empty(num_reached, np.uint16 if is_small else np.uint32),
        )


def _ends(counts: Ids) -> Ids:
    return np.append(0, np.cumsum(counts, dtype=np.int64))
