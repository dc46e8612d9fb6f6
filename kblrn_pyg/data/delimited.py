"""Large delimited files, read by pyarrow where that makes no difference but time."""

import csv
import logging
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from kblrn_pyg.data.encode import Encoded, encode
from kblrn_pyg.data.rows import (
    BOM,
    VALUES,
    Columns,
    ending,
    first_row,
    header_order,
    may_be_header,
    open_source,
)

logger = logging.getLogger(__name__)

# In smaller files, importing pyarrow takes longer than it saves.
LARGE_BYTES = 1 << 23

# Lines that are read at a time have names of their own, which are joined later:
# the more lines, the fewer names. Threads split them into blocks that stay in cache.
READ_BYTES = 1 << 26
BLOCK_BYTES = 1 << 22


class _UnusualError(ValueError):
    """Something that pyarrow may read in another way than :meth:`read_rows`."""


def read_large(path: Path, wanted: Columns, progress: bool = False) -> Encoded | None:
    r"""Reads a large file as :meth:`read_rows` does, in less time.

    Returns :obj:`None` if :meth:`read_rows` is to read the file: if it is small,
    if pyarrow is not installed, or if there is anything wrong or unusual about
    the file, which :meth:`read_rows` tells with its line.

    Args:
        path (pathlib.Path): The file.
        wanted (Columns): The columns to read.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    try:
        status = path.stat()
        # What comes out of a pipe can be read only once.
        if not stat.S_ISREG(status.st_mode) or status.st_size < LARGE_BYTES:
            return None
        import pyarrow.csv
    except (OSError, ImportError):
        return None
    try:
        with open_source(path, progress) as (file, tick):
            tables = []
            reader = _Reader(path, wanted)
            for content in _whole_lines(file):
                tables += reader.read(content)
                tick()
        table = pyarrow.concat_tables(tables)
        names = map(str, reader.order)
        encoded = encode([table[name] for name in names], wanted, reader.first_line)
        reader.check(encoded)
    except (ValueError, pyarrow.ArrowException) as error:
        # Errors of the data are ValueErrors, too; they are found once more.
        logger.info("%s is read row by row: %s", path, error)
        return None
    return encoded


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


class _Reader:
    """Reads blocks of lines, each by itself, and notices what is unusual."""

    def __init__(self, path: Path, wanted: Columns) -> None:
        wanted.check()
        self.path, self.wanted = path, wanted
        self.is_csv = ending(path) == ".csv"
        self.first: list[str] = []
        self.order: list[int] = []
        self.has_header = False

    @property
    def first_line(self) -> int:
        """The line of the first row."""
        return 2 if self.has_header else 1

    def read(self, content: bytes) -> list[Any]:
        """Returns the rows of a block, which has no table if it has no rows."""
        from pyarrow import BufferReader
        from pyarrow.csv import read_csv

        if not self.first:
            content = self._begin(content)
        if not content:
            return []
        num_lines = self._check_content(content)
        table = read_csv(BufferReader(content), *self._options())
        # Not so if there are blank lines, or quoted fields that span lines.
        if table.num_rows != num_lines:
            raise _UnusualError("lines that are not rows")
        return [self._encode(table)]

    def _encode(self, table: Any) -> Any:
        """Turns the names of each column into ids and distinct names."""
        import pyarrow

        # Numba takes long to import, and small files do without it.
        from kblrn_pyg.kernels.threads import no_scratch, run_slices

        def encode_columns(places: slice, _: None) -> list[Any]:
            columns = (column.combine_chunks() for column in table.columns[places])
            return [
                column.dictionary_encode() if column.type == names else column
                for column in columns
            ]

        names = pyarrow.string()
        parts = run_slices(encode_columns, table.num_columns, no_scratch)
        return pyarrow.table(list(chain.from_iterable(parts)), table.column_names)

    def check(self, encoded: Encoded) -> None:
        """Refuses names that are not as they are written, and unknown headers."""
        for names in (encoded.entities, encoded.kinds):
            if not self._are_plain(names):
                raise _UnusualError("names with spaces or quotes, or without letters")
        values = encoded.columns[-1]
        if self.wanted.names == VALUES and not np.isfinite(values).all():
            raise _UnusualError("values that are not finite")
        if not self.has_header and may_be_header(
            self.first, encoded.columns, self.wanted
        ):
            raise _UnusualError("a first row that may be a header")

    def _begin(self, content: bytes) -> bytes:
        """Looks at the first row, and leaves it out if it is a header."""
        content = content.removeprefix(BOM)
        end = content.find(b"\n") + 1 or len(content)
        self.first = first_row(self.path, content[:end], self.wanted)
        found = header_order(self.first, self.wanted, (self.path, 1))
        self.has_header = found is not None
        self.order = list(range(len(self.wanted.names)) if found is None else found)
        if len(set(self.order)) < len(self.order):
            raise _UnusualError("a column that is read twice")
        return content[end:] if self.has_header else content

    def _check_content(self, content: bytes) -> int:
        """Refuses what pyarrow reads in another way, and counts the lines."""
        content.decode()
        if content.startswith(BOM) or b"\0" in content:
            raise _UnusualError("a byte-order mark or NUL inside of the file")
        if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
            raise _UnusualError("a carriage return inside of a line")
        ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n"))
        if not content.endswith(b"\n"):
            ends = np.append(ends, len(content))
        if self.is_csv:
            self._check_quotes(content)
            if np.diff(ends, prepend=-1).max() > csv.field_size_limit():
                raise _UnusualError("a line longer than the csv module's fields")
        return len(ends)

    def _check_quotes(self, content: bytes) -> None:
        """Refuses quotes that do not enclose whole fields.

        No name begins with a comma, has a quote or spans lines, which is checked
        later. So a quote before a comma or a line end closes a field, and if those
        are half of all quotes, nothing stands between any such quote and the end
        of its field. This is only known of columns that are read.
        """
        num_quotes = content.count(b'"')
        if num_quotes == 0:
            return
        ends = (b'",', b'"\n', b'"\r\n')
        num_closing = sum(map(content.count, ends)) + content.endswith(b'"')
        is_wide = len(self.first) > len(self.wanted.names)
        if is_wide or num_quotes != 2 * num_closing:
            raise _UnusualError("quotes inside of fields")

    def _are_plain(self, names: list[str]) -> bool:
        stripped = list(map(str.strip, names))
        if not self.is_csv or not all(stripped):
            return all(stripped)
        text = "\n".join(["", *names])
        return stripped == names and '"' not in text and "\n," not in text

    def _options(self) -> tuple[Any, Any, Any]:
        import pyarrow
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions

        from kblrn_pyg.kernels.threads import default_threads

        types = {str(place): pyarrow.string() for place in self.order}
        if self.wanted.names == VALUES:
            types[str(self.order[-1])] = pyarrow.float64()
        return (
            ReadOptions(
                column_names=[str(place) for place in range(len(self.first))],
                block_size=BLOCK_BYTES,
                use_threads=default_threads() > 1,
            ),
            ParseOptions(
                delimiter="," if self.is_csv else "\t",
                quote_char='"' if self.is_csv else False,
            ),
            ConvertOptions(
                include_columns=list(types), column_types=types, null_values=[]
            ),
        )
