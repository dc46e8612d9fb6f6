"""Numerical values of entities, read from files, data frames or tuples."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import VALUES, RowBlock, is_number
from kblrn_pyg.data.sources import Source, place, source_rows
from kblrn_pyg.data.triples import new_index


@dataclass(frozen=True)
class NamedValues:
    r"""One number for each known (entity, attribute) pair, with names.

    Args:
        entities (list): The name of each entity id.
        attributes (list): The name of each attribute id.
        entity (numpy.ndarray): The entity of each value.
        attribute (numpy.ndarray): The attribute of each value.
        value (numpy.ndarray): The values.
        num_averaged (int): How many values were merged into another one's
            mean, because a pair had more than one.
    """

    entities: list[str]
    attributes: list[str]
    entity: NDArray[np.int64]
    attribute: NDArray[np.int64]
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
) -> NamedValues:
    r"""Reads (entity, attribute, value) rows.

    Two values for one (entity, attribute) are averaged and counted.

    Args:
        source: A :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file (:obj:`.gz` or
            not), a :class:`pandas.DataFrame`, or an iterable of tuples.
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

    Example:
        >>> read_values([("Ada", "born", 1950), ("Ada", "born", 1952)]).value
        array([1951.])
    """
    entity_id, attribute_id = new_index(), new_index()
    entities, attributes, values, lines = [], [], [], []
    for block in source_rows(source, VALUES, header, columns, progress=progress):
        entity, attribute, _ = block.columns
        entities.append(np.array([entity_id[name] for name in entity]))
        attributes.append(np.array([attribute_id[name] for name in attribute]))
        values.append(_parse_numbers(source, block))
        lines.append(np.array(block.lines))
    named = NamedValues(
        list(entity_id),
        list(attribute_id),
        np.concatenate(entities).astype(np.int64),
        np.concatenate(attributes).astype(np.int64),
        np.concatenate(values),
    )
    if strict:
        _refuse_second_values(source, named, np.concatenate(lines))
    return average_repeated(named) if average else named


def join_values(tables: Sequence[NamedValues]) -> NamedValues:
    r"""Joins values from several sources, by the names of their entities.

    Args:
        tables (sequence): What has been read, before anything is averaged.
    """
    entity_id, attribute_id = new_index(), new_index()
    entities, attributes = [], []
    for table in tables:
        entity = np.array([entity_id[name] for name in table.entities], np.int64)
        column = np.array([attribute_id[name] for name in table.attributes], np.int64)
        entities.append(entity[table.entity])
        attributes.append(column[table.attribute])
    return NamedValues(
        list(entity_id),
        list(attribute_id),
        np.concatenate(entities),
        np.concatenate(attributes),
        np.concatenate([table.value for table in tables]),
    )


def refuse_repeated(values: NamedValues) -> None:
    """Refuses a second value of an entity and an attribute, wherever it is from."""
    key = values.entity * max(len(values.attributes), 1) + values.attribute
    unique, count = np.unique(key, return_counts=True)
    if len(unique) < len(key):
        at = int(np.flatnonzero(key == unique[count > 1][0])[0])
        raise DataError(
            f"several values of {values.attributes[values.attribute[at]]!r} for "
            f"{values.entities[values.entity[at]]!r}, expected one"
        )


def average_repeated(values: NamedValues) -> NamedValues:
    """Replaces the values that share an entity and an attribute by their mean."""
    key = values.entity * max(len(values.attributes), 1) + values.attribute
    unique, inverse, count = np.unique(key, return_inverse=True, return_counts=True)
    if len(unique) == len(key):
        return values
    entity, attribute = np.divmod(unique, len(values.attributes))
    return NamedValues(
        values.entities,
        values.attributes,
        entity,
        attribute,
        np.bincount(inverse, weights=values.value) / count,
        values.num_averaged + len(key) - len(unique),
    )


def _parse_numbers(source: Source, block: RowBlock) -> NDArray[np.float64]:
    texts = block.columns[2]
    bad = next((i for i, text in enumerate(texts) if not is_number(text)), None)
    if bad is not None:
        message = f"the value {texts[bad]!r} is not a finite number, expected one"
        raise DataError(message, **place(source, block.lines[bad]))
    return np.array(list(map(float, texts)))


def _refuse_second_values(
    source: Source, values: NamedValues, lines: NDArray[np.int64]
) -> None:
    seen: dict[tuple[int, int], int] = {}
    for entity, attribute, line in zip(
        values.entity.tolist(), values.attribute.tolist(), lines.tolist()
    ):
        earlier = seen.setdefault((entity, attribute), line)
        if earlier != line:
            message = (
                f"a second value of {values.attributes[attribute]!r} for "
                f"{values.entities[entity]!r}, expected one (the first is in "
                f"line {earlier})"
            )
            raise DataError(message, **place(source, line))
