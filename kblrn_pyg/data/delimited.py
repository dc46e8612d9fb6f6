"""Large delimited files, read by kernels with the same results as row by row."""

import csv
import logging
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.cells import read_cell
from kblrn_pyg.data.encode import Encoded
from kblrn_pyg.data.header import (
    TRIPLES,
    VALUES,
    Columns,
    header_order,
    may_be_header,
)
from kblrn_pyg.data.rows import BOM, first_row, has_quotes, open_source, separator_of
from kblrn_pyg.data.table import NameTable

if TYPE_CHECKING:
    from kblrn_pyg.kernels.fields import Fields

logger = logging.getLogger(__name__)

# In smaller files, importing Numba takes longer than it saves.
LARGE_BYTES = 1 << 23

# Lines that are read at a time: what is made of them stays in the cache.
READ_BYTES = 1 << 20


class _UnusualError(ValueError):
    """Raised for content that kernels may read differently from
    :meth:`read_rows`."""


class _Rows(NamedTuple):
    """Rows that are split into fields."""

    text: NDArray[np.uint8]
    fields: "Fields"
    is_ascii: bool


def read_large(
    path: Path,
    wanted: Columns,
    progress: bool = False,
    names: NameTable | None = None,
) -> Encoded | None:
    r"""Reads a large file with the same result as :meth:`read_rows`, in less time.

    Returns :obj:`None` if :meth:`read_rows` should read the file instead: if it is
    small, or if anything about it is wrong or unusual, which :meth:`read_rows`
    reports with the line.

    Args:
        path (pathlib.Path): The file.
        wanted (Columns): The columns to read.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        names (NameTable, optional): Names of entities whose ids are kept; others
            get the next ones. (default: :obj:`None`)
    """
    try:
        status = path.stat()
    except OSError:
        return None
    # What comes out of a pipe can be read only once.
    if not stat.S_ISREG(status.st_mode) or status.st_size < LARGE_BYTES:
        return None
    try:
        reader = _Reader(path, wanted, names)
        with open_source(path, progress) as (file, tick):
            for rows in _ahead(map(reader.cut, _whole_lines(file))):
                reader.number(rows)
                tick()
        return reader.encoded()
    except ValueError as error:
        # Errors of the data are ValueErrors, too; they are found once more.
        logger.info("%s is read row by row: %s", path, error)
        return None


