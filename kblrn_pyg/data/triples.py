"""Triples with names, read from files, data frames or tuples."""

from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.header import TRIPLES, Columns
from kblrn_pyg.data.ids import check_ids
from kblrn_pyg.data.sources import Source, source_columns, source_rows

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class NamedTriples:
    r"""Triples as ids, with the names behind the ids.

    Triples are distinct, unless :meth:`read_triples` is asked for all of them. Ids
    follow the order of appearance of names, the head of a triple before its tail, as
    in PyG's own :class:`~torch_geometric.datasets.FB15k_237`.

    Args:
        entities (sequence): The name of each entity id.
        relations (sequence): The name of each relation id.
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
        num_duplicates (int): The number of repeated triples that were dropped.
    """

    entities: Sequence[str]
    relations: Sequence[str]
    head: Ids
    rel: Ids
    tail: Ids
    num_duplicates: int = 0

    def __post_init__(self) -> None:
        entities, relations = len(self.entities), len(self.relations)
        check_ids(
            {
                "heads": (self.head, entities),
                "relations": (self.rel, relations),
                "tails": (self.tail, entities),
            }
        )

    def __len__(self) -> int:
        return len(self.head)


class Index(defaultdict[Any, int]):
    """Assigns the next free id to every new key."""

    def __init__(self) -> None:
        super().__init__(self.__len__)

    def tolist(self) -> list[Any]:
        """Returns all keys."""
        return list(self)

    def find(self, keys: Sequence[Any]) -> Ids:
        """Returns the ids of keys, -1 for unknown ones."""
        return np.array([self.get(key, -1) for key in keys], np.int64)

    def ids(self, keys: Sequence[Any]) -> Ids:
        """Returns the ids of keys, and assigns ids to new ones."""
        return np.fromiter(map(self.__getitem__, keys), np.int64, len(keys))


def read_triples(
    source: Source,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    other_names: Container[str] = (),
    progress: bool = False,
    separator: str | None = None,
    distinct: bool = True,
) -> NamedTriples:
    r"""Reads (head, relation, tail) triples and drops repeated ones.

    Args:
        source: A :obj:`.tsv`, :obj:`.txt` or :obj:`.csv` file (:obj:`.gz` or
            not), a :obj:`.parquet` file, a :class:`pandas.DataFrame`, or an
            iterable of tuples.
        header (bool, optional): Whether a file's first row is a header. If
            :obj:`None`, a first row made of known column names is one, and
            one that might be a header is refused: if the file has at least five
            other rows, and none of them shares a name with it.
            (default: :obj:`None`)
        columns (sequence, optional): The names of the columns of head, relation
            and tail in the header of a file or in a data frame, which may have
            further columns. (default: :obj:`None`)
        other_names (container, optional): Names that are not column names, such as
            all names in training triples. (default: :obj:`()`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        separator (str, optional): The separator of fields in a file.
            (default: :obj:`None`, tabs, or commas in :obj:`.csv` files, or another
            one that splits the first row into three fields)
        distinct (bool, optional): If set to :obj:`False`, keeps repeated triples.
            (default: :obj:`True`)

    Example:
        >>> triples = read_triples([("Ada", "spouse", "Ben")])
        >>> triples.entities, triples.relations
        (['Ada', 'Ben'], ['spouse'])
    """
    wanted = Columns(TRIPLES, header, columns, other_names, separator)
    encoded = source_columns(source, wanted, progress)
    if encoded is not None:
        h, r, t = encoded.columns
        found = NamedTriples(encoded.entities, encoded.kinds, h, r, t)
        return _distinct(found) if distinct else found
    entities, relations = Index(), Index()
    ends, rels = [], []
    for (head, relation, tail), _ in source_rows(source, wanted, progress):
        ends.append(entities.ids(list(chain.from_iterable(zip(head, tail)))))
        rels.append(relations.ids(relation))
    head_tail = np.concatenate(ends)
    found = NamedTriples(
        list(entities),
        list(relations),
        head_tail[0::2],
        np.concatenate(rels),
        head_tail[1::2],
    )
    return _distinct(found) if distinct else found


def _distinct(given: NamedTriples) -> NamedTriples:
    return distinct_triples(
        given.entities, given.relations, given.head, given.rel, given.tail
    )


def join_triples(parts: Sequence[NamedTriples]) -> NamedTriples:
    """Joins triples by names; repeated ones count once."""
    if len(parts) == 1:
        return parts[0]
    entities, relations = Index(), Index()
    columns: list[list[Ids]] = [[], [], []]
    for part in parts:
        entity, relation = entities.ids(part.entities), relations.ids(part.relations)
        ids = entity[part.head], relation[part.rel], entity[part.tail]
        for column, one in zip(columns, ids):
            column.append(one)
    head, rel, tail = map(np.concatenate, columns)
    joined = distinct_triples(list(entities), list(relations), head, rel, tail)
    num_before = sum(part.num_duplicates for part in parts)
    return replace(joined, num_duplicates=joined.num_duplicates + num_before)


def distinct_triples(
    entities: Sequence[str],
    relations: Sequence[str],
    head: Ids,
    rel: Ids,
    tail: Ids,
) -> NamedTriples:
    """Keeps the first of equal triples, in the order given."""
    pair = head * max(len(entities), 1)
    pair += tail
    keep = first_occurrences(pair, rel)
    dropped = len(head) - len(keep)
    if dropped:
        head, rel, tail = head[keep], rel[keep], tail[keep]
    return NamedTriples(entities, relations, head, rel, tail, dropped)


def first_occurrences(major: Ids, minor: Ids) -> Ids:
    """Returns, in order, the positions at which a pair of keys occurs first."""
    is_first = np.ones(len(major), dtype=bool)
    places = _repeated(major, minor)
    if len(places) == 0:
        return np.arange(len(major))
    order = places[np.lexsort((minor[places], major[places]))]
    major, minor = major[order], minor[order]
    is_same = (major[1:] == major[:-1]) & (minor[1:] == minor[:-1])
    is_first[order[1:][is_same]] = False
    return np.flatnonzero(is_first)


def _repeated(major: Ids, minor: Ids) -> Ids:
    """Returns where the pairs are that occur more than once, or all places.

    Sorting one column of numbers is several times as fast as ordering rows.
    """
    width = int(minor.max(initial=0)) + 1
    if int(major.max(initial=0)) >= np.iinfo(np.int64).max // width:
        return np.arange(len(major))
    ordered = major * width
    ordered += minor
    ordered.sort()
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    if len(repeated) == 0:
        return np.empty(0, np.int64)
    key = major * width + minor
    found = np.minimum(np.searchsorted(repeated, key), len(repeated) - 1)
    return np.flatnonzero(repeated[found] == key)
