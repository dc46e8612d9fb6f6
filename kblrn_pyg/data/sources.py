"""Rows of any source: a file, a pandas DataFrame, or plain tuples."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from kblrn_pyg.data.delimited import read_large
from kblrn_pyg.data.encode import Encoded
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.header import Columns
from kblrn_pyg.data.parquet import read_parquet
from kblrn_pyg.data.rows import PathLike, RowBlock, read_rows
from kblrn_pyg.data.table import NameTable

Source = PathLike | Iterable[Any]  # a pandas DataFrame counts as an iterable

BLOCK_ROWS = 1 << 16


def source_rows(
    source: Source, wanted: Columns, progress: bool = False
) -> Iterator[RowBlock]:
    r"""Yields the rows of a source in blocks of strings.

    A source is a file (see :meth:`read_rows`), a :class:`pandas.DataFrame` that
    has the named columns, in any order, or exactly as many unnamed ones, a
    :obj:`TriplesFactory` of PyKEEN, or an iterable of tuples, or of dictionaries that
    have the named keys, as a :obj:`Dataset` of Hugging Face is.
    """
    if isinstance(source, (str, os.PathLike)):
        yield from read_rows(source, wanted, progress)
        return
    rows, start = iter(_plain_rows(source, wanted)), 1
    while block := list(islice(rows, BLOCK_ROWS)):
        yield _as_block(block, wanted, start)
        start += len(block)
    if start == 1:
        raise DataError(f"there are no rows, expected {', '.join(wanted.names)}")


def source_columns(
    source: Source,
    wanted: Columns,
    progress: bool = False,
    names: NameTable | None = None,
) -> Encoded | None:
    r"""Reads a source whole, if it is a Parquet or another large file.

    Otherwise :meth:`source_rows` reads it. Ids of given names may be kept.
    """
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = Path(source)
    if path.suffix.lower() == ".parquet":
        return read_parquet(path, wanted, progress)
    return read_large(path, wanted, progress, names)


def place(source: Source, line: int) -> dict[str, Any]:
    """Returns the arguments of a :class:`DataError` about a row of a source."""
    is_file = isinstance(source, (str, os.PathLike))
    return {"path": source if is_file else "row", "line": line}


def _plain_rows(source: Any, wanted: Columns) -> Iterable[Any]:
    if hasattr(source, "mapped_triples"):  # the triples of PyKEEN
        source = getattr(source, "triples", source.mapped_triples)
    if not hasattr(source, "columns"):
        # Numbers of arrays and tensors would have odd names.
        return source.tolist() if hasattr(source, "tolist") else source
    found, frame = list(source.columns), source
    order = wanted.find(list(map(str, found)))
    if order is not None:
        frame = frame.iloc[:, order]
    elif len(found) != len(wanted.names) or any(isinstance(one, str) for one in found):
        raise DataError(
            f"the DataFrame has the columns {', '.join(map(str, found))}, expected "
            f"{', '.join(wanted.given or wanted.names)}"
        )
    return frame.itertuples(index=False, name=None)


def _as_block(rows: list[Any], wanted: Columns, start: int) -> RowBlock:
    block: list[list[str]] = [[] for _ in wanted.names]
    num_required = len(wanted.required)
    for line, row in enumerate(rows, start):
        fields = _fields(row, wanted)
        if fields is None:
            names = ", ".join(wanted.given or wanted.names)
            message = f"got {row!r}, expected {len(wanted.names)}: {names}"
            raise DataError(message, "row", line)
        for i, (column, field) in enumerate(zip(block, fields)):
            is_missing = _is_missing(field)
            if is_missing and i < num_required:
                raise DataError(f"the {wanted.names[i]} is empty", "row", line)
            column.append("" if is_missing else str(field))
    return RowBlock(block, range(start, start + len(rows)))


def _fields(row: Any, wanted: Columns) -> Sequence[Any] | None:
    if isinstance(row, Mapping):
        order = wanted.find(list(map(str, row)))
        values = list(row.values())
        return None if order is None else [values[place] for place in order]
    row = row.tolist() if hasattr(row, "tolist") else row
    is_row = isinstance(row, Sequence) and not isinstance(row, str)
    return row if is_row and len(row) == len(wanted.names) else None


def _is_missing(field: Any) -> bool:
    if isinstance(field, str):
        return not field.strip()
    # NaN differs from itself, and so does NaT; comparing NA tells nothing.
    return field is None or type(field).__name__ == "NAType" or field != field
