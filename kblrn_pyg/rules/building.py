"""Validates rules in any order and turns them into columns."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np

from kblrn_pyg.rules.columns import UNKNOWN, Ids
from kblrn_pyg.rules.semantics import Semantics

MEASURES = ("support", "head_size", "body_size", "pca_body_size")


def rule_columns(
    head: Iterable[int],
    steps: Iterable[Sequence[int]],
    parallel: Iterable[bool] | None,
    estimated: Iterable[bool] | None,
    measures: Mapping[str, Iterable[int]],
) -> dict[str, Any]:
    r"""Returns the columns of rules by name; see :meth:`RuleSet.build`.

    Args:
        head (iterable): The relation that each rule predicts.
        steps (iterable): The codes of each body.
        parallel (iterable, optional): Whether the steps are parallel.
        estimated (iterable, optional): Whether the sizes of each body are estimates.
        measures (dict): The columns of measures that are known.
    """
    heads = np.array(list(head), np.int64)
    bodies = [list(body) for body in steps]
    are_parallel = [False] * len(heads) if parallel is None else list(parallel)
    estimates = [False] * len(heads) if estimated is None else list(estimated)
    unknown = sorted(set(measures) - set(MEASURES))
    if unknown:
        raise ValueError(f"'measures' must be among {MEASURES} (got {unknown})")
    columns: dict[str, Any] = {name: np.full(len(heads), UNKNOWN) for name in MEASURES}
    columns |= {name: np.array(list(c), np.int64) for name, c in measures.items()}
    given: dict[str, Sized] = {
        "steps": bodies,
        "parallel": are_parallel,
        "estimated": estimates,
        **columns,
    }
    for name, values in given.items():
        if len(values) != len(heads):
            raise ValueError(
                f"'{name}' must have {len(heads)} entries, as 'head' "
                f"(got {len(values)})"
            )
    table = np.full((len(heads), max(map(len, bodies), default=1)), UNKNOWN)
    for i, body in enumerate(bodies):
        _check_body(int(heads[i]), body, are_parallel[i])
        # The two steps of a parallel body have no order.
        table[i, : len(body)] = sorted(body) if are_parallel[i] else body
    return {
        "head": heads,
        "steps": table,
        "parallel": np.array(are_parallel, bool),
        "estimated": np.array(estimates, bool),
        **columns,
    }


def check_codes(
    head: Ids, steps: Ids, num_relations: int, semantics: Semantics
) -> None:
    r"""Refuses rules about unknown relations, or rules that contradict their
    semantics.

    Args:
        head (numpy.ndarray): The relation that each rule predicts.
        steps (numpy.ndarray): The codes of each body, filled up with -1.
        num_relations (int): The number of relations.
        semantics (Semantics): The semantics of the bodies.
    """
    if len(head) and not 0 <= head.min() <= head.max() < num_relations:
        raise ValueError("'head' must hold ids of 'relations'")
    if len(steps) and steps.max() >= 2 * num_relations:
        raise ValueError("'steps' must hold codes of 'relations'")
    if not semantics.head_in_body and (steps >> 1 == head[:, None]).any():
        raise ValueError("'steps' must not hold 'head' if 'head_in_body' is False")


def _check_body(relation: int, body: list[int], is_parallel: bool) -> None:
    if not body or min(body) < 0:
        raise ValueError(f"a body must have codes of at least 0 (got {body})")
    if is_parallel and (len(body) != 2 or body[0] == body[1]):
        raise ValueError(f"a parallel body must have two different steps (got {body})")
    if 2 * relation in body and (is_parallel or len(body) == 1):
        raise ValueError(f"a body must not contain its own head (got {body})")
