"""Columns of rules with constants, and checks of their content."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from kblrn_pyg.data import DataError
from kblrn_pyg.kernels.constant_rules import stable_order
from kblrn_pyg.rules.columns import UNKNOWN

# There may be many millions of rules: every column has four bytes a rule.
Column = NDArray[np.int32]

ANY = -1  # in place of the entity of a body: there is some entity
NO_BODY = -1  # in place of the code of a body

HEAD_AND_BODY = ("head_code", "head_entity", "body_code", "body_entity")
MEASURES = ("support", "body_size", "pca_body_size")
COLUMNS = (*HEAD_AND_BODY, *MEASURES)


def as_column(name: str, values: ArrayLike) -> Column:
    """Returns values as a column, after checking them."""
    array = np.asarray(values)
    if array.size == 0:
        return np.empty(0, np.int32)
    is_whole = array.ndim == 1 and np.issubdtype(array.dtype, np.integer)
    limits = np.iinfo(np.int32)
    if not is_whole or array.min() < limits.min or array.max() > limits.max:
        raise ValueError(f"'{name}' must be one row of integers of at most 32 bits")
    return array.astype(np.int32)


def column_of_tensor(name: str, values: Any) -> Column:
    """Returns a tensor of a file as a column."""
    if not isinstance(values, Tensor) or values.dtype != torch.int32:
        raise DataError(f"'{name}' must be a tensor of type int32")
    return values.numpy()


class Sizes(NamedTuple):
    r"""The numbers of ids that rules may use.

    Args:
        num_codes (int): The number of codes of steps.
        num_entities (int): The number of entities.
        num_intervals (numpy.ndarray): The number of intervals of each attribute.
            The codes of attributes follow those of steps, and intervals take the
            place of entities.
    """

    num_codes: int
    num_entities: int
    num_intervals: NDArray[np.int64]

    @property
    def most_in_body(self) -> int:
        """How many entities or intervals the atom of a body may have, at most."""
        return max(self.num_entities, *self.num_intervals.tolist(), 0)

    @classmethod
    def of(
        cls, relations: Sequence[str], entities: Sequence[str], intervals: Any
    ) -> "Sizes":
        """Counts the names of rules and their intervals, if there are any."""
        ptr = np.zeros(1, np.int64) if intervals is None else intervals.ptr
        return cls(2 * len(relations), len(entities), np.diff(ptr))


def check_ranges(columns: dict[str, Column], sizes: Sizes) -> None:
    """Refuses columns of different lengths, and unknown ids."""
    size = len(columns["head_code"])
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != size:
            raise ValueError(
                f"'{name}' must have {size} entries, as 'head_code' "
                f"(got {list(column.shape)})"
            )
    limits = {
        "head_code": (0, sizes.num_codes - 1),
        "head_entity": (0, sizes.num_entities - 1),
        "body_code": (NO_BODY, sizes.num_codes + len(sizes.num_intervals) - 1),
        "body_entity": (ANY, sizes.most_in_body - 1),
        **{name: (UNKNOWN, np.iinfo(np.int32).max) for name in MEASURES},
    }
    for name, (low, high) in limits.items() if size else ():
        least, most = columns[name].min(), columns[name].max()
        if least < low or most > high:
            raise ValueError(
                f"'{name}' must lie in {low} to {high} (got {least} to {most})"
            )
    code, entity = columns["body_code"], columns["body_entity"]
    is_number = code >= sizes.num_codes
    most = np.full(size, sizes.num_entities)
    most[is_number] = sizes.num_intervals[code[is_number] - sizes.num_codes]
    if (entity >= most).any():
        raise ValueError("'body_entity' must hold entities, or intervals of attributes")


def check_columns(columns: dict[str, Column], sizes: Sizes) -> None:
    """Refuses columns that do not describe rules."""
    check_ranges(columns, sizes)
    head, head_entity, body, body_entity = (columns[name] for name in HEAD_AND_BODY)
    if (np.diff(head >> 1) < 0).any():
        raise ValueError("'head_code' must be ordered by relation")
    if (body_entity[body == NO_BODY] != ANY).any():
        raise ValueError("'body_entity' must be -1 where there is no body")
    same_entity = (body_entity == ANY) | (body_entity == head_entity)
    if ((body == head) & same_entity).any():
        raise ValueError("a body must not be part of what its head says")
    _check_part(columns, "support", "pca_body_size")
    _check_part(columns, "support", "body_size")
    _check_part(columns, "pca_body_size", "body_size")


def _check_part(columns: dict[str, Column], part: str, whole: str) -> None:
    is_known = columns[whole] >= 0
    if (columns[part] > columns[whole])[is_known].any():
        raise ValueError(f"'{part}' must be at most '{whole}'")


def is_ascending(columns: Sequence[Column]) -> bool:
    """Returns whether rows ascend, and so differ."""
    is_less = np.zeros(max(len(columns[0]) - 1, 0), bool)
    is_same = ~is_less
    for column in columns:
        is_less |= is_same & (column[1:] > column[:-1])
        is_same &= column[1:] == column[:-1]
    return bool(is_less.all())


def order_of(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Returns the order of rows that :meth:`numpy.lexsort` gives, in less time.

    The first column counts most. All values are at least -1.
    """
    order = np.arange(len(columns[0]))
    for column in reversed(columns) if len(order) else ():
        key = column[order] + 1
        order = order[stable_order(key, int(key.max()) + 1)]
    return order


def repeated_rows(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Returns which rows were there before."""
    size = len(columns[0])
    repeated = np.zeros(size, bool)
    if is_ascending(columns):  # as mined rules are, without sorting them
        return repeated
    order = order_of(columns)
    is_same = np.ones(max(size - 1, 0), bool)
    for column in columns:
        is_same &= column[order[1:]] == column[order[:-1]]
    repeated[order[1:][is_same]] = True
    return repeated
