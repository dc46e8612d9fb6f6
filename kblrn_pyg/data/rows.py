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
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, NoReturn, cast

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.lines import short_lines
from kblrn_pyg.printable import printable
from kblrn_pyg.progress import ProgressBar

if TYPE_CHECKING:  # imported before anything heavy
    from numpy.typing import NDArray

PathLike = str | os.PathLike[str]

# Large enough to amortise Python's overhead, small enough to stay in memory.
BLOCK_BYTES = 1 << 22

BOM = b"\xef\xbb\xbf"

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
class Columns:
    r"""The columns to read, and how to find them.

    Args:
        names (tuple): Their names, which may have other well-known ones.
        header (bool, optional): Whether the first row of a file is a header. If
            :obj:`None`, a first row made of well-known column names is one,
            and columns may be in any order; triples whose first row might be
            one are refused. (default: :obj:`None`)
        given (sequence, optional): What the columns are called instead; there
            may be further ones. (default: :obj:`None`)
        other_names (container, optional): Names that are not those of columns.
            (default: :obj:`()`)
    """

    names: tuple[str, ...]
    header: bool | None = None
    given: Sequence[str] | None = None
    other_names: Container[str] = ()

    def __str__(self) -> str:
        return f"{len(self.names)}: {', '.join(self.names)}"

    def find(self, found: Sequence[str]) -> list[int] | None:
        """Returns where the columns are, if their names tell it."""
        folded = [name.strip().lower() for name in found]
        for header in (self.names, *_HEADERS) if self.given is None else (self.given,):
            header = [name.strip().lower() for name in header]
            if set(header) <= set(folded):
                return [folded.index(name) for name in header]
        return None

    def check(self) -> None:
        """Refuses what contradicts itself in files."""
        if self.given is None:
            return
        if self.header is False:
            raise ValueError("'columns' must not be given for files without a header")
        number = len(self.names)
        if isinstance(self.given, str) or len(set(self.given)) != number:
            raise ValueError(f"'columns' must be {number} names (got {self.given!r})")


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

    A file whose name ends in :obj:`.csv` has comma-separated, optionally
    quoted fields, and spaces around them do not count; any other is split at
    tabs and nothing else. Byte-order marks, CRLF line ends and blank lines are
    tolerated.
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
                elif _tells_headers(wanted):
                    suspect = first
            block = RowBlock([block.columns[place] for place in order], block.lines)
            _refuse_empty(path, block, wanted)
            others = block if i else block.without_first()
            if suspect and _occurs(suspect, others.columns):
                suspect = []
            num_rows += len(block.lines)
            tick()
            if len(block.lines) > 0:
                yield block
    if num_rows == 0:
        raise DataError(f"the file is empty, expected {wanted}", path, 1)
    if suspect and num_rows >= _MIN_ROWS and not _are_other(suspect, wanted):
        row = ", ".join(suspect)
        message = f"the names {row} do not occur again, are they a header? {_WAYS_OUT}"
        raise DataError(message, path, line)


def first_row(path: Path, line: bytes, wanted: Columns) -> list[str]:
    """Splits the first line of a file into its fields."""
    for block in _blocks(path, io.BytesIO(line), wanted):
        return [column[0] for column in block.columns]
    raise DataError(f"the first line is blank, expected {wanted}", path, 1)


def may_be_header(
    first: list[str], columns: "Sequence[NDArray[Any]]", wanted: Columns
) -> bool:
    r"""Tells whether a first row that is not a known header may be an unknown one.

    Args:
        first (list): The first row.
        columns (sequence): The ids of the names of all rows, by columns.
        wanted (Columns): The columns to read.
    """
    if not _tells_headers(wanted) or len(columns[0]) < _MIN_ROWS:
        return False
    ids, others = [ids[0] for ids in columns], [ids[1:] for ids in columns]
    return not _occurs(ids, others) and not _are_other(first, wanted)


