"""Rows of delimited text files: decoding, splitting, and errors with line numbers."""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, cast

from kblrn_pyg.data.errors import DataError, HeaderError
from kblrn_pyg.data.header import (
    MIN_ROWS,
    TRIPLES,
    WAYS_OUT,
    Columns,
    are_other,
    header_order,
    occurs,
    tells_headers,
)
from kblrn_pyg.data.lines import short_lines
from kblrn_pyg.data.separators import find_separator
from kblrn_pyg.printable import printable
from kblrn_pyg.progress import ProgressBar

PathLike = str | os.PathLike[str]

# Large enough to amortise Python's overhead, small enough to stay in memory.
BLOCK_BYTES = 1 << 22

BOM = b"\xef\xbb\xbf"


class RowBlock(NamedTuple):
    """Some consecutive rows, column by column, and the line of each."""

    columns: list[list[str]]
    lines: Sequence[int]

    def without_first(self) -> "RowBlock":
        """Returns all rows but the first."""
        return RowBlock([column[1:] for column in self.columns], self.lines[1:])


def ending(path: PathLike) -> str:
    """Returns the ending of a file's name, without :obj:`.gz`, in lower case."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def read_rows(
    path: PathLike, wanted: Columns, progress: bool = False
) -> Iterator[RowBlock]:
    r"""Reads a :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file, :obj:`.gz` or not.

    A file whose name ends in :obj:`.csv` has comma-separated, optionally quoted
    fields, and spaces around them are ignored; any other file is split at tabs
    only. If the first row is not valid with this separator, but is with semicolons
    or other separators, these are used. Byte-order marks, CRLF line ends and blank
    lines are tolerated.
    """
    wanted.check()
    path = Path(path)
    order: Sequence[int] = range(len(wanted.names))
    suspect: list[str] = []  # the first row, while it may be a header
    num_rows = 0
    with open_source(path, progress) as (file, tick):
        for i, block in enumerate(_blocks(path, file, wanted)):
            if i == 0:
                first, line = [column[0] for column in block.columns], block.lines[0]
                found = header_order(first, wanted, (path, line))
                if found is not None:
                    block, order = block.without_first(), found
                elif tells_headers(wanted):
                    suspect = first
            block = RowBlock([block.columns[place] for place in order], block.lines)
            _refuse_empty(path, block, wanted)
            others = block if i else block.without_first()
            if suspect and occurs(suspect, others.columns):
                suspect = []
            num_rows += len(block.lines)
            tick()
            if len(block.lines) > 0:
                yield block
    if num_rows == 0:
        raise DataError(f"the file is empty, expected {wanted}", path, 1)
    if suspect and num_rows >= MIN_ROWS and not are_other(suspect, wanted):
        row = ", ".join(suspect)
        message = f"the names {row} do not occur again, are they a header? {WAYS_OUT}"
        raise HeaderError(message, path, line, suspect, wanted.names)


def first_row(path: Path, line: bytes, wanted: Columns) -> list[str]:
    """Splits the first line of a file into its fields."""
    for block in _blocks(path, io.BytesIO(line), wanted):
        return [column[0] for column in block.columns]
    raise DataError(f"the first line is blank, expected {wanted}", path, 1)


@contextmanager
def open_source(
    path: Path, progress: bool = False, has_lines: bool = True
) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    r"""Opens a file for reading, and unzips it if its name ends in :obj:`.gz`.

    Yields the file and a function that updates the progress bar. Lines must not be
    too long; see :meth:`short_lines`. All problems with the file itself raise a
    :class:`DataError`.
    """
    try:
        size = path.stat().st_size
        with (
            open(path, "rb") as raw,
            ProgressBar(
                desc=printable(path.name),
                total=size,
                unit="B",
                unit_scale=True,
                leave=False,
                disable=not progress,
            ) as bar,
        ):
            zipped = path.suffix == ".gz"
            file = cast(BinaryIO, gzip.GzipFile(fileobj=raw) if zipped else raw)
            file = short_lines(path, file) if has_lines else file
            yield file, lambda: bar.update(raw.tell() - bar.n) and None
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"broken gzip data: {error}", path, 1) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    except MemoryError:
        raise DataError("needs more memory than there is", path) from None


def separator_of(path: Path, line: str, wanted: Columns) -> str:
    """Returns the separator of fields in a file, from its first line."""
    if wanted.separator is not None:
        return wanted.separator
    usual = "," if ending(path) == ".csv" else "\t"
    return find_separator(line, usual, wanted.fit)


def has_quotes(path: Path, mark: str) -> bool:
    """Returns whether fields may be quoted, and spaces around them are ignored."""
    return mark != "\t" or ending(path) == ".csv"


def _blocks(path: Path, file: BinaryIO, wanted: Columns) -> Iterator[RowBlock]:
    texts = _texts(path, file)
    first = next(texts, None)
    if first is None:
        return
    line = next((one for one in first[1].splitlines() if one), "")
    mark = separator_of(path, line, wanted)
    parse = _csv_blocks if has_quotes(path, mark) else _tsv_blocks
    yield from parse(path, chain([first], texts), mark, wanted)


Texts = Iterable[tuple[int, str]]


def _tsv_blocks(
    path: Path, texts: Texts, mark: str, wanted: Columns
) -> Iterator[RowBlock]:
    width = 0
    for first, text in texts:
        rows = text.removesuffix("\n").split("\n")
        if "\r" in text:
            rows = [row.removesuffix("\r") for row in rows]
        lines: Sequence[int] = range(first, first + len(rows))
        if not all(rows):
            lines = [line for line, row in zip(lines, rows) if row]
            rows = [row for row in rows if row]
        if rows:
            width = width or _width(rows[0].split(mark), wanted, (path, lines[0]))
            for line, row in zip(lines, rows):
                if row.count(mark) != width - 1:
                    _refuse_width(row.count(mark) + 1, width, wanted, (path, line))
            yield _block(mark.join(rows).split(mark), lines, width)


def _csv_blocks(
    path: Path, texts: Texts, mark: str, wanted: Columns
) -> Iterator[RowBlock]:
    files = (io.StringIO(text, newline="\n") for _, text in texts)
    reader = csv.reader(
        chain.from_iterable(files), delimiter=mark, skipinitialspace=True, strict=True
    )
    width = 0
    fields: list[str] = []
    lines: list[int] = []
    begin = 1
    try:
        for row in reader:
            # A quoted field may span lines: the next row begins after the last one.
            line, begin = begin, reader.line_num + 1
            if not row:
                continue
            width = width or _width(row, wanted, (path, line))
            if len(row) != width:
                _refuse_width(len(row), width, wanted, (path, line))
            fields += map(str.strip, row)
            lines.append(line)
            if len(lines) == BLOCK_BYTES >> 6:
                yield _block(fields, lines, width)
                fields, lines = [], []
    except csv.Error as error:
        raise DataError(f"broken CSV: {error}", path, begin) from None
    if lines:
        yield _block(fields, lines, width)


def _texts(path: Path, file: BinaryIO) -> Iterator[tuple[int, str]]:
    """Yields blocks of whole lines, each with the number of its first line."""
    first = 1
    while lines := file.readlines(BLOCK_BYTES):
        if first == 1:
            lines[0] = lines[0].removeprefix(BOM)
        content = b"".join(lines)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            before = content[: error.start]
            column = error.start - before.rfind(b"\n")
            at = f"byte {content[error.start]:#04x} at column {column}"
            message = f"{at} is not UTF-8, expected UTF-8 text"
            raise DataError(message, path, first + before.count(b"\n")) from None
        yield first, text
        first += len(lines)


def _block(fields: list[str], lines: Sequence[int], width: int) -> RowBlock:
    return RowBlock([fields[column::width] for column in range(width)], lines)


def _refuse_empty(path: Path, block: RowBlock, wanted: Columns) -> None:
    columns = block.columns[: len(wanted.required)]
    if not any("" in column or any(map(str.isspace, column)) for column in columns):
        return
    for line, *fields in zip(block.lines, *columns):
        for name, field in zip(wanted.required, fields):
            if not field.strip():
                message = f"the {name} is empty, expected {wanted}"
                raise DataError(message, path, line)


def _width(first: Sequence[str], wanted: Columns, place: tuple[Path, int]) -> int:
    """Returns how many columns a file has, if its first row tells which to read."""
    width = len(first)
    if wanted.given is None and not wanted.fit(first):
        if width <= len(wanted.names):
            if width == 1 and wanted.separator is not None:
                message = f"one column when split at {wanted.separator!r}"
                raise DataError(f"{message}, expected {wanted}", *place)
            _refuse_width(width, len(wanted.names), wanted, place)
        message = f"{width} columns ({', '.join(first)}), expected {wanted}"
        ways_out = "say which these are by columns=(...), or --columns A,B,C"
        if wanted.names != TRIPLES:
            ways_out = ways_out.replace("columns", "numerical_columns", 1)
            ways_out = ways_out.replace("--columns", "--numerical-columns")
        message = f"{message}; {ways_out}"
        raise HeaderError(message, *place, list(first), wanted.names)
    return width


def _refuse_width(
    found: int, width: int, wanted: Columns, place: tuple[Path, int]
) -> NoReturn:
    columns = "1 column" if found == 1 else f"{found} columns"
    is_usual = width == len(wanted.names)
    expected = str(wanted) if is_usual else f"{width} as in the first row"
    raise DataError(f"{columns}, expected {expected}", *place)
