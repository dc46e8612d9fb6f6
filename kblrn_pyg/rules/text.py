"""Rules as text."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kblrn_pyg.data.ids import check_id
from kblrn_pyg.rules.columns import UNKNOWN
from kblrn_pyg.rules.constants import ConstantRuleSet
from kblrn_pyg.rules.ruleset import RuleSet

_MIDDLES = "xyzuvw"


def atoms(rules: RuleSet, i: int) -> list[tuple[int, str, str]]:
    """Returns the atoms of a body as (relation, first variable, second)."""
    codes = [code for code in rules.steps[i].tolist() if code >= 0]
    if rules.parallel[i]:
        ends = [("h", "t")] * len(codes)
    else:
        stops = ["h", *_MIDDLES[: len(codes) - 1], "t"]
        ends = list(zip(stops[:-1], stops[1:]))
    return [
        (code >> 1, *(reversed(pair) if code & 1 else pair))
        for code, pair in zip(codes, ends)
    ]


def body_text(rules: RuleSet, i: int) -> str:
    """Returns a body as text: ``parent_of(h, x) ∧ parent_of(t, x)``."""
    i = check_id(i, "rule", len(rules))
    return " ∧ ".join(f"{rules.relations[r]}({a}, {b})" for r, a, b in atoms(rules, i))


def about(rules: RuleSet, i: int) -> str:
    """Returns the word that precedes the confidences of a rule, if any."""
    return "about " if rules.estimated[i] else ""


def fraction_text(value: float, is_estimate: bool = False) -> str:
    r"""Returns a measure of a rule as text.

    Args:
        value (float): The measure.
        is_estimate (bool, optional): Whether it is an estimate.
            (default: :obj:`False`)

    Example:
        >>> fraction_text(0.004), fraction_text(0.25, is_estimate=True)
        ('< 0.01', 'about 0.25')
    """
    if 0 < value < 0.005:
        return "< 0.01"
    return f"about {value:.2f}" if is_estimate else f"{value:.2f}"


def rule_text(rules: RuleSet, i: int) -> str:
    r"""Returns a rule as text, with its known measures.

    Args:
        rules (RuleSet): The rules.
        i (int): The position of the rule.

    Example:
        >>> rules = RuleSet.build(
        ...     ["spouse", "parent_of"], head=[0], steps=[[2, 3]], support=[812]
        ... )
        >>> rule_text(rules, 0)
        'spouse(h, t) ⇐ parent_of(h, x) ∧ parent_of(t, x)   support 812'
    """
    i, measures = check_id(i, "rule", len(rules)), []
    if rules.support[i] >= 0:
        measures.append(f"support {rules.support[i]:,}")
    word = about(rules, i)
    for name, value in (
        ("coverage ", rules.head_coverage[i]),
        (f"confidence {word}", rules.confidence[i]),
        (f"PCA confidence {word}", rules.pca_confidence[i]),
    ):
        if not np.isnan(value):
            measures.append(f"{name}{value:.2f}")
    text = f"{rules.relations[rules.head[i]]}(h, t) ⇐ {body_text(rules, i)}"
    return f"{text}   {', '.join(measures)}" if measures else text


def constant_rule_text(rules: ConstantRuleSet, i: int) -> str:
    r"""Returns a rule with constants as text, with its known measures.

    Args:
        rules (ConstantRuleSet): The rules.
        i (int): The position of the rule.

    Example:
        >>> rules = ConstantRuleSet.build(
        ...     ["likes"], ["Jam", "Tea"], ([0], [0]), ([0], [1]), support=[9]
        ... )
        >>> constant_rule_text(rules, 0)
        'likes(x, Jam) ⇐ likes(x, Tea)   support 9'
    """
    i, measures = check_id(i, "rule", len(rules)), []
    if rules.support[i] >= 0:
        measures.append(f"support {rules.support[i]:,}")
    for name, size in (
        ("confidence", rules.body_size[i]),
        ("PCA confidence", rules.pca_body_size[i]),
    ):
        if rules.support[i] >= 0 and size > 0:
            measures.append(f"{name} {rules.support[i] / size:.2f}")
    head, body = constant_atoms(rules, i, rules.entities.__getitem__)
    text = f"{head} ⇐ {body}".rstrip()
    return f"{text}   {', '.join(measures)}" if measures else text


def constant_atoms(
    rules: ConstantRuleSet, i: int, name_of: Callable[[int], str]
) -> tuple[str, str]:
    r"""Returns the head and the body of a rule with constants as text.

    Args:
        rules (ConstantRuleSet): The rules.
        i (int): The position of the rule.
        name_of (callable): Returns the name of an entity.
    """

    num_codes = 2 * len(rules.relations)

    def atom(code: int, entity: int) -> str:
        if code < 0:
            return ""
        if code >= num_codes:
            assert rules.intervals is not None
            attribute = code - num_codes
            before, behind = rules.intervals.around(attribute, entity)
            return f"{before}{rules.intervals.attributes[attribute]}(x){behind}"
        other = "·" if entity < 0 else name_of(entity)
        ends = f"{other}, x" if code & 1 else f"x, {other}"
        return f"{rules.relations[code >> 1]}({ends})"

    head = atom(int(rules.head_code[i]), int(rules.head_entity[i]))
    return head, atom(int(rules.body_code[i]), int(rules.body_entity[i]))


def rule_figures(rules: RuleSet) -> dict[str, list[Any]]:
    """Returns the relation, the body and the measures of each path rule."""
    unknown = {"support": rules.support, "head_size": rules.head_size}
    columns: dict[str, list[Any]] = {
        "relation": [rules.relations[i] for i in rules.head.tolist()],
        "body": [body_text(rules, i) for i in range(len(rules))],
    }
    columns |= {
        name: [None if value == UNKNOWN else value for value in column.tolist()]
        for name, column in unknown.items()
    }
    names = ("head_coverage", "confidence", "pca_confidence", "estimated")
    return columns | {name: getattr(rules, name).tolist() for name in names}
