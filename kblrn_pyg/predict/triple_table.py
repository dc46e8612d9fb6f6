"""Triples with figures as CSV, JSON, Parquet, N-Triples, data frames and HTML."""

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kblrn_pyg.data.parquet import write_parquet
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.write_ntriples import NamedTriple, ntriples
from kblrn_pyg.frames import html_table, to_frame

# What formulas begin with.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class TripleTable:
    """The export formats of tables of triples; subclasses define the columns."""

    def columns(self) -> dict[str, Sequence[Any]]:
        """Returns the columns by name."""
        raise NotImplementedError

    def identified(self) -> Iterator[tuple[NamedTriple, float | None]]:
        """Returns the identifiers of each triple, and the probability that it is
        true."""
        raise NotImplementedError

    def shown(self) -> tuple[list[str], list[list[object]]]:
        """Returns the header and the cells of a readable table."""
        raise NotImplementedError

    def to_json(self) -> list[dict[str, Any]]:
        """Returns a plain dictionary per triple."""
        columns = {name: _plain(column) for name, column in self.columns().items()}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def to_csv(self) -> str:
        """Returns a line of column names, and one for each triple.

        Names that a spreadsheet would interpret as a formula, because of their
        first character, are prefixed with an apostrophe.
        """
        lines, columns = _Lines(), self.columns()
        # Names with either end of a line are quoted, as one would begin a new row.
        writer = csv.writer(lines, lineterminator=_Lines.end)
        writer.writerow(columns)
        writer.writerows(zip(*(map(_harmless, _plain(c)) for c in columns.values())))
        return "".join(lines.found)

    def to_frame(self) -> Any:
        """Returns a :class:`pandas.DataFrame` with a row for each triple."""
        return to_frame(self.columns())

    def to_parquet(self, path: PathLike) -> None:
        r"""Writes a Parquet file, which needs pyarrow.

        Args:
            path (str): The file.
        """
        write_parquet(path, self.columns())

    def to_ntriples(self, statement: str = "plain") -> str:
        r"""Returns the triples as N-Triples.

        Args:
            statement (str, optional): The way to state their probabilities; see
                :meth:`~kblrn_pyg.data.write_ntriples.ntriples`.
                (default: :obj:`"plain"`, not at all)
        """
        return "".join(ntriples(self.identified(), statement))

    def _repr_html_(self) -> str:
        return html_table(*self.shown())


class _Lines:
    """Takes rows of a CSV file, and ends them with a line feed alone."""

    end = "\r\n"

    def __init__(self) -> None:
        self.found: list[str] = []

    def write(self, row: str) -> None:
        self.found.append(row.removesuffix(self.end) + "\n")


def _plain(column: Sequence[Any]) -> list[Any]:
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def _harmless(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value
