"""The best evidence for a triple: rules with constants, and paths by confidence."""

from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import Vocabulary, as_kb, flat_triples
from kblrn_pyg.data.ids import as_ids, check_distinct, check_ids, check_shape
from kblrn_pyg.data.queries import check_side
from kblrn_pyg.kernels.evidence import (
    NUM_WEIGHTS,
    Choices,
    candidate_evidence,
    new_scratch,
    query_evidence,
)
from kblrn_pyg.kernels.evidence_columns import (
    Columns,
    column_evidence,
    features_of_columns,
)
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
from kblrn_pyg.rules.entity_features import entity_features, find_intervals
from kblrn_pyg.rules.fact_index import FactIndex
from kblrn_pyg.rules.features import PathFeatures
from kblrn_pyg.rules.ruleset import Ids, RuleSet
from kblrn_pyg.rules.settings import MAX_CONSTANT_RULES, MAX_DEGREE
from kblrn_pyg.rules.strengths import believe, count_with_support

# What more facts are to themselves takes too much memory to be kept.
_MAX_FACTS = 20_000_000


class QueryEvidence(NamedTuple):
    r"""The entities that there is evidence for, for each query of a batch.

    Args:
        ptr (numpy.ndarray): Where the entries of each query begin.
        column (numpy.ndarray): The entity of each entry, or its column.
        value (numpy.ndarray): Three numbers for each entry: what the surest rule
            for the head, for the tail and the surest path give.
    """

    ptr: Ids
    column: Ids
    value: np.ndarray


class FoundRule(NamedTuple):
    r"""The surest rule that holds.

    Args:
        code (int): The code of the step that entities have in common; an attribute
            has its id and the number of codes of steps.
        entity (int): Where it leads, -1 for anywhere; or the interval of a number,
            by its place among those of the attribute.
        support (int): For how many of them the prediction is true.
        body (int): Of how many.
        confidence (float): How far the rule is believed.
    """

    code: int
    entity: int
    support: int
    body: int
    confidence: float


