"""Queries with one answer, and queries with many."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.evaluation import RankTable

# The bound of Bordes et al. (2013), which the paper uses.
_FEWER_THAN = 1.5


def asks_for_one(
    table: RankTable, train: HeteroData, others: Iterable[HeteroData]
) -> NDArray[np.bool_]:
    r"""Returns which rows ask for what their relation has one of.

    This is a matter of the relation, not of the single query: its queries from
    that side that have answers have fewer than 1.5 on average.

    Args:
        table (RankTable): The ranks.
        train (HeteroData): The knowledge base.
        others (iterable): The other splits, whose triples are facts, too.
    """
    facts = [flat_triples(train, "edge_index")]
    facts += [flat_triples(split, "edge_label_index") for split in others]
    columns = [np.concatenate(column) for column in zip(*facts)]
    head, rel, tail = np.unique(np.stack(columns), axis=1)
    known = {"head": tail, "tail": head}  # by the side that is asked for
    has_one = np.zeros((len(known), len(table.relations)), np.bool_)
    for side, entity in known.items():
        asked, _ = np.unique(np.stack([rel, entity]), axis=1)
        num_answers, num_queries = (
            np.bincount(column, minlength=len(table.relations))
            for column in (rel, asked)
        )
        has_one[SIDES.index(side)] = num_answers < _FEWER_THAN * num_queries
    return has_one[table.side, table.relation]
