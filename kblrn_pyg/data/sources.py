"""Rows of any source: a file, a pandas DataFrame, or plain tuples."""

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
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
    columns: Sequence[str] | None = None,
    other_names: Container[str] = (),
    progress: bool = False,
) -> Iterator[RowBlock]:
    r"""Yields the rows of a source in blocks of strings.

    Args:
        source: A file (see :meth:`read_rows`), a :class:`pandas.DataFrame`
            that has the named columns, in any order, or exactly as many
            unnamed ones, or an iterable of tuples, or of dictionaries that
            have the named keys.
        names (tuple): The names of the expected columns.
        header (bool, optional): Whether the first row of a file is a header;
            see :meth:`read_rows`. (default: :obj:`None`)
        columns (sequence, optional): What the columns or keys are called
            instead. (default: :obj:`None`)
        other_names (container, optional): See :meth:`read_rows`.
            (default: :obj:`()`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    if isinstance(source, (str, os.PathLike)):
        yield from read_rows(source, names, header, columns, other_names, progress)
        return
    rows = iter(_plain_rows(source, names, columns))
    start = 1
    while block := list(islice(rows, BLOCK_ROWS)):
        yield _as_block(block, names, columns, start)
        start += len(block)
    if start == 1:
        raise DataError(f"there are no rows, expected {', '.join(names)}")


def place(source: Source, line: int) -> dict[str, Any]:
    """Returns the arguments of a :class:`DataError` about a row of a source."""
    if isinstance(source, (str, os.PathLike)):
        return {"path": source, "line": line}
    return {"path": "row", "line": line}


def _plain_rows(
    source: Any, names: tuple[str, ...], columns: Sequence[str] | None
) -> Iterable[Any]:
    if hasattr(source, "columns"):
        return _frame_rows(source, names, columns)
    # Numbers of arrays and tensors would have odd names.
    return source.tolist() if hasattr(source, "tolist") else source


def _frame_rows(
    frame: Any, names: tuple[str, ...], columns: Sequence[str] | None
) -> Iterator[tuple[Any, ...]]:
    found = list(frame.columns)
    order = columns_by_name(list(map(str, found)), names, columns)
    if order is not None:
        frame = frame.iloc[:, order]
    elif len(found) != len(names) or any(isinstance(one, str) for one in found):
        raise DataError(
            f"the DataFrame has the columns {', '.join(map(str, found))}, expected "
            f"{', '.join(columns or names)}"
        )
    return frame.itertuples(index=False, name=None)


def _as_block(
    rows: list[Any], names: tuple[str, ...], columns: Sequence[str] | None, start: int
) -> RowBlock:
    block: list[list[str]] = [[] for _ in names]
    for line, row in enumerate(rows, start):
        fields = _fields(row, names, columns)
        if fields is None:
            wanted = f"{len(names)}: {', '.join(columns or names)}"
            raise DataError(f"got {row!r}, expected {wanted}", "row", line)
        for name, column, field in zip(names, block, fields):
            if _is_missing(field):
                raise DataError(f"the {name} is empty", "row", line)
            column.append(str(field))
    return RowBlock(block, range(start, start + len(rows)))


def _fields(
    row: Any, names: tuple[str, ...], columns: Sequence[str] | None
) -> Sequence[Any] | None:
    if isinstance(row, Mapping):
        order = columns_by_name(list(map(str, row)), names, columns)
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
