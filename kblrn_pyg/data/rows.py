"""Rows of delimited text files: decoding, splitting, and errors with line numbers."""

import csv
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from tqdm import tqdm

from kblrn_pyg.data.errors import DataError

PathLike = str | os.PathLike[str]

# Large enough to amortise Python's overhead, small enough to stay in memory.
BLOCK_BYTES = 1 << 22

# What people call the three columns, in their order.
_HEADERS = (
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("source", "relation", "target"),
    ("h", "r", "t"),
    ("s", "p", "o"),
    ("entity", "attribute", "value"),
)


@dataclass(frozen=True)
class RowBlock:
    r"""Some consecutive rows of a file, column by column.

    Args:
        columns (list): One list of strings for each column.
        lines (sequence): The line number of each row.
    """

    columns: list[list[str]]
    lines: Sequence[int]

    def without_first(self) -> "RowBlock":
        """Returns all rows but the first."""
        return RowBlock([column[1:] for column in self.columns], self.lines[1:])


def ending(path: PathLike) -> str:
    """Returns the ending of a file's name, without :obj:`.gz`, in lower case."""
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def columns_by_name(found: Sequence[str], names: tuple[str, ...]) -> list[int] | None:
    r"""Returns where the wanted columns are, if their names tell it.

    Args:
        found (sequence): The names of the columns that there are.
        names (tuple): The names of the wanted columns, which may have other
            well-known names.
    """
    folded = [name.strip().lower() for name in found]
    for header in (names, *_HEADERS):
        if set(header) <= set(folded):
            return [folded.index(name) for name in header]
    return None


def read_rows(
    path: PathLike,
    names: tuple[str, ...],
    header: bool | None = None,
    progress: bool = False,
) -> Iterator[RowBlock]:
    r"""Reads a :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file, :obj:`.gz` or not.

    A file whose name ends in :obj:`.csv` has comma-separated, optionally
    quoted fields, and spaces around them do not count; any other is split at
    tabs and nothing else. Byte-order marks, CRLF line ends and blank lines are
    tolerated.

    Args:
        path (str): The file.
        names (tuple): The names of the expected columns.
        header (bool, optional): Whether the first row is a header. If
            :obj:`None`, a first row made of well-known column names is one,
            and columns may stand in any order. (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    path = Path(path)
    is_csv = ending(path) == ".csv"
    order: Sequence[int] = range(len(names))
    parse = _csv_blocks if is_csv else _tsv_blocks
    num_rows = 0
    with open_source(path, progress) as (file, tick):
        for i, block in enumerate(parse(path, file, names)):
            if i == 0:
                first = [column[0] for column in block.columns]
                found = columns_by_name(first, names)
                if header or (header is None and _is_header(first, found)):
                    block = block.without_first()
                    order = found or order
            block = RowBlock([block.columns[place] for place in order], block.lines)
            _refuse_empty(path, block, names)
            num_rows += len(block.lines)
            tick()
            if len(block.lines) > 0:
                yield block
    if num_rows == 0:
        raise DataError(f"the file is empty, expected {_wanted(names)}", path, 1)


@contextmanager
def open_source(
    path: Path, progress: bool = False
) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    r"""Opens a file for reading, unzipped where its name ends in :obj:`.gz`.

    Yields the file and a function that brings the progress bar up to date.
    Whatever goes wrong with the file itself becomes a :class:`DataError`.
    """
    try:
        size = path.stat().st_size
        with (
            open(path, "rb") as raw,
            tqdm(
                desc=path.name,
                total=size,
                unit="B",
                unit_scale=True,
                leave=False,
                disable=not progress,
            ) as bar,
        ):
            file = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            yield cast(BinaryIO, file), lambda: bar.update(raw.tell() - bar.n) and None
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(f"broken gzip data: {error}", path, 1) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None


def _tsv_blocks(
    path: Path, file: BinaryIO, names: tuple[str, ...]
) -> Iterator[RowBlock]:
    first = 1
    while lines := file.readlines(BLOCK_BYTES):
        text = _decode(path, first, lines)
        rows = text.removesuffix("\n").split("\n")
        if "\r" in text:
            rows = [row.removesuffix("\r") for row in rows]
        numbers: Sequence[int] = range(first, first + len(rows))
        if not all(rows):
            numbers = [number for number, row in zip(numbers, rows) if row]
            rows = [row for row in rows if row]
        if rows:
            tabs = len(names) - 1
            for number, row in zip(numbers, rows):
                if row.count("\t") != tabs:
                    _refuse_columns(path, number, row.count("\t") + 1, names)
            yield _block("\t".join(rows).split("\t"), numbers, names)
        first += len(lines)


def _csv_blocks(
    path: Path, file: BinaryIO, names: tuple[str, ...]
) -> Iterator[RowBlock]:
    reader = csv.reader(_text_lines(path, file), skipinitialspace=True, strict=True)
    fields: list[str] = []
    numbers: list[int] = []
    rows = iter(reader)
    while True:
        # A quoted field may span lines: the row begins after the last one read.
        start = reader.line_num + 1
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            raise DataError(f"broken CSV: {error}", path, start) from None
        if not row:
            continue
        if len(row) != len(names):
            _refuse_columns(path, start, len(row), names)
        fields += map(str.strip, row)
        numbers.append(start)
        if len(numbers) == BLOCK_BYTES >> 6:
            yield _block(fields, numbers, names)
            fields, numbers = [], []
    if numbers:
        yield _block(fields, numbers, names)


def _text_lines(path: Path, file: BinaryIO) -> Iterator[str]:
    first = 1
    while lines := file.readlines(BLOCK_BYTES):
        yield from io.StringIO(_decode(path, first, lines), newline="\n")
        first += len(lines)


def _decode(path: Path, first: int, lines: list[bytes]) -> str:
    if first == 1:
        lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
    try:
        return b"".join(lines).decode()
    except UnicodeDecodeError:
        for number, line in enumerate(lines, first):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                at = f"byte {line[error.start]:#04x} at column {error.start + 1}"
                raise DataError(
                    f"{at} is not UTF-8, expected UTF-8 text", path, number
                ) from None
        raise


def _block(
    fields: list[str], numbers: Sequence[int], names: tuple[str, ...]
) -> RowBlock:
    width = len(names)
    return RowBlock([fields[column::width] for column in range(width)], numbers)


def _is_header(first: list[str], found: list[int] | None) -> bool:
    """Tells whether a row looks like one; letters alone only in their order."""
    if found is None:
        return False
    return found == sorted(found) or all(len(name.strip()) > 1 for name in first)


def _refuse_empty(path: Path, block: RowBlock, names: tuple[str, ...]) -> None:
    empty = [
        (next(i for i, field in enumerate(column) if not field.strip()), name)
        for name, column in zip(names, block.columns)
        if "" in column or any(map(str.isspace, column))
    ]
    if empty:
        row, name = min(empty, key=lambda found: found[0])
        message = f"the {name} is empty, expected {_wanted(names)}"
        raise DataError(message, path, block.lines[row])


def _refuse_columns(
    path: Path, line: int, found: int, names: tuple[str, ...]
) -> NoReturn:
    columns = "1 column" if found == 1 else f"{found} columns"
    raise DataError(f"{columns}, expected {_wanted(names)}", path, line)


def _wanted(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {', '.join(names)}"
