"""Rows from whatever a user has: a file, a pandas DataFrame, or plain tuples."""

import math
import os
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike, RowBlock, read_rows

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
            that has the named columns or exactly as many unnamed ones, or an
            iterable of tuples.
        names (tuple): The names of the expected columns.
        header (bool, optional): See :meth:`read_rows`.
            (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    if isinstance(source, (str, os.PathLike)):
        yield from read_rows(source, names, header, progress)
        return
    rows = iter(_frame_rows(source, names) if hasattr(source, "columns") else source)
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


def _frame_rows(frame: Any, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    if set(names) <= set(frame.columns):
        frame = frame[list(names)]
    elif len(frame.columns) != len(names):
        found = ", ".join(map(str, frame.columns))
        raise DataError(
            f"the DataFrame has the columns {found}, expected {', '.join(names)}"
        )
    return frame.itertuples(index=False, name=None)


def _as_block(rows: list[Any], names: tuple[str, ...], start: int) -> RowBlock:
    columns: list[list[str]] = [[] for _ in names]
    for line, row in enumerate(rows, start):
        if isinstance(row, str) or len(row) != len(names):
            message = f"got {row!r}, expected {len(names)}: {', '.join(names)}"
            raise DataError(message, "row", line)
        for name, column, field in zip(names, columns, row):
            if _is_missing(field):
                raise DataError(f"the {name} is empty", "row", line)
            column.append(str(field))
    return RowBlock(columns, range(start, start + len(rows)))


def _is_missing(field: Any) -> bool:
    if isinstance(field, str):
        return not field.strip()
    return field is None or (isinstance(field, float) and math.isnan(field))
