"""The evidence of each kind for a triple, which is added up over kinds."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kblrn_pyg.data.ids import check_id, check_ids
from kblrn_pyg.data.queries import check_side
from kblrn_pyg.kernels.adjacency import first_not_below
from kblrn_pyg.kernels.entity_features import find_feature, kinds_of
from kblrn_pyg.kernels.evidence_kinds import (
    LEFT,
    OWN,
    WHOLE,
    KindEntries,
    Kinds,
    Scratch,
    add_kinds,
    add_up,
    find_kinds,
    find_pairs,
    kinds_gradient,
    new_scratch,
    pair_kinds,
)
from kblrn_pyg.kernels.threads import ScratchPool, cut, no_scratch, run_all
from kblrn_pyg.rules.evidence import EvidenceFeatures
from kblrn_pyg.rules.found import FoundRule
from kblrn_pyg.rules.ruleset import Ids

_WHAT = {"whole": WHOLE, "left": LEFT, "own": OWN}
# What facts are to themselves has at most this many entries if it is kept: 600 MB.
_MAX_KEPT = 50_000_000
# The same of a batch of queries: 300 MB.
_MAX_KEPT_OF_QUERIES = 40_000_000
# What is found for more queries at once would take too much memory.
_QUERIES_AT_ONCE = 64


class TripleKinds(NamedTuple):
    r"""The most confident rule of each kind, for each triple.

    Args:
        ptr (numpy.ndarray): Where the entries of each triple begin.
        pair (numpy.ndarray): The pair of a predicted code and a kind of each entry.
        strength (numpy.ndarray): The strength of the most confident rule.
        feature (numpy.ndarray): The feature that is its body.
    """

    ptr: Ids
    pair: Ids
    strength: np.ndarray
    feature: Ids

    @classmethod
    def of(cls, parts: "Sequence[TripleKinds]") -> "TripleKinds":
        r"""Joins the rules of some triples and of those that follow.

        Args:
            parts (sequence): The rules of consecutive triples.
        """
        number = np.concatenate([np.diff(one.ptr) for one in parts])
        columns = (np.concatenate(column) for column in list(zip(*parts))[1:])
        return cls(np.append(0, np.cumsum(number)), *columns)

    def take(self, place: Ids) -> "TripleKinds":
        r"""Returns the rules of some of the triples.

        Args:
            place (numpy.ndarray): The position of each, -1 for one without rules.
        """
        first = self.ptr[place]
        number = np.where(place >= 0, self.ptr[place + 1] - first, 0)
        ptr = np.append(0, np.cumsum(number))
        entry = np.arange(ptr[-1]) + np.repeat(first - ptr[:-1], number)
        columns = (column[entry] for column in self[1:])
        return TripleKinds(ptr, *columns)


class KindFeatures:
    r"""Finds the most confident rule with constants of each kind.

    The *kind* of a rule is its body without the particular entity:
    :math:`\textrm{award}(h, \textrm{Oscar})` and
    :math:`\textrm{award}(h, \textrm{Bafta})` are of one kind,
    :math:`\textrm{award}(h, \cdot)` is of another. Rules of the same kind repeat
    each other, while those of different kinds do not.

    There is a weight for each *pair* of a predicted code (twice the relation, plus
    one if heads are predicted) and a kind that occurs in any rule. :obj:`len` is
    the number of pairs.

    Args:
        features (EvidenceFeatures): The rules.
    """

    def __init__(self, features: EvidenceFeatures) -> None:
        self.features = features
        found, rules = features.evidence.features, features.evidence.rules
        kind_of = kinds_of(found)
        code, kind = find_pairs(found, rules, kind_of)
        order = np.lexsort((kind, code))
        number = np.bincount(code, minlength=len(found.code_ptr) - 1)
        self.kinds = Kinds(kind_of, np.append(0, np.cumsum(number)), kind[order])
        self._pool = ScratchPool(
            partial(new_scratch, features.num_entities, len(kind_of))
        )
        self._own: TripleKinds | None = None  # of each fact
        self._is_too_much = False

    def __len__(self) -> int:
        return len(self.kinds.kind)

    def relations(self) -> Ids:
        """Returns the relation that each pair predicts."""
        return np.repeat(np.arange(self._num_codes), np.diff(self.kinds.ptr)) // 2

    def keys(self) -> Ids:
        """Returns a number for each pair, in ascending order, that means the same for
        all knowledge bases with the same relations."""
        code = np.repeat(np.arange(self._num_codes), np.diff(self.kinds.ptr))
        # Not by the number of codes: bins of numbers are further kinds.
        return code * (1 << 32) + self.kinds.kind

    def pairs(self, head: Ids, rel: Ids, tail: Ids, what: str = "whole") -> TripleKinds:
        r"""Finds the most confident rule of each kind that supports each triple.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
            what (str, optional): With :obj:`"left"`, a triple that is a fact does
                not count as an example of a rule; :obj:`"own"` returns the
                difference that this makes. (default: :obj:`"whole"`)
        """
        if what not in _WHAT:
            names = ", ".join(_WHAT)
            raise ValueError(f"'what' must be one of {names} (got {what!r})")
        num_entities, num_relations = self.features.num_entities, self._num_codes // 2
        sizes = {"head": num_entities, "rel": num_relations, "tail": num_entities}
        check_ids({k: (v, sizes[k]) for k, v in zip(sizes, (head, rel, tail))})
        if what == "own" and self._own is not None:
            return self._own.take(self.features.facts.find(head, rel, tail))

        def find(part: slice, scratch: Scratch) -> TripleKinds:
            facts = head[part], rel[part], tail[part]
            given = self.features.evidence, self.kinds, facts, _WHAT[what]
            return TripleKinds(*pair_kinds(*given, scratch))

        return TripleKinds.of(self._pool.run_slices(find, len(head)))

    def remember(self) -> None:
        """Caches the evidence of facts for themselves, which every epoch needs
        again, unless that takes too much memory."""
        if self._own is not None or self._is_too_much:
            return
        found: list[TripleKinds] = []
        size = 0
        for facts in self.features.facts.batches("kinds of evidence"):
            found.append(self.pairs(*facts, what="own"))
            size += len(found[-1].pair)
            if size > _MAX_KEPT:
                self._is_too_much = True
                return
        if found:
            self._own = TripleKinds.of(found)

    def asked(
        self,
        queries: tuple[str, Ids, Ids],
        columns: Ids | None = None,
        candidates: Ids | None = None,
    ) -> "QueryKinds":
        r"""Returns the evidence of queries, before weighting.

        Args:
            queries (tuple): The side that the query asks for, and the known entity
                and the relation of each query.
            columns (numpy.ndarray, optional): The entities that columns of scores
                are for, without duplicates. (default: :obj:`None`, all)
            candidates (numpy.ndarray, optional): A row of entities for each query,
                if these differ. (default: :obj:`None`)
        """
        side, entity, rel = queries
        check_side(side)
        num_entities = self.features.num_entities
        sizes = num_entities, self._num_codes // 2
        check_ids({"entity": (entity, sizes[0]), "rel": (rel, sizes[1])})
        if candidates is not None and candidates.shape[-1] == 0:
            columns = np.empty(0, np.int64)  # for kernels, no row asks for all columns
        some = None if columns is None else columns.copy()
        column_of = partial(self.features.columns.column_of, some)
        column_of()  # checks them
        if candidates is None:
            candidates = np.empty((len(entity), 0), np.int64)
        check_ids({"candidates": (candidates, num_entities)}, num_dims=2)
        given = self.features.evidence, self.kinds, int(side == "head")
        return QueryKinds(given, (entity, rel), (column_of, candidates), self._pool)

    def rules(
        self, head: int, rel: int, tail: int
    ) -> list[tuple[str, int, float, FoundRule]]:
        r"""Returns the most confident rule of each kind that supports a triple.

        Args:
            head (int): The head.
            rel (int): The relation.
            tail (int): The tail.

        Returns:
            Whose feature it is, :obj:`"head"` or :obj:`"tail"`, the pair of the
            weight, the strength, and the rule.
        """
        rel = check_id(rel, "relation", self._num_codes // 2)
        head, tail = (
            check_id(i, "entity", self.features.num_entities) for i in (head, tail)
        )
        found = self.pairs(np.array([head]), np.array([rel]), np.array([tail]))
        rules = []
        for pair, strength, feature in zip(found.pair, found.strength, found.feature):
            is_head = pair < self.kinds.ptr[2 * rel + 1]
            end, other = ("head", tail) if is_head else ("tail", head)
            rule = self._rule(int(feature), 2 * rel + (not is_head), other)
            rules.append((end, int(pair), float(strength), rule))
        return rules

    def _rule(self, feature: int, code: int, entity: int) -> FoundRule:
        evidence = self.features.evidence
        rules = evidence.rules
        target = find_feature(evidence.features, code, entity)
        low, high = rules.ptr[feature], rules.ptr[feature + 1]
        rule = first_not_below(rules.target, low, high, target)
        return self.features.found_rule(feature, rules.support[rule], rules.body[rule])

    @property
    def _num_codes(self) -> int:
        return len(self.kinds.ptr) - 1


class QueryKinds:
    r"""The evidence of each kind for queries.

    Results are kept for the gradient, as far as memory allows.

    Args:
        given (tuple): The evidence, its kinds and the side.
        asked (tuple): The known entity and the relation of each query.
        columns (tuple): A function that returns the column of each entity, and the
            candidates of each query.
        pool (ScratchPool): Working memory.
    """

    def __init__(
        self,
        given: tuple,
        asked: tuple[Ids, Ids],
        columns: tuple[Callable[[], Ids], Ids],
        pool: Any,
    ) -> None:
        self._given, self._asked = given, asked
        self._column_of, self._candidates = columns
        self._pool = pool
        self._parts = cut(len(asked[0]), max(1, len(asked[0]) // _QUERIES_AT_ONCE))
        self._kept: dict[int, KindEntries] = {}
        self._size = 0

    def add_to(self, scores: np.ndarray, weight: np.ndarray, keep: bool) -> None:
        r"""Adds the weighted evidence to scores.

        Args:
            scores (numpy.ndarray): A row for each query; of candidates, all zero.
            weight (numpy.ndarray): The weight of each pair.
            keep (bool): Whether the gradient is needed later.
        """

        column_of = self._column_of()

        def add(i: int) -> None:
            part = self._parts[i]
            entries = self._find(part, column_of)
            add_kinds(entries, weight, scores[part])
            if keep and self._size < _MAX_KEPT_OF_QUERIES:
                self._size += len(entries.column)
                self._kept[i] = entries

        self._for_all_parts(add)
        if (twin := self._twins()) is not None:
            scores[:] = np.take_along_axis(scores, twin, axis=1)

    def gradient(self, by_scores: np.ndarray, size: int) -> np.ndarray:
        r"""Returns the gradient of weights.

        Args:
            by_scores (numpy.ndarray): That of scores.
            size (int): The number of weights.
        """
        if (twin := self._twins()) is not None:
            own, by_scores = by_scores, np.zeros_like(by_scores)
            rows = np.arange(len(own))[:, None]
            np.add.at(by_scores, (rows, twin), own)

        column_of = self._column_of()  # others may have been asked for since

        def find(i: int) -> tuple[Ids, np.ndarray]:
            part = self._parts[i]
            kept = self._kept.get(i)
            entries = self._find(part, column_of) if kept is None else kept
            return entries.pair, kinds_gradient(entries, by_scores[part])

        total = np.zeros(size)
        # Adding up in order keeps sums reproducible, whichever thread is first.
        for pair, value in self._for_all_parts(find):
            add_up(pair, value, total)
        return total

    def _for_all_parts(self, function: Callable[[int], Any]) -> list[Any]:
        def work(i: int, _: None) -> tuple[int, Any]:
            return i, function(i)

        found = run_all(work, range(len(self._parts)), no_scratch)
        return [result for _, result in sorted(found, key=lambda item: item[0])]

    def _find(self, part: slice, column_of: Ids) -> KindEntries:
        entity, rel = self._asked
        asked, columns = (entity[part], rel[part]), (column_of, self._candidates[part])
        with self._pool.borrowed() as scratch:
            return find_kinds(self._given, asked, columns, scratch)

    def _twins(self) -> Ids | None:
        """Returns the last column of each candidate, as one may be there twice."""
        candidates = self._candidates
        if candidates.shape[1] == 0:
            return None
        order = np.argsort(candidates, axis=1, kind="stable")
        ranked = np.take_along_axis(candidates, order, axis=1)
        is_last = np.append(ranked[:, 1:], np.full((len(ranked), 1), -1), 1) != ranked
        place = np.where(is_last, np.arange(ranked.shape[1]), ranked.shape[1])
        place = np.minimum.accumulate(place[:, ::-1], axis=1)[:, ::-1]
        twin = np.empty_like(order)
        last = np.take_along_axis(order, place, axis=1)
        np.put_along_axis(twin, order, last, axis=1)
        return twin
