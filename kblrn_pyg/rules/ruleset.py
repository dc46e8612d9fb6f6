"""Rules as columns, grouped by the relation that they predict."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.data.ids import as_positions, check_id
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.frames import html_table, to_frame
from kblrn_pyg.rules.building import check_codes, rule_columns
from kblrn_pyg.rules.columns import (
    UNKNOWN,
    Ids,
    check_same_names,
    is_among,
    largest_in_groups,
    list_of,
    order_in_groups,
    ratio,
    reaching,
    same_columns,
)
from kblrn_pyg.rules.constants import ConstantRuleSet
from kblrn_pyg.rules.semantics import AMIE, Semantics
from kblrn_pyg.rules.stored import load_rules, rules_from, save_rules

_KEYS = ("support", "head_coverage", "confidence", "pca_confidence")


@dataclass(frozen=True, eq=False)
class RuleSet:
    r"""Rules :math:`r(h, t) \Leftarrow \textrm{body}(h, t)`.

    A body is a *path* of one or more steps from :math:`h` to :math:`t`, or, if
    :obj:`parallel`, two steps that both lead from :math:`h` to :math:`t`. A
    step is a code :math:`2 a + d`: along relation :math:`a` for :math:`d = 0`,
    against it for :math:`d = 1`. Rules are ordered by :obj:`head`.

    Args:
        relations (list): The names of all relations.
        head (numpy.ndarray): The relation that each rule predicts.
        steps (numpy.ndarray): The codes of each body, :obj:`[num_rules,
            max_hops]`, filled up with -1.
        parallel (numpy.ndarray): Whether the steps are parallel.
        support (numpy.ndarray): The number of facts of :obj:`head` for which the
            body holds; -1 if unknown, as in all following columns.
        head_size (numpy.ndarray): The number of facts of :obj:`head`.
        body_size (numpy.ndarray): The number of pairs for which the body holds.
        pca_body_size (numpy.ndarray): Those of them that the partial
            completeness assumption counts: their head (or their tail, if the
            relation has fewer heads than tails) has a fact of the relation.
        estimated (numpy.ndarray): Whether :obj:`body_size` and
            :obj:`pca_body_size` are estimates.
        semantics (Semantics, optional): The semantics of the bodies.
            (default: that of AMIE)
        constants (ConstantRuleSet, optional): Rules with constants over the same
            relations. (default: :obj:`None`, not mined)
    """

    relations: list[str]
    head: Ids
    steps: Ids
    parallel: NDArray[np.bool_]
    support: Ids
    head_size: Ids
    body_size: Ids
    pca_body_size: Ids
    estimated: NDArray[np.bool_]
    semantics: Semantics = AMIE
    constants: ConstantRuleSet | None = None

    @classmethod
    def build(
        cls,
        relations: Sequence[str],
        head: Iterable[int],
        steps: Iterable[Sequence[int]],
        parallel: Iterable[bool] | None = None,
        semantics: Semantics = AMIE,
        estimated: Iterable[bool] | None = None,
        **measures: Iterable[int],
    ) -> "RuleSet":
        r"""Builds a rule set from rules in any order; repeated ones count once.

        Args:
            relations (sequence): The names of all relations.
            head (iterable): The relation that each rule predicts.
            steps (iterable): The codes of each body, which must not be the
                head itself.
            parallel (iterable, optional): Whether the steps are parallel; such
                a body has two of them. (default: :obj:`None`, none)
            semantics (Semantics, optional): The semantics of the bodies.
                (default: that of AMIE)
            estimated (iterable, optional): Whether the two sizes of each body
                are estimates. (default: :obj:`None`, none)
            **measures (iterable, optional): The columns :obj:`support`,
                :obj:`head_size`, :obj:`body_size` and :obj:`pca_body_size`.

        Example:
            >>> rules = RuleSet.build(["a", "b"], head=[1], steps=[[0]])
            >>> print(rules)
            b(h, t) ⇐ a(h, t)
        """
        columns = rule_columns(head, steps, parallel, estimated, measures)
        rules = cls(list(relations), **columns, semantics=semantics)
        return rules._distinct()

    def __post_init__(self) -> None:
        check_codes(self.head, self.steps, len(self.relations), self.semantics)
        if self.constants is not None:
            self.check_relations(self.constants.relations, "rules with constants")

    def __len__(self) -> int:
        return len(self.head)

    @property
    def max_hops(self) -> int:
        """The maximum number of steps of a body."""
        return self.steps.shape[1]

    @cached_property
    def num_steps(self) -> Ids:
        """The number of steps of each body."""
        return (self.steps >= 0).sum(axis=1)

    @cached_property
    def ptr(self) -> Ids:
        """Where the rules of each relation begin."""
        counts = np.bincount(self.head, minlength=len(self.relations))
        return np.concatenate([[0], np.cumsum(counts)])

    @property
    def head_coverage(self) -> NDArray[np.float64]:
        """The fraction of the facts of the head for which the body holds."""
        return ratio(self.support, self.head_size)

    @property
    def confidence(self) -> NDArray[np.float64]:
        """The fraction of the body's pairs that are facts of the head."""
        return ratio(self.support, self.body_size)

    @property
    def pca_confidence(self) -> NDArray[np.float64]:
        """The same, counting only pairs of the partial completeness assumption."""
        return ratio(self.support, self.pca_body_size)

    @property
    def is_measured(self) -> bool:
        """Whether the support and the PCA confidence of every rule are known."""
        return bool((self.support >= 0).all() and (self.pca_body_size >= 0).all())

    def of(self, relation: int) -> slice:
        """Returns the positions of the rules of a relation."""
        relation = check_id(relation, "relation", len(self.relations))
        return slice(int(self.ptr[relation]), int(self.ptr[relation + 1]))

    def select(self, index: Any) -> "RuleSet":
        r"""Returns some of the path rules, grouped by relation, with all rules with
        constants.

        Args:
            index: A boolean mask, or positions in any order; within a
                relation, their order is kept.
        """
        at = as_positions(index, "rules", len(self))
        return replace(self, **{k: getattr(self, k)[at] for k in _COLUMNS})._ordered()

    def filter(
        self,
        min_head_coverage: float = 0.0,
        min_support: int = 0,
        min_confidence: float = 0.0,
        min_pca_confidence: float = 0.0,
        max_rules_per_relation: int | None = None,
        relations: Iterable[int | str] | None = None,
    ) -> "RuleSet":
        r"""Returns the rules that reach all thresholds.

        Args:
            min_head_coverage (float, optional): The minimum head coverage, which rules
                with constants do not have.
                (default: :obj:`0.0`)
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
            head_coverage=min_head_coverage,
            support=min_support,
            confidence=min_confidence,
            pca_confidence=min_pca_confidence,
        )
        if relations is not None:
            relations = list_of(relations)  # rules with constants want them again
            keep &= is_among(self.head, relations, self.relations)
        rules = self.select(keep)
        if self.constants is not None:
            least = min_support, min_confidence, min_pca_confidence
            given = *least, max_rules_per_relation, relations
            rules = rules.with_constants(self.constants.filter(*given))
        if max_rules_per_relation is None:
            return rules
        best = largest_in_groups(rules.support, rules.head, max_rules_per_relation)
        return rules.select(best)

    def sort(self, key: str) -> "RuleSet":
        r"""Sorts the rules within each relation, the largest first.

        Rules stay grouped by the relation that they predict, in the order of
        :obj:`relations`, so the first rule is the best one of the first relation
        that has rules, and not the best of all. For an order over all relations,
        sort a measure: :obj:`np.argsort(-rules.support)`. Rules with constants are
        sorted, too, except by head coverage, which they do not have.

        Args:
            key (str): A measure: :obj:`"support"`, :obj:`"head_coverage"`,
                :obj:`"confidence"` or :obj:`"pca_confidence"`.
        """
        if key not in _KEYS:
            raise ValueError(f"'key' must name a measure (got {key!r})")
        rules = self.select(order_in_groups(getattr(self, key), self.head))
        if self.constants is None or key == "head_coverage":
            return rules
        return rules.with_constants(self.constants.sort(key))

    def merge(self, other: "RuleSet") -> "RuleSet":
        r"""Joins two rule sets; of a rule that is in both, the first one is kept.

        Args:
            other (RuleSet): Rules over the same relations, with the same
                semantics.
        """
        self.check_relations(other.relations, "rules to merge")
        differ = self.semantics.differences(other.semantics)
        if differ:
            raise DataError(
                f"rules that differ in {', '.join(differ)} cannot be merged"
            )
        given = [one for one in (self.constants, other.constants) if one is not None]
        constants = reduce(ConstantRuleSet.merge, given) if given else None
        return join([self, other])._distinct().with_constants(constants)

    def with_constants(self, constants: ConstantRuleSet | None) -> "RuleSet":
        r"""Returns the path rules together with rules with constants.

        Args:
            constants (ConstantRuleSet, optional): Rules over the same relations, or
                :obj:`None`.
        """
        return (
            self if constants is self.constants else replace(self, constants=constants)
        )

    def check_relations(self, relations: Sequence[str], whose: str = "data") -> None:
        r"""Refuses relations other than those of the rules.

        Args:
            relations (sequence): The names of all relations.
            whose (str, optional): Their owner. (default: :obj:`"data"`)
        """
        check_same_names("relations", self.relations, relations, whose)

    def bodies(self) -> list[tuple[bool, tuple[int, ...]]]:
        """Returns each body as whether it is parallel, and its codes."""
        return [
            (parallel, tuple(code for code in codes if code >= 0))
            for parallel, codes in zip(self.parallel.tolist(), self.steps.tolist())
        ]

    def to_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values that a HeteroData can hold."""
        columns = {name: torch.from_numpy(getattr(self, name)) for name in _COLUMNS}
        semantics = asdict(self.semantics)
        content = {"relations": list(self.relations), "semantics": semantics, **columns}
        if self.constants is not None:
            content["constants"] = self.constants.to_dict()
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "RuleSet":
        """Reverses :meth:`to_dict`."""
        return rules_from(content, cls)

    @classmethod
    def of_data(cls, data: HeteroData) -> "RuleSet":
        r"""Returns the rules that :class:`MineRules` attached to a knowledge base.

        Args:
            data (HeteroData): The knowledge base.
        """
        if "rules" not in data:
            raise DataError("the knowledge base has no rules, use 'MineRules' first")
        return cls.from_dict(data.rules)

    def save(self, path: PathLike) -> None:
        r"""Saves the rules; the file is written whole or not at all.

        Args:
            path (str): The file.
        """
        save_rules(self, path)

    @classmethod
    def load(cls, path: PathLike) -> "RuleSet":
        r"""Loads rules that :meth:`save` wrote.

        Args:
            path (str): The file.
        """
        return load_rules(path, cls)

    def __str__(self) -> str:
        from kblrn_pyg.rules.text import rule_text

        lines = [rule_text(self, i) for i in range(len(self))]
        lines += [str(self.constants)] if self.constants else []
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Returns a :class:`pandas.DataFrame` with a row for each path rule."""
        from kblrn_pyg.rules.text import rule_figures

        return to_frame(rule_figures(self))

    def _repr_html_(self) -> str:
        from kblrn_pyg.rules.text import rule_figures

        columns = rule_figures(self)
        return html_table(list(columns), list(zip(*columns.values())), repr(self))

    def __repr__(self) -> str:
        sizes = f"{len(self)}, relations={len(self.relations)}"
        if self.constants is not None:
            sizes += f", constants={len(self.constants)}"
        return f"{self.__class__.__name__}({sizes})"

    def __eq__(self, other: object) -> bool:
        """Returns whether all names and columns are the same, in the same order."""
        if not isinstance(other, RuleSet):
            return NotImplemented
        return (
            self.relations == other.relations
            and self.semantics == other.semantics
            and same_columns(self, other, _COLUMNS)
            and self.constants == other.constants
        )

    __hash__ = None  # type: ignore[assignment]

    def _ordered(self) -> "RuleSet":
        if (np.diff(self.head) >= 0).all():
            return self
        return self.select(np.argsort(self.head, kind="stable"))

    def _distinct(self) -> "RuleSet":
        keys = np.column_stack([self.head, self.parallel, self.steps])
        _, first = np.unique(keys, axis=0, return_index=True)
        if len(first) == len(self):
            return self._ordered()
        return self.select(np.sort(first))


_COLUMNS = [
    field.name
    for field in fields(RuleSet)
    if field.name not in ("relations", "semantics", "constants")
]


def join(parts: Sequence[RuleSet]) -> RuleSet:
    """Joins rule sets with the relations and the semantics of the first."""
    width = max(part.max_hops for part in parts)
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in _COLUMNS
        if name != "steps"
    }
    steps = [
        np.pad(
            part.steps, ((0, 0), (0, width - part.max_hops)), constant_values=UNKNOWN
        )
        for part in parts
    ]
    return replace(parts[0], steps=np.concatenate(steps), **columns)._ordered()