def _whole_lines(file: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while content := file.read(READ_BYTES):
        end = content.rfind(b"\n") + 1
        if end == 0 and rest:
            raise _UnusualError("a long line")
        if end > 0:
            yield rest + content[:end]
            rest = b""
        rest += content[end:]
    if rest:
        yield rest


def _ahead(items: Iterator[Any]) -> Iterator[Any]:
    """Prepares the next item while the current one is used."""
    from kblrn_pyg.kernels.threads import default_threads

    if default_threads() == 1:
        yield from items
        return
    end = object()
    with ThreadPoolExecutor(1) as helper:
        coming = helper.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = helper.submit(next, items, end)
            yield item


class _Reader:
    """Reads consecutive blocks of lines, and detects unusual content."""

    def __init__(self, path: Path, wanted: Columns, names: NameTable | None) -> None:
        wanted.check()
        self.path, self.wanted = path, wanted
        self.mark, self.is_csv = "\t", False  # which the first row tells
        self.first: list[str] = []
        self.order: list[int] = []
        self.has_header = False
        self.is_ascii = True
        self.entities = NameTable() if names is None else names.copy()
        self.kinds = NameTable()
        self.blocks: list[list[NDArray[Any]]] = []

    def cut(self, content: bytes) -> _Rows:
        """Cuts a block into fields."""
        from kblrn_pyg.kernels.fields import UNUSUAL, Fields, cut_fields

        if not self.first:
            content = self._begin(content)
        if content.startswith(BOM):
            raise _UnusualError("a byte-order mark inside of the file")
        if self.is_csv:
            self._check_length(content)
        text = np.frombuffer(content, np.uint8)
        num_rows = content.count(b"\n") + (not content.endswith(b"\n"))
        shape = len(self.order), num_rows if content else 0
        fields = Fields(
            *(np.empty(shape, np.int32) for _ in range(2)),
            *(np.empty(shape, np.uint64) for _ in range(2)),
        )
        place_of = np.full(len(self.first), -1)
        place_of[self.order] = np.arange(len(self.order))
        num_names = 2 if self.wanted.names == VALUES else 3
        found, unusual, is_ascii = cut_fields(
            text, ord(self.mark), self.is_csv, place_of, num_names, fields
        )
        if unusual or found != shape[1]:
            raise _UnusualError(UNUSUAL[unusual or 3])
        # Fields that are not read must be text, too.
        if not (is_ascii and len(self.first) == len(self.order)):
            content.decode()
        return _Rows(text, fields, is_ascii)

    def number(self, rows: _Rows) -> None:
        """Gives ids to the names of a block."""
        text, fields, is_ascii = rows
        self.is_ascii &= is_ascii
        kind = self.kinds.number(text, fields, [1])[0]
        if self.wanted.names == TRIPLES:
            head, tail = self.entities.number(text, fields, [0, 2])
            self.blocks.append([head, kind, tail])
        else:
            entity = self.entities.number(text, fields, [0])[0]
            values = _read_values(text, fields.begin[2], fields.end[2])
            self.blocks.append([entity, kind, values])

    def encoded(self) -> Encoded:
        """Returns what was read, unless it is unusual."""
        if not any(len(block[0]) for block in self.blocks):
            raise _UnusualError("there are no rows")
        columns: list[NDArray[Any]] = []
        for place in range(len(self.order)):
            # Of each block, a column is no longer needed when it has been joined.
            parts = [block[place] for block in self.blocks]
            for block in self.blocks:
                block[place] = parts[0][:0]
            dtype = np.int64 if parts[0].dtype.kind == "i" else np.float64
            columns.append(np.concatenate(parts, dtype=dtype))
        if not self.is_ascii:
            self._check_names()
        if not self.has_header and may_be_header(self.first, columns, self.wanted):
            raise _UnusualError("a first row that may be a header")
        line = 2 if self.has_header else 1
        return Encoded(self.entities, self.kinds, columns, line)

    def _check_names(self) -> None:
        """Refuses names without letters, or with unusual spaces around them."""
        for names in (self.entities, self.kinds):
            for name in names:
                stripped = name.strip()
                if not stripped or (self.is_csv and stripped != name):
                    raise _UnusualError("names with unusual spaces")

    def _begin(self, content: bytes) -> bytes:
        """Checks the first row, and skips it if it is a header."""
        content = content.removeprefix(BOM)
        end = content.find(b"\n") + 1 or len(content)
        line = content[:end]
        self.mark = separator_of(self.path, line.decode().rstrip("\r\n"), self.wanted)
        self.is_csv = has_quotes(self.path, self.mark)
        if ord(self.mark) > 127 or (self.is_csv and self.mark.isspace()):
            raise _UnusualError("an unusual separator")
        self.first = first_row(self.path, line, self.wanted)
        found = header_order(self.first, self.wanted, (self.path, 1))
        self.has_header = found is not None
        self.order = list(range(len(self.wanted.names)) if found is None else found)
        if len(set(self.order)) < len(self.order):
            raise _UnusualError("a column that is read twice")
        return content[end:] if self.has_header else content

    def _check_length(self, content: bytes) -> None:
        """Refuses lines that the csv module may refuse."""
        limit, at = csv.field_size_limit(), 0
        while len(content) - at > limit:
            # The last line that ends within the limit, be there others before.
            end = content.rfind(b"\n", at, at + limit + 1)
            if end < 0:
                raise _UnusualError("a line longer than the csv module's fields")
            at = end + 1


def _read_values(
    text: NDArray[np.uint8], begin: NDArray[np.int32], end: NDArray[np.int32]
) -> NDArray[np.float64]:
    """Reads numbers, as Python does, and dates; unknown ones become NaN."""
    from kblrn_pyg.kernels.fields import read_numbers

    values, is_hard = np.empty(len(begin)), np.empty(len(begin), np.bool_)
    read_numbers(text, begin, end, values, is_hard)
    for i in np.flatnonzero(is_hard).tolist():
        written = text[begin[i] : end[i]].tobytes().decode()
        value = read_cell(written)
        if value is None:
            raise _UnusualError("values that are not finite numbers")
        values[i] = value
    return values
