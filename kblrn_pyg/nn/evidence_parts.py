"""The rules of the evidence expert as text."""

from collections.abc import Mapping
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data import Intervals
from kblrn_pyg.data.words import value_text
from kblrn_pyg.nn.part import Fact, Part, Ref, Words
from kblrn_pyg.rules.found import FoundRule

# How many rules explanations name besides the surest ones.
_MAX_KINDS = 6


class RuleWords:
    r"""Describes what entities have in common with others: a fact, or a number.

    Args:
        kb (HeteroData): The knowledge base.
        intervals (Intervals, optional): The intervals of numbers, if rules are
            about any. (default: :obj:`None`)
    """

    def __init__(self, kb: HeteroData, intervals: Intervals | None = None) -> None:
        self._x, self._intervals = kb["entity"].x.detach(), intervals
        self._num_codes = 2 * len(kb.edge_types)

    def rule(
        self, found: FoundRule, name: str, entity: int, contribution: float
    ) -> Part:
        r"""Returns a rule as a part of a score.

        Args:
            found (FoundRule): The rule.
            name (str): What the entity is called, :obj:`"h"` or :obj:`"t"`.
            entity (int): The entity.
            contribution (float): What the rule adds to the score.
        """
        details: dict[str, Any] = {"kind": name, "support": found.support}
        details |= {"body": found.body, "confidence": found.confidence}
        note = f"true for {found.support:,} of {found.body:,} like it"
        attribute = found.code - self._num_codes
        if attribute < 0:
            words, paths = _fact_in_common(found, name, entity)
            return Part(contribution, words, (note,), paths, details=details)
        intervals = self._intervals
        assert intervals is not None
        before, behind = intervals.around(attribute, found.entity)
        words = (Ref("attribute", attribute), f"({name}){behind}")
        value = float(self._x[entity, attribute])
        text = value_text(intervals.attributes[attribute], value)
        details |= {"attribute": attribute, "value": value}
        words = (before, *words) if before else words
        return Part(contribution, words, (f"{text}: {note}",), details=details)

    def kinds(
        self, contributions: Mapping[tuple[str, FoundRule], float], head: int, tail: int
    ) -> list[Part]:
        r"""Lists the rules that add most, and the rest as one.

        Args:
            contributions (dict): What is added, by the end and the rule.
            head (int): The head.
            tail (int): The tail.
        """
        order = sorted(contributions, key=lambda one: -abs(contributions[one]))
        entity = {"head": head, "tail": tail}
        parts = [
            self.rule(rule, end[0], entity[end], contributions[end, rule])
            for end, rule in order[:_MAX_KINDS]
            if contributions[end, rule] != 0
        ]
        others = order[_MAX_KINDS:]
        rest = sum(contributions[one] for one in others)
        if rest == 0:
            return parts
        details = {"kind": "other rules", "number": len(others)}
        rules = "rule of another kind" if len(others) == 1 else "rules of other kinds"
        note = (f"{len(others):,} {rules}",)
        return [*parts, Part(rest, ("other rules",), note, details=details)]


def usual_part(
    rel: int, end: str, fraction: float, weight: float, counts: tuple[int, int]
) -> Part:
    r"""Describes how frequent an entity is, independently of the other one.

    Args:
        rel (int): The relation.
        end (str): Which entity, :obj:`"head"` or :obj:`"tail"`.
        fraction (float): How usual it is.
        weight (float): The weight of that.
        counts (tuple): The number of entities at the other end of the relation that
            are joined with it, and the number of all.
    """
    support, body = counts
    details = {"kind": f"usual {end}", "fraction": fraction, "weight": weight}
    details |= {"support": support, "body": body}
    others = "head" if end == "tail" else "tail"
    others += "" if body == 1 else "s"
    note = (f"true for {support:,} of {body:,} {others} of ", Ref("relation", rel))
    words = (f"how usual {end[0]} is",)
    return Part(weight * fraction, words, note, details=details)


def _fact_in_common(
    found: FoundRule, name: str, entity: int
) -> tuple[Words, tuple[tuple[Fact, ...], ...]]:
    """Returns a body as text, and its path if it leads to an entity."""
    relation, is_back = found.code >> 1, bool(found.code & 1)
    other: str | Ref = "·" if found.entity < 0 else Ref("entity", found.entity)
    ends = (other, ", ", name) if is_back else (name, ", ", other)
    words: Words = (Ref("relation", relation), "(", *ends, ")")
    fact: Fact = (entity, relation, found.entity)
    fact = (fact[2], relation, fact[0]) if is_back else fact
    return words, () if found.entity < 0 else ((fact,),)
