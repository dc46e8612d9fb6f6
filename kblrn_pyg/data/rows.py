"""Rows of delimited text files: decoding, splitting, and errors with line numbers."""

import csv
import gzip
import io
import math
import os
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from tqdm import tqdm

from kblrn_pyg.data.errors import DataError

PathLike = str | os.PathLike[str]

# Large enough to amortise Python's overhead, small enough to stay in memory.
BLOCK_BYTES = 1 << 22

TRIPLES = ("head", "relation", "tail")
VALUES = ("entity", "attribute", "value")

# Well-known names of the three columns, in their order.
_HEADERS = (
    TRIPLES,
    ("subject", "predicate", "object"),
    ("source", "relation", "target"),
    ("h", "r", "t"),
    ("s", "p", "o"),
    VALUES,
)

# In a file with fewer rows, a first row of names that do not occur again is no
# sign of a header: most names of a small file occur once.
_MIN_ROWS = 6

_WAYS_OUT = (
    "say so by header=True, header=False or columns=(...), or on the command line by "
    "--header, --no-header or --columns head,relation,tail"
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


def columns_by_name(
    found: Sequence[str], names: Sequence[str], columns: Sequence[str] | None = None
) -> list[int] | None:
    r"""Returns where the wanted columns are, if their names tell it.

    Args:
        found (sequence): The names of the columns that there are.
        names (sequence): The names of the wanted columns, which may have other
            well-known names.
        columns (sequence, optional): What the wanted columns are called
            instead. (default: :obj:`None`)
    """
    folded = [name.strip().lower() for name in found]
    for header in (names, *_HEADERS) if columns is None else (columns,):
        header = [name.strip().lower() for name in header]
        if set(header) <= set(folded):
            return [folded.index(name) for name in header]
    return None


def read_rows(
    path: PathLike,
    names: tuple[str, ...],
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    other_names: Container[str] = (),
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
            and columns may be in any order; triples whose first row might be
            one are refused. (default: :obj:`None`)
        columns (sequence, optional): The names of the wanted columns in the
            file's header, which may have further ones.
            (default: :obj:`None`)
        other_names (container, optional): Names that are not those of columns.
            (default: :obj:`()`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    _check_columns(names, header, columns)
    path = Path(path)
    parse = _csv_blocks if ending(path) == ".csv" else _tsv_blocks
    order: Sequence[int] = range(len(names))
    suspect: list[str] = []  # the first row, while it may be a header
    num_rows = 0
    with open_source(path, progress) as (file, tick):
        for i, block in enumerate(parse(path, file, names, columns is not None)):
            if i == 0:
                first, line = [column[0] for column in block.columns], block.lines[0]
                found = _header_order(first, names, header, columns, (path, line))
                if found is not None:
                    block, order = block.without_first(), found
                elif header is None and names == TRIPLES:
                    suspect = first
            block = RowBlock([block.columns[place] for place in order], block.lines)
            _refuse_empty(path, block, names)
            if suspect and _occurs(suspect, block if i else block.without_first()):
                suspect = []
            num_rows += len(block.lines)
            tick()
            if len(block.lines) > 0:
                yield block
    if num_rows == 0:
        raise DataError(f"the file is empty, expected {_wanted(names)}", path, 1)
    if suspect and num_rows >= _MIN_ROWS and not any(n in other_names for n in suspect):
        row = ", ".join(suspect)
        message = f"the names {row} do not occur again, are they a header? {_WAYS_OUT}"
        raise DataError(message, path, line)


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
    path: Path, file: BinaryIO, names: tuple[str, ...], any_width: bool
) -> Iterator[RowBlock]:
    first, width = 1, 0 if any_width else len(names)
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
            width = width or rows[0].count("\t") + 1
            for number, row in zip(numbers, rows):
                if row.count("\t") != width - 1:
                    _refuse_width(path, number, row.count("\t") + 1, names, width)
            yield _block("\t".join(rows).split("\t"), numbers, width)
        first += len(lines)


def _csv_blocks(
    path: Path, file: BinaryIO, names: tuple[str, ...], any_width: bool
) -> Iterator[RowBlock]:
    reader = csv.reader(_text_lines(path, file), skipinitialspace=True, strict=True)
    width = 0 if any_width else len(names)
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
        width = width or len(row)
        if len(row) != width:
            _refuse_width(path, start, len(row), names, width)
        fields += map(str.strip, row)
        numbers.append(start)
        if len(numbers) == BLOCK_BYTES >> 6:
            yield _block(fields, numbers, width)
            fields, numbers = [], []
    if numbers:
        yield _block(fields, numbers, width)


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


def _block(fields: list[str], numbers: Sequence[int], width: int) -> RowBlock:
    return RowBlock([fields[column::width] for column in range(width)], numbers)


def _check_columns(
    names: tuple[str, ...], header: bool | None, columns: Sequence[str] | None
) -> None:
    if columns is None:
        return
    if header is False:
        raise ValueError("'columns' must not be given for files without a header")
    if isinstance(columns, str) or len(set(columns)) != len(names):
        raise ValueError(f"'columns' must be {len(names)} names (got {columns!r})")


def _header_order(
    first: list[str],
    names: tuple[str, ...],
    header: bool | None,
    columns: Sequence[str] | None,
    place: tuple[Path, int],
) -> Sequence[int] | None:
    """Returns where the wanted columns are if the first row is a header."""
    found = columns_by_name(first, names, columns)
    if columns is not None and found is None:
        message = f"the columns are {', '.join(first)}, expected {', '.join(columns)}"
        raise DataError(message, *place)
    if header and names == VALUES and is_number(first[-1]):
        message = f"the value {first[-1]} is a number, expected a header"
        raise DataError(f"{message} (use --columns if only triples have one)", *place)
    if header or columns is not None or (header is None and _is_header(first, found)):
        return found or range(len(names))
    return None


def _is_header(first: list[str], found: list[int] | None) -> bool:
    """Tells whether a row looks like one; letters alone only in their order."""
    if found is None:
        return False
    return found == sorted(found) or all(len(name.strip()) > 1 for name in first)


def _occurs(triple: list[str], rows: RowBlock) -> bool:
    """Tells whether some rows have the head, the relation or the tail of another."""
    head, relation, tail = triple
    heads, relations, tails = rows.columns
    return relation in relations or any(
        name in column for name in (head, tail) for column in (heads, tails)
    )


def is_number(text: str) -> bool:
    """Tells whether a text is a finite number."""
    try:
        # float() reads "1_000" as a number, people who export tables do not.
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


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


def _refuse_width(
    path: Path, line: int, found: int, names: tuple[str, ...], width: int
) -> NoReturn:
    columns = "1 column" if found == 1 else f"{found} columns"
    wanted = _wanted(names) if width == len(names) else f"{width} as in the first row"
    raise DataError(f"{columns}, expected {wanted}", path, line)


def _wanted(names: tuple[str, ...]) -> str:
    return f"{len(names)}: {', '.join(names)}"
