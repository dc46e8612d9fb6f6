"""Numerical values of entities, read from files, data frames or tuples."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.cells import is_number, read_cell
from kblrn_pyg.data.errors import DataError, HeaderError
from kblrn_pyg.data.header import VALUES, Columns
from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.data.rows import RowBlock
from kblrn_pyg.data.sources import Source, place, source_columns, source_rows
from kblrn_pyg.data.table import NameTable
from kblrn_pyg.data.triples import Ids, Index
from kblrn_pyg.data.wide import WideTable, wide_table


class NumberOptions(TypedDict, total=False):
    """The options of :meth:`read_values` about how numbers are written."""

    separator: str | None
    decimal: str
    wide: bool | None


@dataclass(frozen=True)
class ValueNotes:
    r"""The observations made while numbers were read.

    Args:
        num_unknown (int): The number of cells that mark a number as unknown.
        wide_columns (tuple): The attributes of wide tables.
        text_columns (tuple): Their columns with text only, which were left out.
    """

    num_unknown: int = 0
    wide_columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedValues:
    r"""One number for each known (entity, attribute) pair, with names.

    Args:
        entities (sequence): The name of each entity id; there may be additional
            names.
        attributes (sequence): The name of each attribute id.
        entity (numpy.ndarray): The entity of each value.
        attribute (numpy.ndarray): The attribute of each value.
        value (numpy.ndarray): The values.
        num_averaged (int): The number of values that were merged into a mean,
            because a pair had more than one.
        notes (ValueNotes): Other observations.
    """

    entities: Sequence[str]
    attributes: Sequence[str]
    entity: Ids
    attribute: Ids
    value: NDArray[np.float64]
    num_averaged: int = 0
    notes: ValueNotes = ValueNotes()

    def __post_init__(self) -> None:
        check_ids(
            {
                "entities": (self.entity, len(self.entities)),
                "attributes": (self.attribute, len(self.attributes)),
            }
        )
        value = self.value
        is_real = isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
        if not is_real or np.isinf(value).any():
            raise ValueError("'value' must be an array of numbers, NaN is unknown")
        check_shape("value", value, self.entity.shape)

    def __len__(self) -> int:
        return len(self.value)


def read_values(
    source: Source,
    strict: bool = False,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    progress: bool = False,
    average: bool = True,
    names: Sequence[str] | None = None,
    **options: Unpack[NumberOptions],
) -> NamedValues:
    r"""Reads (entity, attribute, value) rows, or a wide table.

    Two values for one (entity, attribute) are averaged and counted. Empty cells,
    :obj:`NaN`, :obj:`NA`, :obj:`null` and the like are unknown, and dates such as
    :obj:`1961-08-04` become decimal years.

    Args:
        source: A :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file (:obj:`.gz` or
            not), a :obj:`.parquet` file, a :class:`pandas.DataFrame`, or an
            iterable of tuples.
        strict (bool, optional): If set to :obj:`True`, two values for one
            (entity, attribute) are refused. (default: :obj:`False`)
        header (bool, optional): Whether a file's first row is a header. If
            :obj:`None`, a first row made of known column names is one.
            (default: :obj:`None`)
        columns (sequence, optional): The names of the columns of entity,
            attribute and value in the header of a file or in a data frame, which
            may have other columns. (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        average (bool, optional): If set to :obj:`False`, values are not averaged
            yet. (default: :obj:`True`)
        names (sequence, optional): The names of entities in the triples. Those that
            were read from a large file are found faster than new ones, and keep
            their ids. (default: :obj:`None`)
        **options (optional): :obj:`separator`, the separator of fields in a file
            (default: detected from its first row); :obj:`decimal`, the decimal
            point (default: :obj:`"."`); :obj:`wide`, whether there is a column for
            each attribute, as in :obj:`entity, birth_year, height`
            (default: detected from the header and the second column).
            :obj:`columns` are then the columns to read, that of entities first.

    Example:
        >>> read_values([("Ada", "born", 1950), ("Ada", "born", 1952)]).value
        array([1951.])
    """
    wanted = Columns(VALUES, header, columns, separator=options.get("separator"))
    wide = wide_table(source, wanted, options.get("wide"))
    table = names if isinstance(names, NameTable) else None
    encoded = None
    if wide is None:
        encoded = source_columns(source, wanted, progress, table)
    if encoded is None:
        blocks = wide.blocks(progress) if wide else _blocks(source, wanted, progress)
        reader = _CellReader(source, options.get("decimal", "."), wide)
        named, lines = reader.read(blocks)
    else:
        entity, attribute, value = encoded.columns
        named = NamedValues(encoded.entities, encoded.kinds, entity, attribute, value)
        lines = encoded.first_line + np.arange(len(named))
    named, lines = _without_unknown(named, lines)
    if strict:
        refuse_repeated(named, source, lines)
    return average_repeated(named) if average else named


def _blocks(source: Source, wanted: Columns, progress: bool) -> Iterator[RowBlock]:
    """Yields rows, and refuses a first one that is most likely a header."""
    for i, block in enumerate(source_rows(source, wanted, progress)):
        cells = [read_cell(text) for text in block.columns[-1][:2]]
        may_be_header = i == 0 and wanted.header is None and wanted.given is None
        if may_be_header and len(cells) == 2 and cells[0] is None is not cells[1]:
            row = [column[0] for column in block.columns]
            message = (
                f"the value {row[-1]!r} is not a finite number, is this a header? say "
                "so by numerical_columns=(...), or on the command line by "
                f"--numerical-columns {','.join(row)}"
            )
            at = place(source, block.lines[0])
            raise HeaderError(message, at["path"], at["line"], row, VALUES)
        yield block


class _CellReader:
    """Reads numbers cell by cell, and records cells that are not numbers."""

    def __init__(self, source: Source, decimal: str, wide: WideTable | None) -> None:
        self.source, self.decimal, self.wide = source, decimal, wide
        # The first text of each attribute, and which of them have numbers.
        self.texts: dict[str, tuple[str, int]] = {}
        self.numeric: set[str] = set()

    def read(self, blocks: Iterable[RowBlock]) -> tuple[NamedValues, Ids]:
        """Returns the values and the line of each."""
        entity_id, attribute_id = Index(), Index()
        entities, attributes, values, lines = [], [], [], []
        for block in blocks:
            entity, attribute, cells = block.columns
            entities.append(entity_id.ids(entity))
            attributes.append(attribute_id.ids(attribute))
            values.append(self._values(block, cells))
            lines.append(np.array(block.lines))
        text_columns = self._text_columns()
        named = NamedValues(
            list(entity_id),
            list(attribute_id),
            np.concatenate(entities),
            np.concatenate(attributes),
            np.concatenate(values),
            notes=ValueNotes(
                wide_columns=self.wide.attributes if self.wide else (),
                text_columns=text_columns,
            ),
        )
        is_text = np.isin(named.attribute, attribute_id.find(text_columns))
        return _select(named, ~is_text), np.concatenate(lines)[~is_text]

    def _values(self, block: RowBlock, cells: list[str]) -> NDArray[np.float64]:
        values = np.empty(len(cells))
        for i, cell in enumerate(cells):
            value = read_cell(cell, self.decimal)
            attribute = block.columns[1][i]
            if value is None:
                if self.wide is None:
                    self._refuse("value", cell, block.lines[i])
                self.texts.setdefault(attribute, (cell, block.lines[i]))
                value = np.nan
            elif value == value:
                self.numeric.add(attribute)
            values[i] = value
        return values

    def _text_columns(self) -> tuple[str, ...]:
        """Returns the columns of text only, and refuses those that have both, or
        numbers with decimal commas.
        """
        for attribute, (text, line) in self.texts.items():
            if attribute in self.numeric or self._has_comma(text):
                self._refuse(attribute, text, line)
        return tuple(self.texts)

    def _has_comma(self, text: str) -> bool:
        return self.decimal != "," and is_number(text.strip().replace(",", ".", 1))

    def _refuse(self, what: str, text: str, line: int) -> NoReturn:
        message = f"the {what} {text!r} is not a finite number or a date, expected one"
        if self._has_comma(text):
            message += "; decimal=',', or --decimal , on the command line, reads it"
        raise DataError(message, **place(self.source, line))


def _select(values: NamedValues, keep: NDArray[np.bool_]) -> NamedValues:
    return replace(
        values,
        entity=values.entity[keep],
        attribute=values.attribute[keep],
        value=values.value[keep],
    )


def _without_unknown(values: NamedValues, lines: Ids) -> tuple[NamedValues, Ids]:
    """Leaves out numbers that are not known, and counts them."""
    is_known = ~np.isnan(values.value)
    if is_known.all():
        return values, lines
    notes = replace(values.notes, num_unknown=int((~is_known).sum()))
    return replace(_select(values, is_known), notes=notes), lines[is_known]


def join_values(tables: Sequence[NamedValues]) -> NamedValues:
    """Joins values by names, before anything is averaged."""
    if len(tables) == 1:
        return tables[0]
    entity_id, attribute_id = Index(), Index()
    entities = [entity_id.ids(table.entities)[table.entity] for table in tables]
    attributes = [
        attribute_id.ids(table.attributes)[table.attribute] for table in tables
    ]
    return NamedValues(
        list(entity_id),
        list(attribute_id),
        np.concatenate(entities),
        np.concatenate(attributes),
        np.concatenate([table.value for table in tables]),
        notes=ValueNotes(
            sum(table.notes.num_unknown for table in tables),
            tuple(name for table in tables for name in table.notes.wide_columns),
            tuple(name for table in tables for name in table.notes.text_columns),
        ),
    )


def refuse_repeated(
    values: NamedValues, source: Source = (), lines: Ids | None = None
) -> None:
    """Refuses a second value of an entity and an attribute from any source."""
    key = values.entity * max(len(values.attributes), 1) + values.attribute
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    first = first[inverse]
    again = np.flatnonzero(first != np.arange(len(key)))
    if again.size == 0:
        return
    at = again[0]
    entity = values.entities[values.entity[at]]
    pair = f"{values.attributes[values.attribute[at]]!r} for {entity!r}, expected one"
    if lines is None:
        raise DataError(f"several values of {pair}")
    message = f"a second value of {pair} (the first is in line {lines[first[at]]})"
    raise DataError(message, **place(source, int(lines[at])))


def average_repeated(values: NamedValues) -> NamedValues:
    """Replaces the values that share an entity and an attribute by their mean."""
    key = values.entity * max(len(values.attributes), 1) + values.attribute
    ordered = np.sort(key)
    if not (ordered[1:] == ordered[:-1]).any():
        return values
    unique, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    entity, attribute = np.divmod(unique, len(values.attributes))
    return NamedValues(
        values.entities,
        values.attributes,
        entity,
        attribute,
        np.bincount(inverse, weights=values.value) / count,
        values.num_averaged + len(key) - len(unique),
        values.notes,
    )
