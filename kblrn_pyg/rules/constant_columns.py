"""Columns of rules with constants: what they are, and what they must not hold."""

from collections.abc import Sequence
from typing import Any

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
    """Returns values as a column, after a look at whether they fit."""
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


def check_ranges(columns: dict[str, Column], num_codes: int, num_entities: int) -> None:
    """Refuses columns of different lengths, and ids that do not exist."""
    size = len(columns["head_code"])
    for name, column in columns.items():
        if column.ndim != 1 or len(column) != size:
            raise ValueError(
                f"'{name}' must have {size} entries, as 'head_code' "
                f"(got {list(column.shape)})"
            )
    limits = {
        "head_code": (0, num_codes - 1),
        "head_entity": (0, num_entities - 1),
        "body_code": (NO_BODY, num_codes - 1),
        "body_entity": (ANY, num_entities - 1),
        **{name: (UNKNOWN, np.iinfo(np.int32).max) for name in MEASURES},
    }
    for name, (low, high) in limits.items() if size else ():
        least, most = columns[name].min(), columns[name].max()
        if least < low or most > high:
            raise ValueError(
                f"'{name}' must lie in {low} to {high} (got {least} to {most})"
            )


def check_columns(
    columns: dict[str, Column], num_codes: int, num_entities: int
) -> None:
    """Refuses columns that do not describe rules."""
    check_ranges(columns, num_codes, num_entities)
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
    """Tells whether rows ascend, and so differ."""
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
