"""The known facts, and the answers that they give to queries."""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data.ids import IdRanges, as_ids, check_ids
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.types import as_kb
from kblrn_pyg.data.validate import how_different

Ids = NDArray[np.int64]


class Answers(NamedTuple):
    r"""The known answers of queries.

    Args:
        ptr (numpy.ndarray): Where the answers of each query begin.
        entity (numpy.ndarray): The answers, ascending and distinct within a
            query.
    """

    ptr: Ids
    entity: Ids

    def of(self, i: int) -> Ids:
        """Returns the answers of a query."""
        return self.entity[self.ptr[i] : self.ptr[i + 1]]


class KnownFacts:
    r"""The facts of a knowledge base and of additional splits.

    Args:
        kb (HeteroData): The knowledge base, whose :obj:`edge_index` is known.
        splits (iterable, optional): Splits over the same entities and
            relations, whose :obj:`edge_index` and :obj:`edge_label_index` are
            known, too. (default: :obj:`()`)
        name (str, optional): The name in error messages.
            (default: :obj:`"known"`)
    """

    def __init__(
        self,
        kb: HeteroData,
        splits: Iterable[HeteroData | Data] = (),
        name: str = "known",
    ) -> None:
        if isinstance(splits, HeteroData | Data):
            raise ValueError(f"'{name}' must be a list of them (got one)")
        self.num_nodes = int(kb["entity"].num_nodes)
        self._kb, self._edge_types = kb, kb.edge_types
        self._ids = IdRanges(self.num_nodes, len(self._edge_types))
        self._sources = [(kb, "edge_index")]
        self._add(splits, name)

    def including(
        self, splits: Iterable[HeteroData | Data], name: str = "known"
    ) -> "KnownFacts":
        r"""Returns these facts and those of additional splits.

        Args:
            splits (iterable): The splits.
            name (str, optional): The name in error messages. (default: :obj:`"known"`)
        """
        splits = list(splits)
        if not splits:
            return self
        others = copy(self)
        others._sources = list(self._sources)
        others._add(splits, name)
        return others

    def _add(self, splits: Iterable[HeteroData | Data], name: str) -> None:
        kb = self._kb
        for split in splits:
            if split is not kb:
                split = as_kb(split, len(kb.edge_types))
                found = how_different(kb, split)
                if found is not None:
                    raise ValueError(
                        f"'{name}' must be over the entities and relations of the "
                        f"knowledge base (got {found})"
                    )
                self._sources.append((split, "edge_index"))
            self._sources.append((split, "edge_label_index"))

    def answers(self, queries: Queries) -> Answers:
        r"""Returns the known answers of queries.

        Args:
            queries (Queries): The queries, which may repeat.
        """
        self._ids.check_queries(queries)  # others would be read as those of others
        distinct, row = queries.distinct(self.num_nodes)
        entity, rel_type = (
            distinct.entity.cpu().numpy(),
            distinct.rel_type.cpu().numpy(),
        )
        given, answer, rel = self._facts(entity, rel_type, queries.side)
        wanted = rel_type * self.num_nodes + entity
        key = rel * self.num_nodes + given
        place = np.searchsorted(wanted, key)
        is_asked = np.append(wanted, -1)[place] == key  # -1: beyond the last one
        # Query and answer in one number: one sort groups them and drops what is
        # known twice.
        pairs = np.unique(place[is_asked] * self.num_nodes + answer[is_asked])
        ptr = np.searchsorted(pairs, np.arange(len(wanted) + 1) * self.num_nodes)
        found = Answers(ptr, pairs % self.num_nodes)
        return _repeated(found, row.cpu().numpy())

    def contains(self, head: Ids, rel: Ids, tail: Ids) -> NDArray[np.bool_]:
        r"""Returns which triples are known facts.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
        """
        head, tail = as_ids(head, "heads"), as_ids(tail, "tails")
        rel = as_ids(rel, "relations")
        check_ids(
            {
                "heads": (head, self.num_nodes),
                "relations": (rel, len(self._edge_types)),
                "tails": (tail, self.num_nodes),
            }
        )
        found = np.zeros(len(rel), np.bool_)
        order = np.argsort(rel, kind="stable")
        relations, begin = np.unique(rel[order], return_index=True)
        for r, rows in zip(relations.tolist(), np.split(order, begin[1:])):
            pairs = head[rows] * self.num_nodes + tail[rows]
            for edges in self._edges(r):
                found[rows] |= np.isin(pairs, edges[0] * self.num_nodes + edges[1])
        return found

    def _facts(self, entity: Ids, rel_type: Ids, side: str) -> tuple[Ids, Ids, Ids]:
        """Returns what is given, the answer, and the relation of facts.

        Only facts of the relations and entities in the queries are returned.
        """
        place = 1 if side == "head" else 0
        columns = [np.empty((3, 0), np.int64)]
        is_given = np.zeros(self.num_nodes, np.bool_)
        is_given[entity] = True
        for r in np.unique(rel_type).tolist():
            for edges in self._edges(r):
                given, answer = edges[place], edges[1 - place]
                # Of a large relation, most facts are not asked about.
                rows = given == entity[0] if len(entity) == 1 else is_given[given]
                rows = np.flatnonzero(rows)
                columns.append(
                    np.stack([given[rows], answer[rows], np.full(len(rows), r)])
                )
        given, answer, rel = np.concatenate(columns, axis=1)
        return given, answer, rel

    def _edges(self, r: int) -> Iterator[Ids]:
        """Returns the facts of a relation, source by source."""
        (kb, key), *others = self._sources
        known = kb[self._edge_types[r]][key]
        yield known.cpu().numpy()
        for data, key in others:
            found = data[self._edge_types[r]][key]
            # Splits of one data set have the same training graph.
            if found is not known and not torch.equal(found, known):
                yield found.cpu().numpy()


def _repeated(found: Answers, row: Ids) -> Answers:
    """Gives each query the answers of its distinct one."""
    if len(row) == len(found.ptr) - 1 and (row == np.arange(len(row))).all():
        return found
    counts = np.diff(found.ptr)[row]
    ptr = np.concatenate([[0], np.cumsum(counts)])
    begin = np.repeat(found.ptr[row] - ptr[:-1], counts)
    return Answers(ptr, found.entity[begin + np.arange(ptr[-1])])
