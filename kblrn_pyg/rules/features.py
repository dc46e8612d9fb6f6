"""The bodies that hold: for pairs, and for all candidates of a query."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data.ids import as_ids, check_distinct, check_ids, check_shape
from kblrn_pyg.data.queries import check_side
from kblrn_pyg.kernels.columns import Arrivals, Hits, add_to_columns, arrivals_at
from kblrn_pyg.kernels.holding import pair_rules
from kblrn_pyg.kernels.recall import Walks
from kblrn_pyg.kernels.scoring import add_paths
from kblrn_pyg.kernels.threads import (
    ScratchPool,
    default_threads,
    no_scratch,
    run_slices,
)
from kblrn_pyg.kernels.walking import Paths, Scratch, new_scratch, walk_queries
from kblrn_pyg.rules.columns import Ids
from kblrn_pyg.rules.found import PairFeatures, QueryFeatures, join_found
from kblrn_pyg.rules.memory import WalkMemory
from kblrn_pyg.rules.paths import RulePaths
from kblrn_pyg.rules.ruleset import RuleSet

Result = TypeVar("Result")


class PathFeatures(RulePaths):
    r"""Evaluates the bodies of rules on the known triples of a knowledge base.

    Bodies hold according to the :obj:`semantics` of the rules. Nothing of size
    :obj:`num_entities * num_entities` is ever built: bodies are followed from the
    entities of the queries.

    Args:
        data (HeteroData or Data): The knowledge base, or what :meth:`as_kb`
            makes one of.
        rules (RuleSet): The rules.
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
        max_bytes (int, optional): The limit of the memory that
            :meth:`remember` takes. (default: :obj:`1_500_000_000`)
    """

    def __init__(
        self,
        data: HeteroData | Data,
        rules: RuleSet,
        num_threads: int | None = None,
        max_bytes: int = 1_500_000_000,
    ) -> None:
        super().__init__(data, rules)
        self._num_threads = num_threads
        self.max_bytes = max_bytes
        head, _, tail = self._facts
        self._has_loop = np.zeros(self.num_entities, bool)
        self._has_loop[head[head == tail]] = True
        self._memory = WalkMemory(self._paths, 0)
        self._pool = ScratchPool(partial(new_scratch, self.num_entities))
        self._remembers = False
        self._last_arrivals: dict[str, Arrivals] = {}

    @property
    def num_threads(self) -> int:
        """The current number of threads."""
        return self._num_threads or default_threads()

    def pairs(
        self,
        head: ArrayLike,
        rel: ArrayLike,
        tail: ArrayLike,
        leave_own: bool = False,
    ) -> PairFeatures:
        r"""Returns the rules of :obj:`rel` whose bodies hold for each pair.

        Args:
            head (array): The head of each pair.
            rel (array): The relation whose rules are evaluated.
            tail (array): The tail of each pair.
            leave_own (bool, optional): If set to :obj:`True`, the fact
                :obj:`(head, rel, tail)` itself does not count for its own pair.
                Training needs this, because no fact may be its own evidence.
                (default: :obj:`False`)
        """
        h, r, t = as_ids(head, "heads"), as_ids(rel, "relations"), as_ids(tail, "tails")
        self.check_ids(r, heads=h, tails=t)

        place = np.full(len(r), -1)
        if not leave_own:
            place = self._memory.find("tail", h, r)
        return self._pair_rules((h, r, t), place, leave_own, only_own=False)

    def tails(self, head: ArrayLike, rel: ArrayLike) -> QueryFeatures:
        r"""Answers the queries :obj:`(head, rel, ?)` by paths.

        Args:
            head (array): The head of each query.
            rel (array): The relation of each query.
        """
        return self._walk("tail", head, rel)

    def heads(self, rel: ArrayLike, tail: ArrayLike) -> QueryFeatures:
        r"""Answers the queries :obj:`(?, rel, tail)` by paths.

        Args:
            rel (array): The relation of each query.
            tail (array): The tail of each query.
        """
        return self._walk("head", tail, rel)

    def reached(self, side: str, entity: Ids, rel: Ids) -> tuple[Ids, Ids, Ids]:
        r"""Returns the row of each query, each entity that it reaches, and the rule.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
        """
        found = self._walk(side, entity, rel)
        rows = np.repeat(np.arange(len(entity)), np.diff(found.ptr))
        return rows, found.candidate, found.rule

    def reached_columns(
        self, side: str, entity: Ids, rel: Ids, columns: Ids
    ) -> tuple[Ids, Ids, Ids]:
        r"""Does the same as :meth:`reached` for selected entities only.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            columns (numpy.ndarray): The entities, without duplicates.
        """
        weight, scores = np.zeros(len(self.rules)), np.zeros((len(rel), len(columns)))
        asked = side, entity, rel, columns
        parts = []
        for row, hits in self.add_to_columns(*asked, weight, scores):
            for first, last, rule, begin, end in zip(*hits[:3], hits.ptr, hits.ptr[1:]):
                rows, column = row[first:last], hits.column[begin:end]
                size = len(rows) * len(column)
                repeated = np.repeat(rows, len(column)), np.tile(column, len(rows))
                parts.append((*repeated, np.full(size, rule)))
        if not parts:
            return (np.empty(0, np.int64),) * 3
        row, column, rule = map(np.concatenate, zip(*parts))
        return row, column, rule

    def add_scores(
        self,
        side: str,
        entity: Ids,
        rel: Ids,
        weight: np.ndarray,
        scores: np.ndarray,
    ) -> None:
        r"""Adds the weights of all bodies that hold to rows of scores, in place.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            weight (numpy.ndarray): The weight of each rule.
            scores (numpy.ndarray): A row of scores for each query.
        """
        self._add_paths(side, entity, rel, scores, weight)

    def weight_gradient(
        self, side: str, entity: Ids, rel: Ids, grad: np.ndarray
    ) -> np.ndarray:
        r"""Returns the gradient of the weights, given that of rows of scores.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            grad (numpy.ndarray): A row of gradients for each query.
        """
        # Adding up in the order of the queries makes the sum reproducible.
        return np.sum(self._add_paths(side, entity, rel, grad), axis=0)

    def add_to_columns(
        self,
        side: str,
        entity: Ids,
        rel: Ids,
        columns: Ids,
        weight: np.ndarray,
        scores: np.ndarray,
    ) -> list[tuple[Ids, Hits]]:
        r"""Does the same as :meth:`add_scores` for selected entities only.

        The time depends on these entities, and not on how many other entities the
        rules reach.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            columns (numpy.ndarray): The entity of each column of scores, none of
                them twice.
            weight (numpy.ndarray): The weight of each rule.
            scores (numpy.ndarray): A row of scores for each query.

        Returns:
            The rows of some queries, and which columns their rules reach, for
            all queries.
        """
        self.check_ids(rel, entities=entity)
        check_shape("scores", scores, (len(rel), len(columns)))
        check_shape("weight", weight, (len(self.rules),))
        paths, arrivals = self.to_columns(side, columns)

        # Equal queries side by side: their paths are walked once.
        order = np.argsort(rel * self.num_entities + entity, kind="stable")

        def add(part: slice, _: None) -> tuple[Ids, Hits]:
            row = order[part]
            asked = entity[row], rel[row], row
            return row, add_to_columns(paths, arrivals, *asked, weight, scores)

        return run_slices(add, len(entity), no_scratch, self.num_threads)

    def to_columns(self, side: str, columns: Ids) -> tuple[Paths, Arrivals]:
        """Returns the arguments of kernels for walking queries of a side to
        selected entities.

        The last steps to columns are computed once for the same ones.
        """
        check_side(side)
        check_ids({"entities": (columns, self.num_entities)})
        last = self._last_arrivals.get(side)
        if last is None or not np.array_equal(last.entity, columns):
            check_distinct(columns, "entities")
            last = arrivals_at(*self._paths[side], columns.copy())
            self._last_arrivals[side] = last
        return self._paths[side], last

    def remember(self) -> None:
        """Walks the queries that the facts answer, and caches the results.

        The first loss calls this, because every epoch needs these queries again.
        Those that reach too much for :obj:`max_bytes`, for example through hubs,
        are not cached.
        """
        if self._remembers:
            return
        head, rel, tail = self._facts
        memory = WalkMemory(self._paths, self.max_bytes)
        memory.fill({"head": (tail, rel), "tail": (head, rel)}, self.num_threads)
        self._memory = memory
        self._remembers = True

    def walk_arguments(
        self, side: str, entity: Ids, rel: Ids
    ) -> tuple[Paths, Walks, Ids]:
        """Returns the arguments of kernels for walking queries of a side.

        The last two are the cached walks, and the position of each query in them,
        -1 if it must be walked.
        """
        check_side(side)
        self.check_ids(rel, entities=entity)
        place = self._memory.find(side, entity, rel)
        return self._paths[side], self._memory.walks, place

    def own_evidence(self, head: Ids, rel: Ids, tail: Ids) -> PairFeatures:
        r"""Returns the rules that hold for each fact only because of that fact.

        Args:
            head (numpy.ndarray): The head of each fact.
            rel (numpy.ndarray): The relation of each fact.
            tail (numpy.ndarray): The tail of each fact.
        """
        self.check_ids(rel, heads=head, tails=tail)
        # A path of one or two steps returns to its own fact only by a self-loop.
        loops = np.flatnonzero(self._has_loop[head] | self._has_loop[tail])
        facts = head[loops], rel[loops], tail[loops]
        place = np.full(len(loops), -1)
        found = self._pair_rules(facts, place, leave_own=False, only_own=True)
        counts = np.zeros(len(head) + 1, np.int64)
        counts[loops + 1] = np.diff(found.ptr)
        return PairFeatures(np.cumsum(counts), found.rule)

    def _pair_rules(
        self, facts: tuple[Ids, Ids, Ids], place: Ids, leave_own: bool, only_own: bool
    ) -> PairFeatures:
        paths, walks = self._paths["tail"], self._memory.walks

        def find(part: slice, _: None) -> PairFeatures:
            some = tuple(column[part] for column in facts)
            kept = paths, walks, place[part]
            return PairFeatures(*pair_rules(kept, some, leave_own, only_own))

        return join_found(run_slices(find, len(facts[0]), no_scratch, self.num_threads))

    def _walk(self, side: str, source: ArrayLike, rel: ArrayLike) -> QueryFeatures:
        check_side(side)
        sources, rels = as_ids(source, "entities"), as_ids(rel, "relations")
        self.check_ids(rels, entities=sources)
        paths = self._paths[side]

        def walk(part: slice, scratch: Scratch) -> QueryFeatures:
            found = walk_queries(paths, sources[part], rels[part], scratch)
            return QueryFeatures(*found)

        return join_found(self._run(walk, len(sources)))

    def _add_paths(
        self,
        side: str,
        entity: Ids,
        rel: Ids,
        scores: np.ndarray,
        weight: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Adds weights to scores; without weights, returns gradients of them."""
        *known, place = self.walk_arguments(side, entity, rel)
        check_shape("scores", scores, (len(rel), self.num_entities))
        if weight is not None:
            check_shape("weight", weight, (len(self.rules),))

        def add(part: slice, scratch: Scratch) -> np.ndarray:
            kept = (*known, place[part])
            values = np.zeros(len(self.rules)) if weight is None else weight
            given = (kept, entity[part], rel[part], values, scores[part])
            add_paths(*given, weight is None, scratch)
            return values

        return self._run(add, len(entity))

    def _run(
        self, function: Callable[[slice, Scratch], Result], size: int
    ) -> list[Result]:
        """Calls a function for slices of queries, in threads."""
        return self._pool.run_slices(function, size, self.num_threads)
