"""Rules out of files: kernels follow their codes, so that these are checked first."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.packing import are_texts
from kblrn_pyg.rules.semantics import Semantics

if TYPE_CHECKING:
    from kblrn_pyg.rules.ruleset import RuleSet

Columns = dict[str, Any]

_FLAGS = ("parallel", "estimated")


def stored_columns(
    content: Any, cls: type["RuleSet"]
) -> tuple[list[str], Columns, Semantics]:
    r"""Returns the names of relations, the columns and the semantics of stored rules.

    Args:
        content (dict): What :meth:`RuleSet.to_dict` returned.
        cls (type): The class of rule sets.
    """
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


def check_rules(rules: "RuleSet") -> None:
    r"""Refuses rules that are not as :meth:`RuleSet.build` makes them.

    Args:
        rules (RuleSet): The rules.
    """
    problem = _problem(rules)
    if problem is not None:
        raise DataError(f"does not hold rules: {problem}")


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
    for name in ("support", "head_size", "body_size", "pca_body_size"):
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
