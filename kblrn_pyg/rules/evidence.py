"""The best evidence for a triple: rules with constants, and paths by confidence."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import Vocabulary, as_kb, flat_triples
from kblrn_pyg.data.ids import (
    as_ids,
    check_id,
    check_ids,
    check_shape,
)
from kblrn_pyg.data.queries import check_side
from kblrn_pyg.kernels.evidence import (
    NUM_WEIGHTS,
    Choices,
    candidate_evidence,
    new_scratch,
    query_evidence,
)
from kblrn_pyg.kernels.evidence_columns import column_evidence
from kblrn_pyg.kernels.popularity import usual_candidates
from kblrn_pyg.kernels.threads import (
    ScratchPool,
    no_scratch,
    run_slices,
)
from kblrn_pyg.kernels.triple_evidence import (
    best_rule,
    own_evidence,
    pair_evidence,
    path_strength,
)
from kblrn_pyg.rules.constant_counts import count_given, examples
from kblrn_pyg.rules.entity_columns import EntityColumns
from kblrn_pyg.rules.entity_features import entity_features, find_intervals
from kblrn_pyg.rules.fact_index import FactIndex
from kblrn_pyg.rules.features import PathFeatures
from kblrn_pyg.rules.found import FoundRule, QueryEvidence
from kblrn_pyg.rules.ruleset import Ids, RuleSet
from kblrn_pyg.rules.settings import MAX_CONSTANT_RULES, MAX_DEGREE, check_counting
from kblrn_pyg.rules.strengths import believe, count_with_support

# How many more entries than those of the last queries there is room for at first.
_SPARE, _LEAST_ROOM = 1.5, 1024
# What more facts are to themselves takes too much memory to be kept.
_MAX_FACTS = 20_000_000
# Finds the evidence of some queries.
Finder: TypeAlias = Callable[[slice], QueryEvidence]


class EvidenceFeatures:
    r"""Finds the most confident rules that support triples.

    A rule with constants states what else entities that share a fact have in
    common: "of 14 who won this award, 12 have this nationality". All rules with the
    minimum support are counted on the known triples of a knowledge base, or given
    ones (:obj:`rules.constants`), whatever their measures were. A rule whose body
    is a path has its PCA confidence, shrunk in the same way:

    .. math::
        \textrm{confidence} = \frac{\textrm{support}}{\textrm{body} + \beta}

    Args:
        data (HeteroData or Data): The knowledge base.
        rules (RuleSet): The rules with paths, with their PCA confidences; if it has
            rules with constants, only these are used. Their supports and bodies are
            counted again.
        min_support (int, optional): The minimum support of rules with constants.
            (default: :obj:`2`)
        shrinkage (float, optional): The constant :math:`\beta`.
            (default: :obj:`5.0`)
        floor (float, optional): The confidence below which differences count
            little. (default: :obj:`0.03`)
        max_degree (int, optional): Entities with more features than this do not
            count as examples of rules: they have too many pairs of features.
            (default: :obj:`10_000`)
        max_rules (int, optional): The maximum number of rules with constants; the
            least support is raised until there are no more.
            (default: :obj:`100_000_000`)
        bins (int, optional): The maximum number of bins of an attribute, if bodies
            may be about numbers, too; see
            :meth:`~kblrn_pyg.data.quantile_intervals`. Rules with constants that are
            given have their own intervals. (default: :obj:`0`, none)
    """

    def __init__(
        self,
        data: HeteroData | Data,
        rules: RuleSet,
        min_support: int = 2,
        shrinkage: float = 5.0,
        floor: float = 0.03,
        max_degree: int = MAX_DEGREE,
        max_rules: int = MAX_CONSTANT_RULES,
        bins: int = 0,
    ) -> None:
        if not rules.is_measured:
            raise ValueError(
                "'rules' must have supports and PCA confidences: mine them, or "
                "measure those of a file"
            )
        if bins and rules.constants is not None:
            raise ValueError(
                f"'bins' must be 0 where rules with constants are given (got {bins})"
            )
        check_counting(min_support, shrinkage, floor, max_degree, max_rules)
        self.paths = PathFeatures(as_kb(data), rules)
        self.num_entities = self.paths.num_entities
        kb = as_kb(data)
        self.intervals = find_intervals(kb, bins, rules.constants)
        features = entity_features(kb, self.paths.all_facts, self.intervals)
        counted = examples(features, max_degree)
        if rules.constants is None:
            min_support, mined = count_with_support(
                features, counted, min_support, max_rules
            )
        else:
            names = Vocabulary.of(kb)
            relations, entities = names.relations, names.entities
            rules.constants.check_names(relations.identifiers, entities.identifiers)
            mined = count_given(features, counted, rules.constants, min_support)
        choices = Choices(min_support, float(shrinkage), float(floor))
        self.evidence = believe(features, counted, mined, rules, choices)
        self._pool = ScratchPool(partial(new_scratch, self.num_entities))
        num_features = len(features.code)
        self._marks = ScratchPool(partial(np.zeros, num_features, np.bool_))
        self._triples = tuple(index.numpy() for index in flat_triples(kb))
        self._own: np.ndarray | None = None  # of each fact
        self._entries_a_query = 0.0  # of the last ones
        # Those of the last call; others replace them, and never change them, as
        # other threads and ways back may still use them.
        self.columns = EntityColumns(features, self.num_entities)

    def __len__(self) -> int:
        """Returns the number of rules with constants."""
        return len(self.evidence.rules.target)

    def pairs(
        self, head: Ids, rel: Ids, tail: Ids, leave_own: bool = False
    ) -> np.ndarray:
        r"""Returns six numbers for each triple.

        They are the strength,
        :math:`\log (1 + \textrm{confidence} / \textrm{floor})`, of the most
        confident rule for the head, and of that for the tail; the same if the most
        confident path is not stronger, or else that of the path; and how frequent
        the tail and the head are.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
            leave_own (bool, optional): If set to :obj:`True`, a triple that is a
                fact does not count as an example of a rule: support and body are
                one less. (default: :obj:`False`)
        """
        kinds = {"heads": head, "relations": rel, "tails": tail}
        head, rel, tail = (as_ids(ids, kind) for kind, ids in kinds.items())
        found = self.paths.pairs(head, rel, tail, leave_own)  # checks the ids

        def find(part: slice) -> np.ndarray:
            facts = head[part], rel[part], tail[part]
            ptr = found.ptr[part.start : part.stop + 1]
            return pair_evidence(self.evidence, facts, (ptr, found.rule), leave_own)

        nothing = np.zeros((0, NUM_WEIGHTS), np.float32)
        return np.concatenate([nothing, *_in_slices(find, len(head))])

    def own(self, head: Ids, rel: Ids, tail: Ids) -> np.ndarray:
        r"""Returns the contribution to each of the six numbers of a triple that is
        due to the triple being a fact, and so an example of its own rules.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
        """
        kinds = {"heads": head, "relations": rel, "tails": tail}
        head, rel, tail = (as_ids(ids, kind) for kind, ids in kinds.items())
        if self._own is None:
            return self._find_own(head, rel, tail)
        self.paths.check_ids(rel, heads=head, tails=tail)
        at = self.facts.find(head, rel, tail)
        return np.where((at >= 0)[:, None], self._own[at], np.float32(0))

    def _find_own(self, head: Ids, rel: Ids, tail: Ids) -> np.ndarray:
        all_paths = self.paths.pairs(head, rel, tail)  # checks the ids
        others = self.paths.pairs(head, rel, tail, leave_own=True)

        def find(part: slice) -> np.ndarray:
            facts = head[part], rel[part], tail[part]
            rows = slice(part.start, part.stop + 1)
            whole, left = ((one.ptr[rows], one.rule) for one in (all_paths, others))
            return own_evidence(self.evidence, facts, whole, left)

        nothing = np.zeros((0, NUM_WEIGHTS), np.float32)
        return np.concatenate([nothing, *_in_slices(find, len(head))])

    def remember(self, walks: bool = True) -> None:
        r"""Caches what every training epoch needs again: the evidence of facts for
        themselves, and the walks of queries.

        Args:
            walks (bool, optional): Whether walks are needed, which is not the case
                for walks to selected entities only. (default: :obj:`True`)
        """
        if walks:
            self.paths.remember()
        if self._own is not None or len(self._triples[0]) > _MAX_FACTS:
            return
        parts = [self.own(*facts) for facts in self.facts.batches("evidence")]
        if parts:
            self._own = np.concatenate(parts)

    @cached_property
    def facts(self) -> FactIndex:
        """The facts of the knowledge base, without duplicates."""
        return FactIndex(self._triples, self.num_entities)

    def queries(
        self,
        side: str,
        entity: Ids,
        rel: Ids,
        columns: Ids | None = None,
        then: Callable[[slice, QueryEvidence], None] = lambda part, evidence: None,
    ) -> list[tuple[slice, QueryEvidence]]:
        r"""Finds the entities with evidence, for each query.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            columns (numpy.ndarray, optional): The entities to consider, none of
                them twice. (default: :obj:`None`, all)
            then (callable, optional): A function to call with the evidence of some
                queries as soon as it is found, while it is in the cache.
                (default: nothing)

        Returns:
            The evidence of some queries, for all queries.
        """
        given = side, entity, rel
        find = (
            self._finder(*given)
            if columns is None
            else self._column_finder(*given, columns)
        )

        def work(part: slice) -> tuple[slice, QueryEvidence]:
            found = find(part)
            then(part, found)
            return part, found

        return _in_slices(work, len(entity))

    def _finder(self, side: str, entity: Ids, rel: Ids) -> Finder:
        """Returns the function that finds evidence for all entities."""
        kept = self.paths.walk_arguments(side, entity, rel)  # checks the ids

        def find(part: slice) -> QueryEvidence:
            asked = entity[part], rel[part]
            room = _LEAST_ROOM + int(_SPARE * self._entries_a_query * len(asked[0]))
            given = self.evidence, _some(kept, part), _number(side), asked, room
            with self._pool.borrowed() as scratch:
                found = QueryEvidence(*query_evidence(*given, scratch))
            self._entries_a_query = len(found.column) / max(1, len(asked[0]))
            return found

        return find

    def _column_finder(self, side: str, entity: Ids, rel: Ids, columns: Ids) -> Finder:
        """Returns the function that finds evidence for some entities."""
        self.paths.check_ids(rel, entities=entity)
        reach = self.paths.to_columns(side, columns)
        wanted = self.columns.listed(columns)

        def find(part: slice) -> QueryEvidence:
            asked = entity[part], rel[part]
            given = self.evidence, reach, _number(side), asked, wanted
            with self._marks.borrowed() as mark:
                return QueryEvidence(*column_evidence(*given, mark))

        return find

    def candidates(
        self, side: str, entity: Ids, rel: Ids, candidates: Ids
    ) -> np.ndarray:
        r"""Returns three numbers for each candidate of each query.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            candidates (numpy.ndarray): A row of entities for each query.
        """
        kept = self.paths.walk_arguments(side, entity, rel)
        self._check_candidates(rel, candidates)

        def find(part: slice) -> np.ndarray:
            asked = entity[part], rel[part]
            given = self.evidence, _some(kept, part), _number(side), asked
            with self._pool.borrowed() as scratch:
                return candidate_evidence(*given, candidates[part], scratch)

        found = _in_slices(find, len(entity))
        return np.concatenate(found or [np.zeros((*candidates.shape, 3), "f")])

    def usual(self, side: str, entity: Ids, rel: Ids, candidates: Ids) -> np.ndarray:
        r"""Returns how frequent the tail and the head of each candidate's triple are.

        Args:
            side (str): The side that the query asks for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            candidates (numpy.ndarray): A row of entities for each query.
        """
        self.paths.check_ids(rel, entities=entity)
        self._check_candidates(rel, candidates)
        return usual_candidates(self.evidence, _number(side), (entity, rel), candidates)

    def _check_candidates(self, rel: Ids, candidates: Ids) -> None:
        check_ids({"candidates": (candidates, self.num_entities)}, num_dims=2)
        check_shape("candidates", candidates, (len(rel), candidates.shape[1]))

    def best_rule(self, side: str, head: int, rel: int, tail: int) -> FoundRule | None:
        r"""Returns the most confident rule with constants that supports a triple.

        Args:
            side (str): The entity whose features it uses: :obj:`"head"` or
                :obj:`"tail"`.
            head (int): The head.
            rel (int): The relation.
            tail (int): The tail.
        """
        check_side(side)
        rel = check_id(rel, "relation", len(self.paths.rules.relations))
        head, tail = (check_id(i, "entity", self.num_entities) for i in (head, tail))
        known, other = (head, tail) if side == "head" else (tail, head)
        code = 2 * rel + (side == "tail")
        feature, support, body, _ = best_rule(self.evidence, code, known, other, False)
        return None if feature < 0 else self.found_rule(feature, support, body)

    def found_rule(self, feature: int, support: int, body: int) -> FoundRule:
        r"""Describes a rule with constants.

        Args:
            feature (int): The feature that is its body.
            support (int): Its support.
            body (int): The size of its body.
        """
        features = self.evidence.features
        step = int(features.code[feature]), int(features.entity[feature])
        confidence = support / (body + self.evidence.choices.shrinkage)
        return FoundRule(*step, int(support), int(body), confidence)

    def best_path(self, head: int, rel: int, tail: int) -> int | None:
        r"""Returns the most confident path rule that holds for a triple, by its
        position.

        Args:
            head (int): The head.
            rel (int): The relation.
            tail (int): The tail.
        """
        rules = self.paths.pairs([head], [rel], [tail]).rule
        strength = [path_strength(self.evidence, rule, False) for rule in rules]
        return int(rules[np.argmax(strength)]) if any(strength) else None


def _some(kept: tuple, part: slice) -> tuple:
    paths, walks, place = kept
    return paths, walks, place[part]


def _number(side: str) -> int:
    return 0 if side == "tail" else 1


def _in_slices(find: Any, size: int) -> list[Any]:
    """Calls a function for slices of rows, by threads, in order."""
    return run_slices(lambda part, _: find(part), size, no_scratch) if size else []
