"""The facts that are known, and the answers that they give to queries."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

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
    r"""The facts of a knowledge base, and those of further splits.

    Args:
        kb (HeteroData): The knowledge base, whose :obj:`edge_index` is known.
        splits (iterable, optional): Splits over the same entities and
            relations, whose :obj:`edge_index` and :obj:`edge_label_index` are
            known, too. (default: :obj:`()`)
        name (str, optional): What errors call the splits.
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
        self._edge_types = kb.edge_types
        self._sources = [(kb, "edge_index")]
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
            queries (Queries): The queries, distinct or not.
        """
        distinct, row = queries.distinct(self.num_nodes)
        # Only facts of the relations that are asked about are looked at.
        relations = distinct.rel_type.unique_consecutive().tolist()
        given, answer, rel = self._facts(relations, queries.side)
        wanted = (distinct.rel_type * self.num_nodes + distinct.entity).cpu().numpy()
        key = rel * self.num_nodes + given
        place = np.searchsorted(wanted, key)
        is_asked = np.append(wanted, -1)[place] == key  # -1: beyond the last one
        # Query and answer in one number: one sort groups them and drops what is
        # known twice.
        pairs = np.unique(place[is_asked] * self.num_nodes + answer[is_asked])
        ptr = np.searchsorted(pairs, np.arange(len(wanted) + 1) * self.num_nodes)
        found = Answers(ptr, pairs % self.num_nodes)
        return _repeated(found, row.cpu().numpy())

    def _facts(self, relations: list[int], side: str) -> tuple[Ids, Ids, Ids]:
        """Returns what is given, the answer, and the relation of facts."""
        edges, rels = [np.empty((2, 0), np.int64)], [np.empty(0, np.int64)]
        for r in relations:
            (kb, key), *others = self._sources
            known = kb[self._edge_types[r]][key]
            found = [data[self._edge_types[r]][key] for data, key in others]
            # Splits of one data set have the same training graph.
            found = [known, *(one for one in found if not torch.equal(one, known))]
            edges.append(torch.cat(found, dim=1).cpu().numpy())
            rels.append(np.full(edges[-1].shape[1], r))
        head, tail = np.concatenate(edges, axis=1)
        given, answer = (tail, head) if side == "head" else (head, tail)
        return given, answer, np.concatenate(rels)


def _repeated(found: Answers, row: Ids) -> Answers:
    """Gives each query the answers of its distinct one."""
    if len(row) == len(found.ptr) - 1 and (row == np.arange(len(row))).all():
        return found
    counts = np.diff(found.ptr)[row]
    ptr = np.concatenate([[0], np.cumsum(counts)])
    begin = np.repeat(found.ptr[row] - ptr[:-1], counts)
    return Answers(ptr, found.entity[begin + np.arange(ptr[-1])])
