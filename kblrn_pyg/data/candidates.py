"""The entities that may answer queries, and the number of answers of a query."""

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.ids import check_id
from kblrn_pyg.data.kb import flat_triples
from kblrn_pyg.data.queries import SIDES, check_side

Ids = NDArray[np.int64]

# Which entities may answer: all; those that the relation has on that side in
# training; those of the node type that it has there.
CANDIDATES = ("all", "observed", "types")

# The least fraction of queries with one answer, and the least number of queries, that
# make a relation single-valued.
_MOST, _LEAST_QUERIES = 0.99, 10


class Candidates:
    r"""The entities that may answer queries.

    Args:
        kb (HeteroData): The knowledge base.
        kind (str): :obj:`"all"`; :obj:`"observed"`, those that the relation has on
            that side in training, its domain or its range; or :obj:`"types"`, those
            of the relation's node type on that side, which needs a knowledge base
            created by :meth:`~kblrn_pyg.data.unify_types`.
    """

    def __init__(self, kb: HeteroData, kind: str) -> None:
        if kind not in CANDIDATES:
            names = ", ".join(CANDIDATES)
            raise ValueError(f"'candidates' must be one of {names} (got {kind!r})")
        if kind == "types" and not ("type_names" in kb and "type" in kb["entity"]):
            raise DataError(
                "'candidates' must not be types for a knowledge base without node "
                "types, expected observed or all"
            )
        self.kind, self._kb = kind, kb
        self.num_nodes = int(kb["entity"].num_nodes)

    def of(self, rel: int, side: str) -> Ids:
        r"""Returns the entities that may be on one side of a relation, ascending.

        Args:
            rel (int): The relation.
            side (str): The side that they are on.
        """
        check_side(side)
        place = SIDES.index(side)
        edge_types = self._kb.edge_types
        edge_type = edge_types[check_id(rel, "relation", len(edge_types))]
        if self.kind == "all":
            return np.arange(self.num_nodes)
        if self.kind == "observed":
            return np.unique(self._kb[edge_type].edge_index[place].numpy())
        source, _, target = self._kb.typed_relations[edge_type[1]]
        wanted = self._kb.type_names.index(target if place else source)
        return np.flatnonzero(self._kb["entity"].type.numpy() == wanted)

    def mask(self, rel: int, side: str) -> NDArray[np.bool_]:
        r"""Returns for each entity whether it may be on one side of a relation.

        Args:
            rel (int): The relation.
            side (str): The side.
        """
        found = np.zeros(self.num_nodes, np.bool_)
        found[self.of(rel, side)] = True
        return found


def single_valued(kb: HeteroData) -> dict[str, NDArray[np.bool_]]:
    r"""Finds relations whose queries have a single answer: at least 99 % of the
    queries that facts answer have exactly one, and there are at least ten such
    queries.

    Args:
        kb (HeteroData): The knowledge base.

    Returns:
        For each side of the answer, whether each relation is single-valued. A
        birthplace is single-valued if tails are asked for, but not if heads are.
    """
    head, rel, tail = (column.numpy() for column in flat_triples(kb))
    size, number = int(kb["entity"].num_nodes), len(kb.edge_types)
    found = {}
    facts = np.unique((rel * size + head) * size + tail)
    rest, tail = np.divmod(facts, size)
    rel, head = np.divmod(rest, size)
    for side, given in (("head", tail), ("tail", head)):
        queries, answers = np.unique(rel * size + given, return_counts=True)
        relation = queries // size
        total = np.bincount(relation, minlength=number)
        single = np.bincount(relation[answers == 1], minlength=number)
        found[side] = (total >= _LEAST_QUERIES) & (single >= _MOST * total)
    return found
