"""The base class of columns of path rules and of rules with constants."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data import DataError, Names

Ids = NDArray[np.int64]

UNKNOWN = -1

_MAX_LISTED = 5


def ratio(part: NDArray[np.integer], whole: NDArray[np.integer]) -> NDArray[np.float64]:
    """Returns quotients, NaN where one of the numbers is unknown."""
    known = (part >= 0) & (whole > 0)
    return np.where(known, part / np.where(known, whole, 1), np.nan)


def _places_in_groups(group: NDArray[np.integer]) -> Ids:
    """Returns the position of each row among those of its group, which is sorted."""
    is_first = np.append(True, group[1:] != group[:-1])[: len(group)]
    begin = np.flatnonzero(is_first)
    return np.arange(len(group)) - np.repeat(begin, np.diff(begin, append=len(group)))


def order_in_groups(values: NDArray[Any], group: NDArray[np.integer]) -> Ids:
    """Returns the order of rows by group, and the largest value first within each."""
    values = np.nan_to_num(values.astype(float), nan=-1.0)
    return np.lexsort((-values, group))


def largest_in_groups(
    values: NDArray[Any], group: NDArray[np.integer], number: int
) -> Ids:
    """Returns the rows with the largest values of each group, the largest first."""
    if not number >= 0:
        raise ValueError(
            f"'max_rules_per_relation' must not be negative (got {number})"
        )
    order = order_in_groups(values, group)
    return order[_places_in_groups(group[order]) < number]


def reaching(rules: Any, **least: float) -> NDArray[np.bool_]:
    """Returns which rules reach all thresholds, given by the names of measures."""
    keep = np.ones(len(rules), bool)
    for measure, value in least.items():
        if value != value:  # which is larger than nothing
            raise ValueError(f"the least {measure} must be a number (got {value})")
        if value > 0:
            keep &= getattr(rules, measure) >= value  # false where unknown
    return keep


def is_among(
    column: NDArray[np.integer], wanted: Iterable[int | str], relations: Sequence[str]
) -> NDArray[np.bool_]:
    """Returns which rows of a column hold relations that are given by name or by id."""
    names = Names("relation", relations)
    is_wanted = np.zeros(len(relations), bool)
    is_wanted[[names.find(one) for one in list_of(wanted)]] = True
    return is_wanted[column]


def list_of(relations: Iterable[int | str]) -> list[int | str]:
    """Lists relations, and refuses a name alone, whose letters would be names."""
    if isinstance(relations, str):
        raise ValueError(f"'relations' must be a list of them (got {relations!r})")
    return list(relations)


def same_columns(one: Any, other: Any, columns: Iterable[str]) -> bool:
    """Returns whether two rule sets have equal columns."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in columns
    )


def check_same_names(
    kind: str, ours: Sequence[str], theirs: Sequence[str], whose: str = "data"
) -> None:
    r"""Refuses names other than those of the rules.

    Args:
        kind (str): The kind of named things, in the plural: :obj:`"relations"`.
        ours (sequence): The names of the rules.
        theirs (sequence): The names of others.
        whose (str, optional): The owner of these names. (default: :obj:`"data"`)
    """
    if ours is theirs or list(ours) == list(theirs):
        return
    only_ours = _listed(set(ours) - set(theirs))
    only_theirs = _listed(set(theirs) - set(ours))
    raise DataError(
        f"the rules are over other {kind} than the {whose}, or in another order "
        f"(only the rules have {only_ours}, only the {whose} {only_theirs})"
    )


def _listed(names: set[str]) -> str:
    """Returns at most a few names."""
    listed = [repr(name) for name in sorted(names)[:_MAX_LISTED]]
    return ", ".join([*listed, "..."] if len(names) > _MAX_LISTED else listed) or "none"
