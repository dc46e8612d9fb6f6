"""Rows from whatever a user has: a file, a pandas DataFrame, or plain tuples."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike, RowBlock, columns_by_name, read_rows

Source = PathLike | Iterable[Any]  # a pandas DataFrame counts as an iterable

BLOCK_ROWS = 1 << 16


def source_rows(
    source: Source,
    names: tuple[str, ...],
    header: bool | None = None,
    progress: bool = False,
) -> Iterator[RowBlock]:
    r"""Yields the rows of a source in blocks of strings.

    Args:
        source: A file (see :meth:`read_rows`), a :class:`pandas.DataFrame`
            that has the named columns, in any order, or exactly as many
            unnamed ones, or an iterable of tuples, or of dictionaries that
            have the named keys.
        names (tuple): The names of the expected columns.
        header (bool, optional): See :meth:`read_rows`.
            (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    if isinstance(source, (str, os.PathLike)):
        yield from read_rows(source, names, header, progress)
        return
    rows = iter(_plain_rows(source, names))
    start = 1
    while block := list(islice(rows, BLOCK_ROWS)):
        yield _as_block(block, names, start)
        start += len(block)
    if start == 1:
        raise DataError(f"there are no rows, expected {', '.join(names)}")


def place(source: Source, line: int) -> dict[str, Any]:
    """Returns what tells a :class:`DataError` where in a source it happened."""
    if isinstance(source, (str, os.PathLike)):
        return {"path": source, "line": line}
    return {"path": "row", "line": line}


def _plain_rows(source: Any, names: tuple[str, ...]) -> Iterable[Any]:
    if hasattr(source, "columns"):
        return _frame_rows(source, names)
    # Numbers of arrays and tensors would have odd names.
    return source.tolist() if hasattr(source, "tolist") else source


def _frame_rows(frame: Any, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    columns = list(frame.columns)
    order = columns_by_name(list(map(str, columns)), names)
    if order is not None:
        frame = frame.iloc[:, order]
    elif len(columns) != len(names) or any(isinstance(one, str) for one in columns):
        found = ", ".join(map(str, columns))
        raise DataError(
            f"the DataFrame has the columns {found}, expected {', '.join(names)}"
        )
    return frame.itertuples(index=False, name=None)


def _as_block(rows: list[Any], names: tuple[str, ...], start: int) -> RowBlock:
    columns: list[list[str]] = [[] for _ in names]
    for line, row in enumerate(rows, start):
        fields = _fields(row, names)
        if fields is None:
            message = f"got {row!r}, expected {len(names)}: {', '.join(names)}"
            raise DataError(message, "row", line)
        for name, column, field in zip(names, columns, fields):
            if _is_missing(field):
                raise DataError(f"the {name} is empty", "row", line)
            column.append(str(field))
    return RowBlock(columns, range(start, start + len(rows)))


def _fields(row: Any, names: tuple[str, ...]) -> Sequence[Any] | None:
    if isinstance(row, Mapping):
        order = columns_by_name(list(map(str, row)), names)
        values = list(row.values())
        return None if order is None else [values[place] for place in order]
    row = row.tolist() if hasattr(row, "tolist") else row
    is_row = isinstance(row, Sequence) and not isinstance(row, str)
    return row if is_row and len(row) == len(names) else None


def _is_missing(field: Any) -> bool:
    if isinstance(field, str):
        return not field.strip()
    # NaN differs from itself, and so does NaT; comparing NA tells nothing.
    return field is None or type(field).__name__ == "NAType" or field != field