class EvidenceFeatures:
    r"""Looks for the surest rules that speak for triples.

    A rule with constants says what entities that share a fact have in common
    besides: "of 14 who won this award, 12 have this nationality". All rules with the
    least support are counted, from the known triples of a knowledge base, or those
    that are given (:obj:`rules.constants`), whatever their measures were. A rule
    whose body is a path is believed as far as its PCA confidence, shrunk alike:

    .. math::
        \textrm{confidence} = \frac{\textrm{support}}{\textrm{body} + \beta}

    Args:
        data (HeteroData or Data): The knowledge base.
        rules (RuleSet): The rules with paths, with their PCA confidences; if it has
            rules with constants, only these are used. Their supports and bodies are
            counted anew.
        min_support (int, optional): The least support of rules with constants.
            (default: :obj:`2`)
        shrinkage (float, optional): What :math:`\beta` is. (default: :obj:`5.0`)
        floor (float, optional): The confidence below which differences count
            little. (default: :obj:`0.03`)
        max_degree (int, optional): Entities with more features than this are no
            examples of rules: the pairs of their features are too many.
            (default: :obj:`10_000`)
        max_rules (int, optional): The largest number of rules with constants; the
            least support is raised until there are no more.
            (default: :obj:`100_000_000`)
        bins (int, optional): The largest number of bins of an attribute, if bodies
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
        choices = Choices(min_support, shrinkage, floor)
        self.evidence = believe(features, counted, mined, rules, choices)
        self._pool = ScratchPool(partial(new_scratch, self.num_entities))
        num_features = len(features.code)
        self._marks = ScratchPool(partial(np.zeros, num_features, np.bool_))
        self._triples = tuple(index.numpy() for index in flat_triples(kb))
        self._own: np.ndarray | None = None  # of each fact
        self._columns: Ids | None = None  # those of the last call
        self._column_of = np.empty(0, np.int64)
        self._last_columns: Columns | None = None

    def __len__(self) -> int:
        """Returns the number of rules with constants."""
        return len(self.evidence.rules.target)

    def pairs(
        self, head: Ids, rel: Ids, tail: Ids, leave_own: bool = False
    ) -> np.ndarray:
        r"""Returns six numbers for each triple.

        They are the strength, :math:`\log (1 + \textrm{confidence} /
        \textrm{floor})`, of the surest rule for the head, and of that for the tail;
        the same if the surest path is not stronger, or else that of the path; and how
        usual the tail and the head are.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
            leave_own (bool, optional): If set to :obj:`True`, a triple that is a
                fact is no example of a rule: without it, support and body are one
                less. (default: :obj:`False`)
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
        r"""Returns how much each of the six numbers of a triple is because the triple
        is a fact, and so an example of its own rules.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
        """
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
        r"""Keeps what every epoch of a training asks again: what its facts are to
        themselves, and the walks of its queries.

        Args:
            walks (bool, optional): Whether walks are asked for, which those to some
                entities only are not. (default: :obj:`True`)
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
        """The facts of the knowledge base, each of them once."""
        return FactIndex(self._triples, self.num_entities)

    def queries(
        self, side: str, entity: Ids, rel: Ids, columns: Ids | None = None
    ) -> list[tuple[slice, QueryEvidence]]:
        r"""Finds what there is evidence for, for each query.

        Args:
            side (str): The side that is asked for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            columns (numpy.ndarray, optional): The entities to look at, none of them
                twice. (default: :obj:`None`, all)

        Returns:
            The evidence of some queries, for all queries.
        """
        if columns is not None:
            return self._for_columns(side, entity, rel, columns)
        kept = self.paths.walk_arguments(side, entity, rel)  # checks the ids

        def find(part: slice) -> tuple[slice, QueryEvidence]:
            asked = entity[part], rel[part]
            given = self.evidence, _some(kept, part), _number(side), asked
            with self._pool.borrowed() as scratch:
                return part, QueryEvidence(*query_evidence(*given, scratch))

        return _in_slices(find, len(entity))

    def _for_columns(
        self, side: str, entity: Ids, rel: Ids, columns: Ids
    ) -> list[tuple[slice, QueryEvidence]]:
        """Finds what there is evidence for among some entities."""
        self.paths.check_ids(rel, entities=entity)
        reach = self.paths.to_columns(side, columns)
        wanted = self._features_of(columns)

        def find(part: slice) -> tuple[slice, QueryEvidence]:
            asked = entity[part], rel[part]
            given = self.evidence, reach, _number(side), asked, wanted
            with self._marks.borrowed() as mark:
                return part, QueryEvidence(*column_evidence(*given, mark))

        return _in_slices(find, len(entity))

    def candidates(
        self, side: str, entity: Ids, rel: Ids, candidates: Ids
    ) -> np.ndarray:
        r"""Returns three numbers for each candidate of each query.

        Args:
            side (str): The side that is asked for.
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
        r"""Returns how usual the tail and the head of each candidate's triple are.

        Args:
            side (str): The side that is asked for.
            entity (numpy.ndarray): The known entity of each query.
            rel (numpy.ndarray): The relation of each query.
            candidates (numpy.ndarray): A row of entities for each query.
        """
        self.paths.check_ids(rel, entities=entity)
        self._check_candidates(rel, candidates)
        return usual_candidates(self.evidence, _number(side), (entity, rel), candidates)

    def columns_of(self, columns: Ids | None) -> Ids:
        """Returns the column of each entity, -1 for none; nothing for all."""
        if columns is None:
            return np.empty(0, np.int64)
        last = self._columns
        if last is not columns:
            check_ids({"entities": (columns, self.num_entities)})
            check_distinct(columns, "entities")
            if last is None:
                self._column_of = np.full(self.num_entities, -1)
            else:  # not all, which may be many
                self._column_of[last] = -1
            self._column_of[columns] = np.arange(len(columns))
            self._columns = columns
        return self._column_of

    def _features_of(self, columns: Ids) -> Columns:
        """Lists what columns have, once for the same array."""
        last = self._last_columns
        if last is None or last.entity is not columns:
            given = self.evidence.features, columns, self.columns_of(columns)
            last = self._last_columns = features_of_columns(*given)
        return last

    def _check_candidates(self, rel: Ids, candidates: Ids) -> None:
        check_ids({"candidates": (candidates, self.num_entities)}, num_dims=2)
        check_shape("candidates", candidates, (len(rel), candidates.shape[1]))

    def best_rule(self, side: str, head: int, rel: int, tail: int) -> FoundRule | None:
        r"""Returns the surest rule with constants that speaks for a triple.

        Args:
            side (str): Whose features it looks at: :obj:`"head"` or :obj:`"tail"`.
            head (int): The head.
            rel (int): The relation.
            tail (int): The tail.
        """
        check_side(side)
        r, h, t = (np.array([i]) for i in (rel, head, tail))
        self.paths.check_ids(r, heads=h, tails=t)
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
        r"""Returns the surest path rule that holds for a triple, by its position.

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
