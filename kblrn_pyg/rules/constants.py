"""Rules with constants as columns, grouped by the relation that they predict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from kblrn_pyg.data import DataError, Intervals
from kblrn_pyg.data.ids import as_positions, check_id
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.rules.columns import (
    UNKNOWN,
    Ids,
    check_same_names,
    is_among,
    largest_in_groups,
    order_in_groups,
    ratio,
    reaching,
    same_columns,
)
from kblrn_pyg.rules.constant_columns import (
    COLUMNS,
    HEAD_AND_BODY,
    MEASURES,
    Column,
    Sizes,
    as_column,
    check_columns,
    check_ranges,
    column_of_tensor,
    order_of,
    repeated_rows,
)

if TYPE_CHECKING:
    from kblrn_pyg.rules.ruleset import RuleSet

_KEYS = ("support", "confidence", "pca_confidence")
# More rules than this are not printed by accident.
_MAX_PRINTED = 1000


@dataclass(frozen=True, eq=False)
class ConstantRuleSet:
    r"""Rules :math:`r(x, c) \Leftarrow a(x, d)` about one variable :math:`x`.

    Both sides are a step from :math:`x` to an entity. A step is a code
    :math:`2 a + d`, as in :class:`RuleSet`: :math:`a(x, d)` for :math:`d = 0`,
    :math:`a(d, x)` for :math:`d = 1`. The body may lead to any entity,
    :math:`a(x, \cdot)`. A rule without a body states how frequent the head is.
    Rules are ordered by the relation that they predict.

    A body may also state that a number of :math:`x` lies in an interval. Attribute
    :math:`a` then has the code :math:`2 |\mathcal{R}| + a`, and one of its
    intervals takes the place of an entity.

    Args:
        relations (list): The names of all relations.
        entities (list): The identifiers of all entities.
        head_code (numpy.ndarray): The code of the step that each rule predicts.
            This and all further columns are of type :obj:`int32`.
        head_entity (numpy.ndarray): The entity that it leads to.
        body_code (numpy.ndarray): The code of the body, -1 for no body.
        body_entity (numpy.ndarray): The entity that it leads to, -1 for any.
        support (numpy.ndarray): The number of entities :math:`x` for which body and
            head hold; -1 if unknown, as in all following columns.
        body_size (numpy.ndarray): The number of those for which the body holds.
        pca_body_size (numpy.ndarray): Those of them that the partial completeness
            assumption counts: the predicted step leads from them to any entity.
        intervals (Intervals, optional): The intervals of numbers.
            (default: :obj:`None`, none)
    """

    relations: list[str]
    entities: list[str]
    head_code: Column
    head_entity: Column
    body_code: Column
    body_entity: Column
    support: Column
    body_size: Column
    pca_body_size: Column
    intervals: Intervals | None = None

    @classmethod
    def build(
        cls,
        relations: Sequence[str],
        entities: Sequence[str],
        head: tuple[ArrayLike, ArrayLike],
        body: tuple[ArrayLike, ArrayLike],
        intervals: Intervals | None = None,
        **measures: ArrayLike,
    ) -> "ConstantRuleSet":
        r"""Builds a rule set from rules in any order; of repeated rules, the first
        one is kept. Rules are sorted by their columns.

        Args:
            relations (sequence): The names of all relations.
            entities (sequence): The identifiers of all entities.
            head (tuple): The codes and the entities of heads.
            body (tuple): The codes and the entities of bodies.
            intervals (Intervals, optional): The intervals of numbers.
                (default: :obj:`None`, none)
            **measures (optional): The columns :obj:`support`, :obj:`body_size` and
                :obj:`pca_body_size`.

        Example:
            >>> rules = ConstantRuleSet.build(
            ...     ["likes"], ["Ada", "Tea"], head=([0], [1]), body=([1], [0])
            ... )
            >>> print(rules)
            likes(x, Tea) ⇐ likes(Ada, x)
        """
        unknown = sorted(set(measures) - set(MEASURES))
        if unknown:
            raise ValueError(f"'measures' must be among {MEASURES} (got {unknown})")
        given = dict(zip(HEAD_AND_BODY, (*head, *body)))
        columns = {name: as_column(name, values) for name, values in given.items()}
        size = len(columns["head_code"])
        for name in MEASURES:
            values = measures.get(name, np.full(size, UNKNOWN))
            columns[name] = as_column(name, values)
        check_ranges(columns, Sizes.of(relations, entities, intervals))
        order = order_of([columns[name] for name in HEAD_AND_BODY])
        columns = {name: column[order] for name, column in columns.items()}
        names = _as_list(relations), _as_list(entities)
        rules = cls(names[0], names[1], **columns, intervals=intervals)
        repeated = rules._is_repeated()
        return rules.select(~repeated) if repeated.any() else rules

    def __post_init__(self) -> None:
        columns = {name: getattr(self, name) for name in COLUMNS}
        sizes = Sizes.of(self.relations, self.entities, self.intervals)
        check_columns(columns, sizes)

    def __len__(self) -> int:
        return len(self.head_code)

    @property
    def relation(self) -> Column:
        """The relation that each rule predicts."""
        return self.head_code >> 1

    @property
    def speaks_of_numbers(self) -> bool:
        """Whether the body of any rule is about a number."""
        return bool((self.body_code >= 2 * len(self.relations)).any())

    @cached_property
    def ptr(self) -> Ids:
        """Where the rules of each relation begin."""
        return np.searchsorted(self.relation, np.arange(len(self.relations) + 1))

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The fraction of the entities with the body for which the head holds."""
        return ratio(self.support, self.body_size)

    @property
    def pca_confidence(self) -> NDArray[np.float64]:
        """The same, counting only entities of the partial completeness
        assumption."""
        return ratio(self.support, self.pca_body_size)

    def shrunk_confidence(self, shrinkage: float = 5.0) -> NDArray[np.float64]:
        r"""Returns PCA confidences that are lowered for rules with few examples.

        Args:
            shrinkage (float, optional): The number added to the size of a body.
                (default: :obj:`5.0`)
        """
        if not 0 <= shrinkage < np.inf:
            raise ValueError(f"'shrinkage' must not be negative (got {shrinkage})")
        known = (self.support >= 0) & (self.pca_body_size > 0)
        whole = np.where(known, self.pca_body_size + float(shrinkage), np.nan)
        return self.support / whole

    def of(self, relation: int) -> slice:
        """Returns the positions of the rules of a relation."""
        relation = check_id(relation, "relation", len(self.relations))
        return slice(int(self.ptr[relation]), int(self.ptr[relation + 1]))

    def select(self, index: Any) -> "ConstantRuleSet":
        r"""Returns some of the rules, grouped by relation.

        Args:
            index: A boolean mask, or positions in any order; within a
                relation, their order is kept.
        """
        index = as_positions(index, "rules", len(self))
        relation = self.relation[index]
        if (np.diff(relation) < 0).any():
            index = index[np.argsort(relation, kind="stable")]
        return replace(self, **{name: getattr(self, name)[index] for name in COLUMNS})

    def filter(
        self,
        min_support: int = 0,
        min_confidence: float = 0.0,
        min_pca_confidence: float = 0.0,
        max_rules_per_relation: int | None = None,
        relations: Iterable[int | str] | None = None,
    ) -> "ConstantRuleSet":
        r"""Returns the rules that reach all thresholds; see :meth:`RuleSet.filter`.

        Args:
            min_support (int, optional): The minimum support.
                (default: :obj:`0`)
            min_confidence (float, optional): The minimum standard confidence.
                (default: :obj:`0.0`)
            min_pca_confidence (float, optional): The minimum PCA confidence.
                (default: :obj:`0.0`)
            max_rules_per_relation (int, optional): The maximum number of rules
                of each relation; those with the largest support are kept.
                (default: :obj:`None`, all)
            relations (iterable, optional): The relations whose rules are kept,
                by name or by id. (default: :obj:`None`, all)
        """
        keep = reaching(
            self,
            support=min_support,
            confidence=min_confidence,
            pca_confidence=min_pca_confidence,
        )
        if relations is not None:
            keep &= is_among(self.relation, relations, self.relations)
        rules = self if keep.all() else self.select(keep)
        if max_rules_per_relation is None:
            return rules
        best = largest_in_groups(rules.support, rules.relation, max_rules_per_relation)
        return rules.select(best)

    def sort(self, key: str, shrinkage: float = 0.0) -> "ConstantRuleSet":
        r"""Sorts the rules within each relation, the largest first.

        Args:
            key (str): A measure: :obj:`"support"`, :obj:`"confidence"` or
                :obj:`"pca_confidence"`.
            shrinkage (float, optional): What is added to bodies if the PCA
                confidence is compared; see :meth:`shrunk_confidence`.
                (default: :obj:`0.0`)
        """
        if key not in _KEYS:
            raise ValueError(f"'key' must be one of {_KEYS} (got {key!r})")
        if shrinkage and key != "pca_confidence":
            raise ValueError(
                f"'shrinkage' must be 0 to sort by {key} (got {shrinkage})"
            )
        values = self.shrunk_confidence(shrinkage) if shrinkage else getattr(self, key)
        return self.select(order_in_groups(values, self.relation))

    def best(self, number: int, shrinkage: float = 5.0) -> Ids:
        r"""Returns the positions of the most confident rules of all relations, the
        most confident first, and of equally confident ones those with more support.

        Args:
            number (int): The maximum number of rules.
            shrinkage (float, optional): See :meth:`shrunk_confidence`.
                (default: :obj:`5.0`)
        """
        if number < 0:
            raise ValueError(f"'number' must not be negative (got {number})")
        worth = np.nan_to_num(self.shrunk_confidence(shrinkage), nan=-1.0)
        index = np.arange(len(self))
        if 0 < number < len(self):  # without sorting all
            least = np.partition(worth, len(self) - number)[len(self) - number]
            index = np.flatnonzero(worth >= least)
        order = np.lexsort((-self.support[index], -worth[index]))
        return index[order[:number]]

    def merge(self, other: "ConstantRuleSet") -> "ConstantRuleSet":
        r"""Joins two rule sets; of a rule that is in both, the first one is kept.

        Args:
            other (ConstantRuleSet): Rules over the same relations and entities, and
                the same intervals of numbers, if both have any.
        """
        self.check_names(other.relations, other.entities, "rules to merge")
        intervals = other.intervals if self.intervals is None else self.intervals
        if other.intervals not in (None, intervals):
            raise ValueError("'other' must have the same intervals of numbers")
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in COLUMNS
        }
        codes, ends, body, body_ends = (columns.pop(name) for name in HEAD_AND_BODY)
        names = self.relations, self.entities
        atoms = (codes, ends), (body, body_ends)
        return self.build(*names, *atoms, intervals, **columns)

    def check_names(
        self, relations: Sequence[str], entities: Sequence[str], whose: str = "data"
    ) -> None:
        r"""Refuses relations and entities other than those of the rules.

        Args:
            relations (sequence): The names of all relations.
            entities (sequence): The identifiers of all entities.
            whose (str, optional): Their owner. (default: :obj:`"data"`)
        """
        check_same_names("relations", self.relations, relations, whose)
        check_same_names("entities", self.entities, entities, whose)

    def to_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values that a HeteroData can hold."""
        columns = {name: torch.from_numpy(getattr(self, name)) for name in COLUMNS}
        own = self.intervals
        more = {} if own is None else {"intervals": own.to_dict()}
        names = {"relations": self.relations, "entities": self.entities}
        return {**names, **columns, **more}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "ConstantRuleSet":
        """Reverses :meth:`to_dict`, and refuses invalid content."""
        missing = {"relations", "entities", *COLUMNS} - set(content)
        if missing:
            raise DataError(f"the rules with constants lack {sorted(missing)}")
        columns: dict[str, Any] = {
            name: column_of_tensor(name, content[name]) for name in COLUMNS
        }
        intervals = content.get("intervals")
        if intervals is not None:
            intervals = Intervals.from_dict(intervals)
        columns |= {"intervals": intervals}
        rules = cls(content["relations"], content["entities"], **columns)
        if rules._is_repeated().any():
            raise DataError("a rule with constants is there twice")
        return rules

    def save(self, path: PathLike) -> None:
        r"""Saves the rules as a rule set without paths; see :meth:`RuleSet.save`.

        Args:
            path (str): The file.
        """
        self.as_rules().save(path)

    @classmethod
    def load(cls, path: PathLike) -> "ConstantRuleSet":
        r"""Loads the rules with constants from a file that :meth:`RuleSet.save`
        wrote.

        Args:
            path (str): The file.
        """
        from kblrn_pyg.rules.ruleset import RuleSet

        constants = RuleSet.load(path).constants
        if constants is None:
            raise DataError("has no rules with constants", path)
        return constants

    def as_rules(self) -> "RuleSet":
        """Returns a rule set that has these rules and no paths."""
        from kblrn_pyg.rules.ruleset import RuleSet

        return RuleSet.build(self.relations, [], []).with_constants(self)

    def __eq__(self, other: object) -> bool:
        """Returns whether all names and columns are the same, in the same order."""
        if not isinstance(other, ConstantRuleSet):
            return NotImplemented
        return (
            self.relations == other.relations
            and self.entities == other.entities
            and self.intervals == other.intervals
            and same_columns(self, other, COLUMNS)
        )

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        from kblrn_pyg.rules.text import constant_rule_text

        number = min(len(self), _MAX_PRINTED)
        lines = [constant_rule_text(self, i) for i in range(number)]
        if number < len(self):
            lines.append(f"... and {len(self) - number:,} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"{self.__class__.__name__}({len(self)}, relations={len(self.relations)}, "
            f"entities={len(self.entities)})"
        )

    def _is_repeated(self) -> NDArray[np.bool_]:
        """Returns which rules were there before."""
        return repeated_rows([getattr(self, name) for name in HEAD_AND_BODY])


def _as_list(names: Sequence[str]) -> list[str]:
    return names if isinstance(names, list) else list(names)
