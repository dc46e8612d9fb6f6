"""Checks of rules that are loaded from files, since kernels trust their codes."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.packing import are_texts
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.store import load_tensors, save_tensors
from kblrn_pyg.rules.building import MEASURES
from kblrn_pyg.rules.constants import ConstantRuleSet
from kblrn_pyg.rules.semantics import Semantics

if TYPE_CHECKING:
    from kblrn_pyg.rules.ruleset import RuleSet

Columns = dict[str, Any]

# The formats of files: those without rules with constants are what they were.
_VERSION = "2"
_VERSION_WITH_CONSTANTS = "3"

_FLAGS = ("parallel", "estimated")


def save_rules(rules: "RuleSet", path: PathLike) -> None:
    r"""Saves rules; see :meth:`RuleSet.save`.

    Args:
        rules (RuleSet): The rules.
        path (str): The file.
    """
    version = _VERSION if rules.constants is None else _VERSION_WITH_CONSTANTS
    save_tensors(rules.to_dict(), path, "rules", version)


def load_rules(path: PathLike, cls: type["RuleSet"]) -> "RuleSet":
    r"""Loads rules; see :meth:`RuleSet.load`.

    Args:
        path (str): The file.
        cls (type): The class of rule sets.
    """
    content = load_tensors(path, "rules")
    try:
        return rules_from(content, cls)
    except KeyError as error:
        raise DataError(f"lacks the column {error}", path) from None
    except ValueError as error:
        raise DataError(str(error), path) from None
    except (TypeError, AttributeError) as error:
        raise DataError(f"does not hold rules: {error}", path) from None


def rules_from(content: Any, cls: type["RuleSet"]) -> "RuleSet":
    r"""Returns stored rules, which must have the form that :meth:`RuleSet.build`
    creates.

    Args:
        content (dict): What :meth:`RuleSet.to_dict` returned.
        cls (type): The class of rule sets.
    """
    relations, columns, semantics = _columns(content, cls)
    constants = content.get("constants")
    if constants is not None:
        constants = ConstantRuleSet.from_dict(constants)
    try:
        rules = cls(relations, **columns, semantics=semantics, constants=constants)
    except ValueError as error:
        raise DataError(f"does not hold rules: {error}") from None
    problem = _problem(rules)
    if problem is not None:
        raise DataError(f"does not hold rules: {problem}")
    return rules


def _columns(
    content: Any, cls: type["RuleSet"]
) -> tuple[list[str], Columns, Semantics]:
    """Returns the names of relations, the columns and the semantics."""
    if not isinstance(content, dict) or not isinstance(content.get("head"), Tensor):
        raise DataError("does not hold rules: there are no heads")
    # There were rules before there were estimates.
    none = torch.zeros(len(content["head"]), dtype=torch.bool)
    content = {"estimated": none, **content}
    relations = content.get("relations")
    if not isinstance(relations, list) or not are_texts(relations):
        raise DataError("does not hold rules: 'relations' must be a list of strings")
    others = ("relations", "semantics", "constants")
    names = [one.name for one in fields(cls) if one.name not in others]
    columns = {name: _column(content.get(name), name) for name in names}
    return relations, columns, _semantics(content.get("semantics"))


def _problem(rules: "RuleSet") -> str | None:
    head, steps, number = rules.head, rules.steps, len(rules.relations)
    for one in fields(rules):
        column = getattr(rules, one.name)
        if isinstance(column, np.ndarray) and len(column) != len(head):
            return f"'{one.name}' must have {len(head)} entries (got {len(column)})"
    if steps.shape[1] < 1:
        return "'steps' must have at least one column"
    if len(set(rules.relations)) < number:
        return "'relations' must not repeat"
    if not len(head):
        return None
    if not 0 <= head.min() <= head.max() < number or (np.diff(head) < 0).any():
        return "'head' must hold ids of 'relations' in their order"
    if steps.min() < -1 or steps.max() >= 2 * number or (steps[:, 0] < 0).any():
        return "'steps' must hold codes of 'relations'"
    if ((steps[:, :-1] < 0) & (steps[:, 1:] >= 0)).any():
        return "'steps' must be filled up with -1 at their ends"
    if ((steps >= 0).sum(axis=1)[rules.parallel] != 2).any():
        return "parallel bodies must have two steps"
    for name in MEASURES:
        if (getattr(rules, name) < -1).any():
            return f"'{name}' must hold counts, or -1 where they are unknown"
    return None


def _column(values: Any, name: str) -> Any:
    wanted = torch.bool if name in _FLAGS else torch.int64
    num_dims = 2 if name == "steps" else 1
    is_column = isinstance(values, Tensor) and values.layout == torch.strided
    if not is_column or values.dtype != wanted or values.dim() != num_dims:
        raise DataError(
            f"does not hold rules: '{name}' must be a tensor of {num_dims} dimensions "
            f"and type {wanted}"
        )
    return np.ascontiguousarray(values.numpy(force=True))


def _semantics(values: Any) -> Semantics:
    names = {one.name for one in fields(Semantics)}
    if (
        not isinstance(values, dict)
        or not set(values) <= names
        or not all(isinstance(value, bool) for value in values.values())
    ):
        raise DataError("does not hold rules: the semantics are unknown")
    return Semantics(**values)
