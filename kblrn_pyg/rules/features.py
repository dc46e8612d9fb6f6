"""Which bodies hold: for pairs, for all candidates of a query, and why."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from kblrn_pyg.data import DataError, as_kb, flat_triples
from kblrn_pyg.data.ids import check_ids
from kblrn_pyg.kernels.adjacency import Adjacency, build_adjacency
from kblrn_pyg.kernels.mining import Choices
from kblrn_pyg.kernels.recall import Walks
from kblrn_pyg.kernels.scoring import add_paths, path_gradient
from kblrn_pyg.kernels.threads import default_threads, run_all
from kblrn_pyg.kernels.walking import (
    Bodies,
    count_reached,
    fill_reached,
    holds,
    middles,
    own_rules,
    pair_rules,
)
from kblrn_pyg.rules.measure import reverse_steps
from kblrn_pyg.rules.memory import WalkMemory
from kblrn_pyg.rules.ruleset import Ids, RuleSet


class PairFeatures(NamedTuple):
    r"""The rules that hold for each pair of a batch.

    Args:
        ptr (numpy.ndarray): Where the rules of each pair begin.
        rule (numpy.ndarray): The rules, by their place in the rule set.
    """

    ptr: Ids
    rule: Ids


class QueryFeatures(NamedTuple):
    r"""The candidates that each query of a batch reaches, and by which rules.

    Args:
        ptr (numpy.ndarray): Where the entries of each query begin.
        candidate (numpy.ndarray): The entity of each entry.
        rule (numpy.ndarray): A rule that holds for it; entries of a query are
            ordered by rule.
    """

    ptr: Ids
    candidate: Ids
    rule: Ids


class PathFeatures:
    r"""Evaluates the bodies of rules on the known triples of a knowledge base.

    Nothing of size :obj:`num_entities * num_entities` is ever built: bodies
    are walked from the entities that are asked about.

    Args:
        data (HeteroData or Data): The knowledge base, or what :meth:`as_kb`
            makes one of.
        rules (RuleSet): The rules.
        equal_ends (bool, optional): See :meth:`mine_rules`.
            (default: :obj:`True`)
        equal_middle (bool, optional): See :meth:`mine_rules`.
            (default: :obj:`True`)
        self_loops (bool, optional): See :meth:`mine_rules`.
            (default: :obj:`True`)
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
        max_bytes (int, optional): The most memory, about, that
            :meth:`remember` may take. (default: :obj:`1_500_000_000`)
    """

    def __init__(
        self,
        data: HeteroData | Data,
        rules: RuleSet,
        equal_ends: bool = True,
        equal_middle: bool = True,
        self_loops: bool = True,
        num_threads: int | None = None,
        max_bytes: int = 1_500_000_000,
    ) -> None:
        data = as_kb(data)
        relations = [relation for _, relation, _ in data.edge_types]
        if relations != rules.relations:
            raise DataError("the rules are over other relations than the data")
        if rules.max_hops > 2:
            raise DataError(f"bodies may have 2 steps, not {rules.max_hops}")
        self.rules = rules
        self.num_entities = int(data["entity"].num_nodes)
        self._num_threads = num_threads
        head, rel, tail = (index.numpy() for index in flat_triples(data))
        self.adjacency = build_adjacency(
            head, rel, tail, self.num_entities, len(relations), self_loops
        )
        self._facts = head, rel, tail
        self.max_bytes = max_bytes
        # Of the queries for tails, and of those for heads.
        self._memories: tuple[WalkMemory, WalkMemory] | None = None
        self._no_memories = (WalkMemory(self.num_entities, 0),) * 2
        self._has_loop = np.zeros(self.num_entities, bool)
        self._has_loop[head[head == tail]] = True
        self.choices = Choices(equal_ends, equal_middle, head_in_body=True)
        self._from_head = _bodies(rules, rules.steps)
        self._from_tail = _bodies(rules, reverse_steps(rules.steps, rules.parallel))

    @property
    def num_threads(self) -> int:
        """The number of threads, now."""
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
            rel (array): The relation whose rules are looked at.
            tail (array): The tail of each pair.
            leave_own (bool, optional): If set to :obj:`True`, the fact
                :obj:`(head, rel, tail)` itself does not count for its own
                pair. Training needs this: no fact may be its own evidence.
                (default: :obj:`False`)
        """
        h, r, t = (np.ascontiguousarray(ids, np.int64) for ids in (head, rel, tail))
        self._check_ids(r, heads=h, tails=t)

        def count(part: slice, _: None) -> tuple[slice, PairFeatures]:
            ptr = np.zeros(part.stop - part.start + 1, np.int64)
            given = (self._from_head, h[part], r[part], t[part], self.choices)
            pair_rules(self.adjacency, *given, leave_own, ptr, np.empty(0, np.int64))
            np.cumsum(ptr, out=ptr)
            rule = np.empty(ptr[-1], np.int64)
            pair_rules(self.adjacency, *given, leave_own, ptr, rule)
            return part, PairFeatures(ptr, rule)

        parts = [
            features
            for _, features in sorted(
                run_all(count, self._parts(len(h)), lambda: None, self.num_threads),
                key=lambda item: item[0].start,
            )
        ]
        return PairFeatures(_join_ptr(parts), _join([part.rule for part in parts]))

    def tails(self, head: ArrayLike, rel: ArrayLike) -> QueryFeatures:
        r"""Answers the queries :obj:`(head, rel, ?)` by paths.

        Args:
            head (array): The head of each query.
            rel (array): The relation of each query.
        """
        return self._walk(self._from_head, head, rel)

    def heads(self, rel: ArrayLike, tail: ArrayLike) -> QueryFeatures:
        r"""Answers the queries :obj:`(?, rel, tail)` by paths.

        Args:
            rel (array): The relation of each query.
            tail (array): The tail of each query.
        """
        return self._walk(self._from_tail, tail, rel)

    def add_scores(
        self,
        from_tail: bool,
        entity: Ids,
        rel: Ids,
        weight: np.ndarray,
        scores: np.ndarray,
    ) -> None:
        r"""Adds the weights of all bodies that hold to rows of scores, in place.

        Args:
            from_tail (bool): Whether the known entities are tails.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            weight (numpy.ndarray): The weight of each rule.
            scores (numpy.ndarray): A row of scores for each query.
        """
        self._check_ids(rel, entities=entity)

        def add(part: slice, scratch: tuple[Ids, Ids]) -> None:
            stamp, out = scratch
            stamp.fill(-1)
            asked = entity[part], rel[part]
            given = (*self.walk_arguments(from_tail, *asked), *asked)
            add_paths(*given, weight, scores[part], stamp, out)

        parts = self._parts(len(entity))
        for _ in run_all(add, parts, self._new_scratch, self.num_threads):
            pass

    def weight_gradient(
        self, from_tail: bool, entity: Ids, rel: Ids, grad: np.ndarray
    ) -> np.ndarray:
        r"""Returns the gradient of the weights, given that of rows of scores.

        Args:
            from_tail (bool): Whether the known entities are tails.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            grad (numpy.ndarray): A row of gradients for each query.
        """
        # Threads finish in any order; adding up in order keeps sums reproducible.
        parts = self._parts(len(entity))
        found = np.zeros((len(parts), len(self.rules)))

        def add(i: int, scratch: tuple[Ids, Ids]) -> None:
            stamp, out = scratch
            stamp.fill(-1)
            part = parts[i]
            asked = entity[part], rel[part]
            given = (*self.walk_arguments(from_tail, *asked), *asked)
            path_gradient(*given, grad[part], found[i], stamp, out)

        numbers = range(len(parts))
        for _ in run_all(add, numbers, self._new_scratch, self.num_threads):
            pass
        return found.sum(axis=0)

    def remember(self) -> None:
        """Walks the queries that the facts answer, and keeps what is reached.

        The first loss calls this: every epoch asks these queries again.
        """
        if self._memories is not None:
            return
        head, rel, tail = self._facts
        on_head, on_tail = (
            WalkMemory(self.num_entities, self.max_bytes // 2) for _ in range(2)
        )
        # No bar if there is no terminal, or if it takes no time.
        with tqdm(
            desc="Walking", unit="query", delay=3, leave=False, disable=None
        ) as bar:
            on_head.fill(head, rel, self.tails, bar.update)
            on_tail.fill(tail, rel, lambda known, r: self.heads(r, known), bar.update)
        self._memories = on_head, on_tail

    def walk_arguments(
        self, from_tail: bool, entity: Ids, rel: Ids
    ) -> tuple[Adjacency, Bodies, Choices, Walks, Ids]:
        """Returns what kernels need to walk from heads, or from tails.

        The last two are the walks that are kept, and which of them is that of
        each query, -1 where there is none.
        """
        bodies = self._from_tail if from_tail else self._from_head
        memory = (self._memories or self._no_memories)[from_tail]
        place = memory.find(entity, rel)
        return self.adjacency, bodies, self.choices, memory.walks, place

    def own_evidence(self, head: Ids, rel: Ids, tail: Ids) -> PairFeatures:
        r"""Returns the rules that hold for each fact by that fact alone.

        Args:
            head (numpy.ndarray): The head of each fact.
            rel (numpy.ndarray): The relation of each fact.
            tail (numpy.ndarray): The tail of each fact.
        """
        self._check_ids(rel, heads=head, tails=tail)
        ptr, none = np.zeros(len(head) + 1, np.int64), np.empty(0, np.int64)
        # A path of one or two steps returns to its own fact only by a self-loop.
        loops = self._has_loop[head] | self._has_loop[tail]
        if len(self.rules) == 0 or not loops.any():
            return PairFeatures(ptr, none)
        known = self.adjacency, self._from_head, self.choices
        given = (*known, head, rel, tail, loops)
        own_rules(*given, ptr, none)
        np.cumsum(ptr, out=ptr)
        rule = np.empty(ptr[-1], np.int64)
        own_rules(*given, ptr, rule)
        return PairFeatures(ptr, rule)

    def middles(self, rule: int, head: int, tail: int, limit: int | None = None) -> Ids:
        r"""Returns the entities in the middle of a two-hop body that holds.

        Args:
            rule (int): The rule, by its place in the rule set.
            head (int): The head.
            tail (int): The tail.
            limit (int, optional): The largest number of them.
                (default: :obj:`None`)
        """
        first, second = self._from_head.first[rule], self._from_head.second[rule]
        is_path = second >= 0 and not self._from_head.parallel[rule]
        if not is_path or not self.holds(rule, head, tail):
            return np.empty(0, np.int64)
        limit = self.num_entities if limit is None else limit
        out = np.empty(min(limit, self.num_entities), np.int64)
        own = (-1, -1, -1)
        count = middles(
            self.adjacency, first, second, head, tail, self.choices, own, limit, out
        )
        return out[:count]

    def holds(self, rule: int, head: int, tail: int) -> bool:
        r"""Tells whether the body of a rule holds for a pair.

        Args:
            rule (int): The rule, by its place in the rule set.
            head (int): The head.
            tail (int): The tail.
        """
        bodies = self._from_head
        return bool(
            holds(
                self.adjacency,
                bodies.first[rule],
                bodies.second[rule],
                bodies.parallel[rule],
                head,
                tail,
                self.choices,
                (-1, -1, -1),
                np.empty(1, np.int64),
            )
        )

    def _walk(self, bodies: Bodies, source: ArrayLike, rel: ArrayLike) -> QueryFeatures:
        sources, rels = (np.ascontiguousarray(ids, np.int64) for ids in (source, rel))
        self._check_ids(rels, entities=sources)

        def walk(part: slice, scratch: tuple[Ids, Ids]) -> tuple[slice, QueryFeatures]:
            stamp, out = scratch
            given = (self.adjacency, bodies, sources[part], rels[part], self.choices)
            stamp.fill(-1)
            ptr = np.zeros(part.stop - part.start + 1, np.int64)
            np.cumsum(count_reached(*given, stamp, out), out=ptr[1:])
            candidate, rule = np.empty(ptr[-1], np.int64), np.empty(ptr[-1], np.int64)
            stamp.fill(-1)
            fill_reached(*given, ptr, candidate, rule, stamp)
            return part, QueryFeatures(ptr, candidate, rule)

        parts = [
            features
            for _, features in sorted(
                run_all(
                    walk, self._parts(len(sources)), self._new_scratch, self.num_threads
                ),
                key=lambda item: item[0].start,
            )
        ]
        return QueryFeatures(
            _join_ptr(parts),
            _join([part.candidate for part in parts]),
            _join([part.rule for part in parts]),
        )

    def _check_ids(self, rel: Ids, **entities: Ids) -> None:
        kinds = {kind: (ids, self.num_entities) for kind, ids in entities.items()}
        check_ids({"relations": (rel, len(self.rules.relations)), **kinds})

    def _new_scratch(self) -> tuple[Ids, Ids]:
        size = self.num_entities
        return np.empty(size, np.int64), np.empty(size, np.int64)

    def _parts(self, size: int) -> list[slice]:
        """Cuts a batch into parts, more than threads, so that all end together."""
        num_parts = min(size, 4 * self.num_threads) if self.num_threads > 1 else 1
        bounds = np.linspace(0, size, max(num_parts, 1) + 1).astype(int).tolist()
        return [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:])]


def _bodies(rules: RuleSet, steps: Ids) -> Bodies:
    second = steps[:, 1] if rules.max_hops > 1 else np.full(len(rules), -1)
    return Bodies(
        rules.ptr,
        np.ascontiguousarray(steps[:, 0]),
        np.ascontiguousarray(second),
        rules.parallel,
    )


def _join(arrays: list[Ids]) -> Ids:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _join_ptr(parts: list[PairFeatures] | list[QueryFeatures]) -> Ids:
    counts = np.concatenate([np.diff(part.ptr) for part in parts])
    return np.concatenate([[0], np.cumsum(counts)])
