"""Names of whole columns as ids, without a Python object for each row."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.header import TRIPLES, Columns


class Encoded(NamedTuple):
    r"""The three columns of a file, and the names behind their ids.

    Args:
        entities (sequence): The name of each entity id.
        kinds (sequence): The name of each relation or attribute id.
        columns (list): The ids of each column; numerical values as they are.
        first_line (int): The line of the first row.
    """

    entities: Sequence[str]
    kinds: Sequence[str]
    columns: list[NDArray[Any]]
    first_line: int = 1


def encode(columns: Sequence[Any], wanted: Columns, first_line: int = 1) -> Encoded:
    r"""Assigns ids to names in their order of appearance, row by row.

    Args:
        columns (sequence): Three :class:`pyarrow.ChunkedArray` objects, of
            dictionaries, or of numbers for the values.
        wanted (Columns): What the columns are.
        first_line (int, optional): The line of the first row.
            (default: :obj:`1`)
    """
    first, second, third = columns
    kinds, (kind,) = _number(second)
    if wanted.names == TRIPLES:
        entities, (head, tail) = _number(first, third)
        return Encoded(entities, kinds, [head, kind, tail], first_line)
    entities, (entity,) = _number(first)
    values = _as_numpy(third.chunks, np.float64)
    return Encoded(entities, kinds, [entity, kind, values], first_line)


def _number(*columns: Any) -> tuple[list[str], NDArray[np.int64]]:
    """Returns names, and the ids of each column, which share the names."""
    import pyarrow

    chunks = [chunk for column in columns for chunk in column.chunks]
    # Each chunk comes with names of its own.
    chunks = pyarrow.chunked_array(chunks).unify_dictionaries().chunks
    codes = _as_numpy([chunk.indices for chunk in chunks], np.int32)
    codes = codes.reshape(len(columns), -1)
    names = chunks[0].dictionary
    # Row by row from the last to the first, and a tail before its head: of several
    # assignments to one place the last stays, which is where a name appears first.
    appears = np.full(len(names), codes.size)
    appears[codes.T.ravel()[::-1]] = np.arange(codes.size)[::-1]
    order = np.argsort(appears)[: np.count_nonzero(appears < codes.size)]
    new_id = np.empty(len(names), np.int64)
    new_id[order] = np.arange(len(order))
    return names.take(pyarrow.array(order)).to_pylist(), new_id[codes]


def _as_numpy(chunks: Sequence[Any], dtype: type) -> NDArray[Any]:
    """Joins arrays without nulls; their own method would import pandas for it."""
    size = np.dtype(dtype).itemsize
    views: list[NDArray[Any]] = [
        np.frombuffer(chunk.buffers()[1], dtype, len(chunk), chunk.offset * size)
        for chunk in chunks
        if len(chunk) > 0
    ]
    return np.concatenate(views)
