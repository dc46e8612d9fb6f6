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

HEADERS = {
    ("head", "relation", "tail"),
    ("subject", "predicate", "object"),
    ("source", "relation", "target"),
    ("h", "r", "t"),
    ("s", "p", "o"),
    ("entity", "attribute", "value"),
}


@dataclass(frozen=True)
class RowBlock:
    r"""Some consecutive rows of a file, column by column.

    Args:
        columns (list): One list of strings for each column.
        lines (sequence): The line number of each row.
    """

    columns: list[list[str]]
    lines: Sequence[int]


def read_rows(
    path: PathLike,
    names: tuple[str, ...],
    header: bool | None = None,
    progress: bool = False,
) -> Iterator[RowBlock]:
    r"""Reads a :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file, :obj:`.gz` or not.

    A file whose name ends in :obj:`.csv` has comma-separated, optionally
    quoted fields; any other is split at tabs and nothing else. Byte-order
    marks, CRLF line ends and blank lines are tolerated.

    Args:
        path (str): The file.
        names (tuple): The names of the expected columns.
        header (bool, optional): Whether the first row is a header. If
            :obj:`None`, a first row made of well-known column names is one.
            (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    path = Path(path)
    is_csv = path.name.removesuffix(".gz").endswith(".csv")
    parse = _csv_blocks if is_csv else _tsv_blocks
    num_rows = 0
    with open_source(path, progress) as (file, tick):
        for i, block in enumerate(parse(path, file, names)):
            if i == 0:
                block = _without_header(block, header)
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
            yield _block(path, "\t".join(rows).split("\t"), numbers, names)
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
        fields += row
        numbers.append(start)
        if len(numbers) == BLOCK_BYTES >> 6:
            yield _block(path, fields, numbers, names)
            fields, numbers = [], []
    if numbers:
        yield _block(path, fields, numbers, names)


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
    path: Path, fields: list[str], numbers: Sequence[int], names: tuple[str, ...]
) -> RowBlock:
    if "" in fields or any(map(str.isspace, fields)):
        at = next(i for i, field in enumerate(fields) if not field.strip())
        row, column = divmod(at, len(names))
        message = f"the {names[column]} is empty, expected {_wanted(names)}"
        raise DataError(message, path, numbers[row])
    width = len(names)
    return RowBlock([fields[column::width] for column in range(width)], numbers)


def _without_header(block: RowBlock, header: bool | None) -> RowBlock:
    first = tuple(column[0].strip().lower() for column in block.columns)
    if header or (header is None and first in HEADERS):
        return RowBlock([column[1:] for column in block.columns], block.lines[1:])
    return block


def _refuse_columns(
    path: Path, line: int, found: int, names: tuple[str, ...]
) -> NoReturn:
    columns = "1 column" if found == 1 else f"{found} columns"
    raise DataError(f"{columns}, expected {_wanted(names)}", path, line)


def _wanted(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {', '.join(names)}"
