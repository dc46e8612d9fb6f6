"""The columns of a file to read, and the header that names them."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kblrn_pyg.data.cells import is_number
from kblrn_pyg.data.errors import DataError

if TYPE_CHECKING:  # imported before anything heavy
    from numpy.typing import NDArray

TRIPLES = ("head", "relation", "tail")
VALUES = ("entity", "attribute", "value")
LABELS = ("id", "name")

# Well-known names of the columns, in their order.
_HEADERS = (
    TRIPLES,
    ("subject", "predicate", "object"),
    ("subject", "relation", "object"),
    ("source", "relation", "target"),
    ("source", "type", "target"),
    ("head_id", "relation_id", "tail_id"),
    ("head_label", "relation_label", "tail_label"),
    ("h", "r", "t"),
    ("s", "p", "o"),
    VALUES,
    LABELS,
    ("id", "label"),
    ("entity", "name"),
    ("entity", "label"),
)
# How many of the columns must not be empty, if not all.
_NUM_REQUIRED = {VALUES: 2, LABELS: 1}

# In a file with fewer rows, a first row of names that do not occur again is no
# sign of a header: most names of a small file occur once.
MIN_ROWS = 6

WAYS_OUT = (
    "say so by header=True, header=False or columns=(...), or on the command line by "
    "--header, --no-header or --columns head,relation,tail"
)


@dataclass(frozen=True)
class Columns:
    r"""The columns to read, and how to find them.

    Args:
        names (tuple): Their names; known synonyms are accepted, too.
        header (bool, optional): Whether the first row of a file is a header. If
            :obj:`None`, a first row made of known column names is one,
            and columns may be in any order; triples whose first row might be
            one are refused. (default: :obj:`None`)
        given (sequence, optional): The names of the columns, if they differ; there
            may be other columns. (default: :obj:`None`)
        other_names (container, optional): Names that are not column names.
            (default: :obj:`()`)
        separator (str, optional): The separator of fields in a file.
            (default: :obj:`None`, detected from its name and its first row)
        num_required (int, optional): The number of leading columns that must not be
            empty. (default: :obj:`None`, all but numbers and labels)
    """

    names: tuple[str, ...]
    header: bool | None = None
    given: Sequence[str] | None = None
    other_names: Container[str] = ()
    separator: str | None = None
    num_required: int | None = None

    def __str__(self) -> str:
        return f"{len(self.names)}: {', '.join(self.names)}"

    def find(self, found: Sequence[str]) -> list[int] | None:
        """Returns the positions of the columns, if their names are known."""
        folded = [name.strip().lower() for name in found]
        for header in (self.names, *_HEADERS) if self.given is None else (self.given,):
            header = [name.strip().lower() for name in header]
            if len(header) == len(self.names) and set(header) <= set(folded):
                return [folded.index(name) for name in header]
        return None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that must not be empty."""
        number = self.num_required
        if number is None:
            number = _NUM_REQUIRED.get(self.names, len(self.names))
        return self.names[:number]

    def fit(self, fields: Sequence[str]) -> bool:
        """Returns whether fields may be the first row of a file."""
        if self.given is None and len(fields) == len(self.names):
            return True
        return self.find(fields) is not None and self.is_header(fields)

    def is_header(self, first: Sequence[str]) -> bool:
        """Returns whether the first row of a file is a header."""
        if self.header is not None or self.given is not None:
            return self.header is not False
        found = self.find(first)
        # Letters alone are names of columns only in their order.
        are_words = all(len(name.strip()) > 1 for name in first)
        return found is not None and (are_words or found == sorted(found))

    def check(self) -> None:
        """Refuses contradictory settings for files."""
        if self.separator is not None and len(self.separator) != 1:
            raise ValueError(
                f"'separator' must be one character (got {self.separator!r})"
            )
        if self.given is None:
            return
        if self.header is False:
            raise ValueError("'columns' must not be given for files without a header")
        number = len(self.names)
        if isinstance(self.given, str) or len(set(self.given)) != number:
            raise ValueError(f"'columns' must be {number} names (got {self.given!r})")


def may_be_header(
    first: list[str], columns: "Sequence[NDArray[Any]]", wanted: Columns
) -> bool:
    r"""Returns whether a first row that is not a known header may be an unknown one.

    Args:
        first (list): The first row.
        columns (sequence): The ids of the names of all rows, by columns.
        wanted (Columns): The columns to read.
    """
    if not tells_headers(wanted) or len(columns[0]) < MIN_ROWS:
        return False
    ids, others = [ids[0] for ids in columns], [ids[1:] for ids in columns]
    return not occurs(ids, others) and not are_other(first, wanted)


def header_order(
    first: list[str], wanted: Columns, place: tuple[Path, int]
) -> Sequence[int] | None:
    """Returns the positions of the wanted columns if the first row is a header."""
    found, given = wanted.find(first), wanted.given
    if given is not None and found is None:
        message = f"the columns are {', '.join(first)}, expected {', '.join(given)}"
        raise DataError(message, *place)
    if wanted.header is False and wanted.names == VALUES:
        # Only triples have no header: this one would be refused as a value.
        return found if found is not None and not is_number(first[found[-1]]) else None
    if wanted.header and wanted.names == VALUES and is_number(first[-1]):
        message = f"the value {first[-1]} is a number, expected a header"
        raise DataError(f"{message} (use --columns if only triples have one)", *place)
    is_header = wanted.is_header(first)
    return (found or range(len(wanted.names))) if is_header else None


def tells_headers(wanted: Columns) -> bool:
    """Returns whether a first row that may be an unknown header is refused."""
    return wanted.header is None and wanted.names == TRIPLES


def are_other(first: list[str], wanted: Columns) -> bool:
    """Returns whether a first row has names that are not column names."""
    return any(name in wanted.other_names for name in first)


def occurs(triple: Sequence[Any], columns: Sequence[Any]) -> bool:
    """Returns whether some rows have the head, the relation or the tail of another."""
    head, relation, tail = triple
    heads, relations, tails = columns
    return relation in relations or any(
        name in column for name in (head, tail) for column in (heads, tails)
    )
