"""A cache of what the rules of queries reach, with a memory limit."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.kernels.recall import (
    Scratch,
    Walks,
    count_walks,
    new_scratch,
    write_walks,
)
from kblrn_pyg.kernels.threads import run_all
from kblrn_pyg.kernels.walking import Bodies, Paths
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.rules.columns import Ids

# About the number of queries between two steps of a progress bar.
_QUERIES_AT_ONCE = 1024

# A query that needs more than this many times its share of the memory is not
# kept: the same room serves many others. It is not even counted to the end.
_MAX_SHARES = 16

# A query has a key and a place where its runs begin; a run, a rule and a walk; a
# walk, an end.
_QUERY_BYTES, _RUN_BYTES, _WALK_BYTES = 16, 8, 8


class _Counts(NamedTuple):
    """What each query has, and what of it no query before it has."""

    runs: NDArray[np.int32]
    reached: NDArray[np.int32]  # -1 if it is too much
    new_walks: NDArray[np.int32]
    new_reached: NDArray[np.int32]

    def select(self, index: np.ndarray) -> "_Counts":
        return _Counts(*(column[index] for column in self))


class WalkMemory:
    r"""Caches what the rules of queries reach, up to a memory limit.

    Training needs the same queries in every epoch, and finding the bodies that have
    a first step takes longer than adding up what they reach. What a body reaches
    from an entity is stored once, however many relations have a rule with it. Many
    bodies that lead to heads also lead to tails, so both sides share one cache.

    Args:
        paths (dict): The paths to walk, by the side of the query.
        max_bytes (int): The memory limit of the walks.
    """

    def __init__(self, paths: Mapping[str, Paths], max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._paths = paths
        self._num_entities = paths[SIDES[0]].adjacency.num_entities
        self._num_relations = len(paths[SIDES[0]].bodies.ptr) - 1
        self._key = np.empty(0, np.int64)
        zero = np.zeros(1, np.int64)
        self.walks = self._new_walks(zero, 0, 0)

    def __len__(self) -> int:
        return len(self._key)

    @property
    def num_bytes(self) -> int:
        """The memory of the walks, in bytes."""
        return sum(int(array.nbytes) for array in (self._key, *self.walks))

    def fill(
        self, asked: Mapping[str, tuple[Ids, Ids]], num_threads: int | None = None
    ) -> None:
        r"""Fills the cache with the most useful queries, up to the limit.

        The size of each query is counted first, and the queries that fit are stored
        afterwards. Frequent queries that need little memory come first.

        Args:
            asked (dict): The entities and the relations of queries for each side.
            num_threads (int, optional): The number of threads.
                (default: :obj:`None`, all cores)
        """
        keys = [self._keys(side, *queries) for side, queries in asked.items()]
        key, num_asked = np.unique(np.concatenate(keys), return_counts=True)
        # Each of the two arrays of ends begins with a zero.
        room = self.max_bytes - 2 * self.walks.ptr.itemsize
        limit = _MAX_SHARES * room // self.walks.reached.itemsize // max(len(key), 1)
        if limit <= 0:
            return
        # Shown only on a terminal, and only if it takes some time.
        with ProgressBar(
            total=2 * len(key),
            desc="walking",
            unit="query",
            delay=3,
            leave=False,
            disable=None,
        ) as bar:
            walking = _Walking(self._paths, min(limit, 2**30), num_threads)
            counts = walking.count(*self._queries(key), bar.update)
            fits = counts.reached >= 0
            key, num_asked, counts = key[fits], num_asked[fits], counts.select(fits)
            kept, counts = self._choose(key, num_asked, counts, room, walking)
            self._key = key[kept]
            run_ptr = _ends(counts.runs)
            walk, begin = _ends(counts.new_walks), _ends(counts.new_reached)
            self.walks = self._new_walks(run_ptr, int(walk[-1]), int(begin[-1]))
            places = run_ptr[:-1], walk[:-1], begin[:-1]
            walking.write(*self._queries(self._key), places, self.walks, bar.update)

    def _choose(
        self,
        key: Ids,
        num_asked: Ids,
        counts: _Counts,
        room: int,
        walking: "_Walking",
    ) -> tuple[Any, _Counts]:
        """Returns which queries there is room for, and their counts."""
        if self._bytes_of(counts) <= room:
            return slice(None), counts
        item = self.walks.reached.itemsize
        alone = _QUERY_BYTES + (_RUN_BYTES + _WALK_BYTES) * counts.runs.astype(np.int64)
        alone += item * counts.reached.astype(np.int64)
        order = np.argsort(alone / num_asked, kind="stable")
        total = np.cumsum(alone[order])
        while (size := self._bytes_of(counts)) > room:
            # How much the queries that stay share is known only when they are
            # counted. It is supposed to be as much as before, at first.
            most = min(int(total[-1]) * room // size, int(total[-1]) * 15 // 16)
            total = total[: np.searchsorted(total, most, side="right")]
            kept = np.sort(order[: len(total)])
            counts = walking.count(*self._queries(key[kept]))
        return kept, counts

    def _bytes_of(self, counts: _Counts) -> int:
        runs, _, walks, reached = (int(column.sum(dtype=np.int64)) for column in counts)
        size = _QUERY_BYTES * len(counts.runs) + _RUN_BYTES * runs
        return size + _WALK_BYTES * walks + int(self.walks.reached.itemsize) * reached

    def find(self, side: str, entity: Ids, rel: Ids) -> Ids:
        """Returns the position of each query in the memory, -1 if it is not there."""
        if len(self) == 0:
            return np.full(len(entity), -1)
        key = self._keys(side, entity, rel)
        at = np.minimum(np.searchsorted(self._key, key), len(self) - 1)
        return np.where(self._key[at] == key, at, -1)

    def _keys(self, side: str, entity: Ids, rel: Ids) -> Ids:
        """Numbers queries, those of one entity one after the other."""
        row = entity * len(SIDES) + SIDES.index(side)
        return row * self._num_relations + rel

    def _queries(self, key: Ids) -> tuple[Ids, Ids]:
        """Returns the entities, and the relations as :class:`_Walking` numbers them."""
        entity, rel = np.divmod(key, len(SIDES) * self._num_relations)
        return entity, rel

    def _new_walks(self, run_ptr: Ids, num_walks: int, num_reached: int) -> Walks:
        is_small = self._num_entities <= 2**16
        return Walks(
            run_ptr,
            np.empty(run_ptr[-1], np.uint32),
            np.empty(run_ptr[-1], np.uint32),
            np.zeros(num_walks + 1, np.int64),
            np.empty(num_reached, np.uint16 if is_small else np.uint32),
        )


class _Walking:
    """Walks queries, those of one entity together.

    The rules of the second side follow those of the first, and so do their
    relations.
    """

    def __init__(
        self, paths: Mapping[str, Paths], limit: int, num_threads: int | None
    ) -> None:
        adjacency = paths[SIDES[0]].adjacency
        self._paths = Paths(adjacency, _joined([paths[side].bodies for side in SIDES]))
        self._body, num_bodies = _number_bodies(self._paths.bodies)
        self._limit, self._num_threads = limit, num_threads
        self._new_scratch = partial(new_scratch, adjacency.num_entities, num_bodies)

    def count(
        self,
        entity: Ids,
        rel: Ids,
        step: Callable[[int], object] = lambda number: None,
    ) -> _Counts:
        """Counts what is reached, as far as it is within the limit."""
        counts = np.empty((len(_Counts._fields), len(entity)), np.int32)

        def count(part: slice, scratch: Scratch) -> None:
            asked = entity[part], rel[part]
            given = (self._paths, self._body, *asked, self._limit)
            count_walks(*given, counts[:, part], scratch)

        self._run(count, entity, step)
        return _Counts(*counts)

    def write(
        self,
        entity: Ids,
        rel: Ids,
        places: tuple[Ids, Ids, Ids],
        walks: Walks,
        step: Callable[[int], object],
    ) -> None:
        """Writes what is reached to where the runs and walks of queries begin."""

        def write(part: slice, scratch: Scratch) -> None:
            asked = entity[part], rel[part]
            some = tuple(place[part] for place in places)
            write_walks(self._paths, self._body, *asked, some, walks, scratch)

        self._run(write, entity, step)

    def _run(
        self,
        function: Callable[[slice, Scratch], None],
        entity: Ids,
        step: Callable[[int], object],
    ) -> None:
        begin = np.unique(np.searchsorted(entity, entity[::_QUERIES_AT_ONCE]))
        bounds = [*begin.tolist(), len(entity)]
        parts = [slice(*pair) for pair in zip(bounds, bounds[1:])]

        def work(part: slice, scratch: Scratch) -> int:
            function(part, scratch)
            return int(part.stop - part.start)

        for number in run_all(work, parts, self._new_scratch, self._num_threads):
            step(number)


def _joined(sides: list[Bodies]) -> Bodies:
    """Joins the bodies of both sides."""
    one, other = sides
    return Bodies(
        np.append(one.ptr, one.ptr[-1] + other.ptr[1:]),
        np.append(one.first, other.first),
        np.append(one.second, other.second),
        np.append(one.parallel, other.parallel),
        one.choices,
    )


def _number_bodies(bodies: Bodies) -> tuple[Ids, int]:
    """Numbers the different bodies; returns those of the rules, and how many."""
    steps = np.column_stack([bodies.first, bodies.second])
    # The two steps of a parallel body have no order.
    steps[bodies.parallel] = np.sort(steps[bodies.parallel])
    keys = np.column_stack([steps, bodies.parallel])
    different, body = np.unique(keys, axis=0, return_inverse=True)
    return body.ravel(), len(different)


def _ends(counts: np.ndarray) -> Ids:
    return np.append(0, np.cumsum(counts, dtype=np.int64))