@contextmanager
def open_source(
    path: Path, progress: bool = False, has_lines: bool = True
) -> Iterator[tuple[BinaryIO, Callable[[], None]]]:
    r"""Opens a file for reading, unzipped where its name ends in :obj:`.gz`.

    Yields the file and a function that brings the progress bar up to date. Lines, if
    the file has any, must be short; see :meth:`short_lines`.
    Whatever goes wrong with the file itself becomes a :class:`DataError`.
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


def _blocks(path: Path, file: BinaryIO, wanted: Columns) -> Iterator[RowBlock]:
    parse = _csv_blocks if ending(path) == ".csv" else _tsv_blocks
    return parse(path, file, wanted)


def _tsv_blocks(path: Path, file: BinaryIO, wanted: Columns) -> Iterator[RowBlock]:
    width = 0 if wanted.given else len(wanted.names)
    for first, text in _texts(path, file):
        rows = text.removesuffix("\n").split("\n")
        if "\r" in text:
            rows = [row.removesuffix("\r") for row in rows]
        lines: Sequence[int] = range(first, first + len(rows))
        if not all(rows):
            lines = [line for line, row in zip(lines, rows) if row]
            rows = [row for row in rows if row]
        if rows:
            width = width or rows[0].count("\t") + 1
            for line, row in zip(lines, rows):
                if row.count("\t") != width - 1:
                    _refuse_width(row.count("\t") + 1, width, wanted, (path, line))
            yield _block("\t".join(rows).split("\t"), lines, width)


def _csv_blocks(path: Path, file: BinaryIO, wanted: Columns) -> Iterator[RowBlock]:
    texts = (io.StringIO(text, newline="\n") for _, text in _texts(path, file))
    reader = csv.reader(chain.from_iterable(texts), skipinitialspace=True, strict=True)
    width = 0 if wanted.given else len(wanted.names)
    fields: list[str] = []
    lines: list[int] = []
    begin = 1
    try:
        for row in reader:
            # A quoted field may span lines: the next row begins after the last one.
            line, begin = begin, reader.line_num + 1
            if not row:
                continue
            width = width or len(row)
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


def header_order(
    first: list[str], wanted: Columns, place: tuple[Path, int]
) -> Sequence[int] | None:
    """Returns where the wanted columns are if the first row is a header."""
    found, given = wanted.find(first), wanted.given
    if given is not None and found is None:
        message = f"the columns are {', '.join(first)}, expected {', '.join(given)}"
        raise DataError(message, *place)
    if wanted.header and wanted.names == VALUES and is_number(first[-1]):
        message = f"the value {first[-1]} is a number, expected a header"
        raise DataError(f"{message} (use --columns if only triples have one)", *place)
    is_header = wanted.header or given is not None
    if wanted.header is None and given is None and found is not None:
        # Letters alone are names of columns only in their order.
        are_words = all(len(name.strip()) > 1 for name in first)
        is_header = are_words or found == sorted(found)
    return (found or range(len(wanted.names))) if is_header else None


def _tells_headers(wanted: Columns) -> bool:
    """Tells whether a first row that may be an unknown header is refused."""
    return wanted.header is None and wanted.names == TRIPLES


def _are_other(first: list[str], wanted: Columns) -> bool:
    return any(name in wanted.other_names for name in first)


def _occurs(triple: Sequence[Any], columns: Sequence[Any]) -> bool:
    """Tells whether some rows have the head, the relation or the tail of another."""
    head, relation, tail = triple
    heads, relations, tails = columns
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


def _refuse_empty(path: Path, block: RowBlock, wanted: Columns) -> None:
    if not any(
        "" in column or any(map(str.isspace, column)) for column in block.columns
    ):
        return
    for line, *fields in zip(block.lines, *block.columns):
        for name, field in zip(wanted.names, fields):
            if not field.strip():
                message = f"the {name} is empty, expected {wanted}"
                raise DataError(message, path, line)


def _refuse_width(
    found: int, width: int, wanted: Columns, place: tuple[Path, int]
) -> NoReturn:
    columns = "1 column" if found == 1 else f"{found} columns"
    is_usual = width == len(wanted.names)
    expected = str(wanted) if is_usual else f"{width} as in the first row"
    raise DataError(f"{columns}, expected {expected}", *place)
