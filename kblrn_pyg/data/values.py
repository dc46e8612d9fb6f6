"""Numerical values of entities, read from files, data frames or tuples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import VALUES, Columns, is_number
from kblrn_pyg.data.sources import Source, place, source_columns, source_rows
from kblrn_pyg.data.table import NameTable
from kblrn_pyg.data.triples import Ids, Index


@dataclass(frozen=True)
class NamedValues:
    r"""One number for each known (entity, attribute) pair, with names.

    Args:
        entities (sequence): The name of each entity id; there may be others.
        attributes (sequence): The name of each attribute id.
        entity (numpy.ndarray): The entity of each value.
        attribute (numpy.ndarray): The attribute of each value.
        value (numpy.ndarray): The values.
        num_averaged (int): How many values were merged into another one's
            mean, because a pair had more than one.
    """

    entities: Sequence[str]
    attributes: Sequence[str]
    entity: Ids
    attribute: Ids
    value: NDArray[np.float64]
    num_averaged: int = 0

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
) -> NamedValues:
    r"""Reads (entity, attribute, value) rows.

    Two values for one (entity, attribute) are averaged and counted.

    Args:
        source: A :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file (:obj:`.gz` or
            not), a :obj:`.parquet` file, a :class:`pandas.DataFrame`, or an
            iterable of tuples.
        strict (bool, optional): If set to :obj:`True`, two values for one
            (entity, attribute) are refused. (default: :obj:`False`)
        header (bool, optional): Whether a file's first row is a header. If
            :obj:`None`, a first row made of well-known column names is one.
            (default: :obj:`None`)
        columns (sequence, optional): The names of the columns of entity,
            attribute and value in the header of a file or in a data frame, which
            may have further columns. (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        average (bool, optional): If set to :obj:`False`, nothing is averaged
            yet. (default: :obj:`True`)
        names (sequence, optional): The names of entities that triples have. Those
            that were read from a large file are found faster than new ones, and
            keep their ids. (default: :obj:`None`)

    Example:
        >>> read_values([("Ada", "born", 1950), ("Ada", "born", 1952)]).value
        array([1951.])
    """
    wanted = Columns(VALUES, header, columns)
    table = names if isinstance(names, NameTable) else None
    encoded = source_columns(source, wanted, progress, table)
    if encoded is None:
        named, lines = _from_rows(source, wanted, progress)
    else:
        entity, attribute, value = encoded.columns
        named = NamedValues(encoded.entities, encoded.kinds, entity, attribute, value)
        lines = encoded.first_line + np.arange(len(named))
    if strict:
        refuse_repeated(named, source, lines)
    return average_repeated(named) if average else named


def _from_rows(
    source: Source, wanted: Columns, progress: bool
) -> tuple[NamedValues, Ids]:
    """Returns the values and the line of each."""
    entity_id, attribute_id = Index(), Index()
    entities, attributes, values, lines = [], [], [], []
    for block in source_rows(source, wanted, progress):
        entity, attribute, texts = block.columns
        entities.append(entity_id.ids(entity))
        attributes.append(attribute_id.ids(attribute))
        bad = next((i for i, text in enumerate(texts) if not is_number(text)), None)
        if bad is not None:
            message = f"the value {texts[bad]!r} is not a finite number, expected one"
            raise DataError(message, **place(source, block.lines[bad]))
        values.append(np.array(list(map(float, texts))))
        lines.append(np.array(block.lines))
    named = NamedValues(
        list(entity_id),
        list(attribute_id),
        np.concatenate(entities),
        np.concatenate(attributes),
        np.concatenate(values),
    )
    return named, np.concatenate(lines)


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
    )


def refuse_repeated(
    values: NamedValues, source: Source = (), lines: Ids | None = None
) -> None:
    """Refuses a second value of an entity and an attribute, wherever it is from."""
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
    )
