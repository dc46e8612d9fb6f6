"""Wide tables of numbers: a row for each entity, a column for each attribute."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from kblrn_pyg.data.cells import read_cell
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.header import VALUES, Columns
from kblrn_pyg.data.parquet import column_names, read_table
from kblrn_pyg.data.rows import RowBlock, ending, separator_of
from kblrn_pyg.data.separators import sample_lines, split_line
from kblrn_pyg.data.sources import Source, place, source_rows

# Columns that pandas writes for rows without names.
_INDEX = re.compile(r"|unnamed: \d+|__index_level_\d+__|index")


class Header(NamedTuple):
    """The columns of a table, and some of its rows."""

    names: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class WideTable:
    r"""The rows of a wide table as (entity, attribute, value) rows.

    Args:
        source: The file, data frame, or iterable of dictionaries.
        wanted (Columns): Its columns, that of entities first.
    """

    source: Source
    wanted: Columns

    @property
    def attributes(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return self.wanted.names[1:]

    def blocks(self, progress: bool = False) -> Iterator[RowBlock]:
        """Yields (entity, attribute, value) rows with their lines."""
        is_table = isinstance(self.source, (str, os.PathLike))
        source: Source = self.source
        if is_table and ending(str(source)) == ".parquet":
            source = read_table(Path(str(source)), self.wanted)
        for block in source_rows(source, self.wanted, progress):
            entities, *columns = block.columns
            width = len(columns)
            yield RowBlock(
                [
                    [entity for entity in entities for _ in range(width)],
                    list(self.attributes) * len(entities),
                    [cell for row in zip(*columns) for cell in row],
                ],
                [line for line in block.lines for _ in range(width)],
            )


def wide_table(
    source: Source, wanted: Columns, is_wide: bool | None = None
) -> WideTable | None:
    r"""Returns the table if the numbers form a wide table.

    Args:
        source: A file, a :class:`pandas.DataFrame`, or an iterable.
        wanted (Columns): The columns to read if the table is not wide. If
            :obj:`is_wide` is set, given columns are those of a wide table, that of
            entities first.
        is_wide (bool, optional): Whether the table is wide. (default: :obj:`None`:
            if it has a header that is not that of (entity, attribute, value) rows,
            and its second column has numbers)
    """
    if is_wide is False or (wanted.given is not None and not is_wide):
        return None
    header = _header_of(source, wanted)
    if header is None or not (is_wide or _looks_wide(header, wanted)):
        if is_wide:
            message = "a wide table needs a header, in a file that can be read twice"
            raise DataError(message, **place(source, 1))
        return None
    names = _chosen(header.names, wanted.given, source)
    columns = replace(
        wanted, names=tuple(names), header=True, given=names, num_required=1
    )
    return WideTable(source, columns)


def _chosen(found: list[str], given: Sequence[str] | None, source: Source) -> list[str]:
    """Returns the columns to read, the one of entities first."""
    folded = [name.strip().lower() for name in found]
    if given is not None:
        for name in given:
            if name.strip().lower() not in folded:
                message = f"the columns are {', '.join(found)}, expected {name}"
                raise DataError(message, **place(source, 1))
        return [found[folded.index(name.strip().lower())] for name in given]
    first = folded.index(VALUES[0]) if VALUES[0] in folded else 0
    entity, rest = found[first], found[:first] + found[first + 1 :]
    names = [entity, *(one for one in rest if not _is_index(one))]
    repeated = [name for name, count in Counter(folded).items() if count > 1]
    if repeated:
        message = f"several columns are called {repeated[0]!r}, expected one"
        raise DataError(message, **place(source, 1))
    return names


def _is_index(name: str) -> bool:
    return _INDEX.fullmatch(name.strip().lower()) is not None


def _header_of(source: Any, wanted: Columns) -> Header | None:
    if hasattr(source, "columns") and hasattr(source, "head"):
        names = list(source.columns)
        if not all(isinstance(name, str) for name in names):
            return None
        rows = source.head(100).astype(object).values.tolist()
        return Header(names, [list(map(_text, row)) for row in rows])
    if not isinstance(source, (str, os.PathLike)):
        return None
    path = Path(source)
    if path.suffix.lower() == ".parquet":
        names = column_names(path)
        every = replace(wanted, names=tuple(names), given=names)
        rows = [row for _, row in zip(range(100), read_table(path, every))]
        return Header(names, [[_text(row[name]) for name in names] for row in rows])
    lines = sample_lines(path)
    if not lines:
        return None
    mark = separator_of(path, lines[0].rstrip("\r\n"), wanted)
    names, *rows = [split_line(line, mark) for line in lines]
    return Header(names, [row for row in rows if len(row) == len(names)])


def _text(cell: Any) -> str:
    return "" if cell is None or cell != cell else str(cell)


def _looks_wide(header: Header, wanted: Columns) -> bool:
    names, rows = header
    is_header = len(names) >= 2 and all(
        read_cell(name) is None for name in names[1:] if not _is_index(name)
    )
    if not is_header or wanted.header is False or wanted.find(names) is not None:
        return False
    if len(names) != len(VALUES):
        return True
    # Three columns may be (entity, attribute, value) rows with an unknown header:
    # then the second one has names.
    second = [read_cell(row[1], ",") for row in rows]  # reads decimal points, too
    return bool(rows) and all(value is not None for value in second)
