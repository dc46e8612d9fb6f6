"""The distinct queries behind triples, and what is known to answer them."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import as_kb, flat_triples
from kblrn_pyg.data.same import how_different
from kblrn_pyg.evaluation.ranks import HEAD, Ids
from kblrn_pyg.evaluation.scorer import Scorer, device_of


class Triples(NamedTuple):
    r"""Flat triples.

    Args:
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
    """

    head: Ids
    rel: Ids
    tail: Ids

    def sides(self, asked: int) -> tuple[Ids, Ids]:
        """Returns the entities that are given, and those that are asked for."""
        return (self.tail, self.head) if asked == HEAD else (self.head, self.tail)


class Queries(NamedTuple):
    r"""The distinct queries of one side, and what is known to answer them.

    Args:
        relations (list): The names of all relations.
        side (int): Which side is asked for.
        given (numpy.ndarray): The entity that each query gives.
        rel (numpy.ndarray): The relation of each query, ascending.
        known_ptr (numpy.ndarray): Where the known answers of each query begin.
        known (numpy.ndarray): The known answers, distinct within a query.
    """

    relations: list[str]
    side: int
    given: Ids
    rel: Ids
    known_ptr: Ids
    known: Ids

    def text(self, i: int) -> str:
        """Returns a query as people write it."""
        name, entity = self.relations[self.rel[i]], self.given[i]
        return (
            f"(?, {name}, {entity})" if self.side == HEAD else f"({entity}, {name}, ?)"
        )


def distinct_queries(
    asked: Triples, known: Triples, side: int, num_nodes: int, relations: list[str]
) -> tuple[Queries, Ids]:
    """Returns the distinct queries behind triples, and which one is each triple's."""
    given, _ = asked.sides(side)
    code, row = np.unique(asked.rel * num_nodes + given, return_inverse=True)
    known_given, known_answer = known.sides(side)
    known_code = known.rel * num_nodes + known_given
    place = np.searchsorted(code, known_code)
    is_asked = np.append(code, -1)[place] == known_code  # -1: beyond the last one
    place, known_answer = place[is_asked], known_answer[is_asked]
    # Row and answer in one number, so that one sort groups them and drops
    # what is known twice.
    pairs = np.unique(place * num_nodes + known_answer)
    known_ptr = np.searchsorted(pairs, np.arange(len(code) + 1) * num_nodes)
    rel, entity = np.divmod(code, num_nodes)
    return Queries(relations, side, entity, rel, known_ptr, pairs % num_nodes), row


def score_all(model: Scorer, queries: Queries, part: slice) -> np.ndarray:
    """Scores all entities as answers to some queries."""
    device = device_of(model)
    given = torch.from_numpy(queries.given[part]).to(device)
    rel = torch.from_numpy(queries.rel[part]).to(device)
    if queries.side == HEAD:
        scores = model.score_heads(rel, given)
    else:
        scores = model.score_tails(given, rel)
    if scores.size() != (len(rel), model.num_nodes):
        raise ValueError(
            f"the scores of the model must have the shape "
            f"{[len(rel), model.num_nodes]} (got {list(scores.size())})"
        )
    # The maximum of a row is NaN if any score is, and takes no memory to find.
    is_nan = scores.amax(dim=1).isnan()
    if is_nan.any():
        query = queries.text(part.start + int(is_nan.nonzero()[0]))
        raise ValueError(f"the scores of the model must be numbers (got NaN: {query})")
    if scores.dtype not in (torch.float32, torch.float64):
        scores = scores.float()
    return np.ascontiguousarray(scores.detach().cpu().numpy())


def known_triples(
    data: HeteroData, filter_with: Iterable[HeteroData | Data]
) -> Triples:
    """Returns what is known, in a knowledge base and in others over the same names."""
    if isinstance(filter_with, HeteroData):
        raise ValueError("'filter_with' must be a list of them (got one HeteroData)")
    sources = [(data, "edge_index"), (data, "edge_label_index")]
    for other in (as_kb(one, len(data.edge_types)) for one in filter_with):
        found = how_different(data, other)
        if found is not None:
            raise ValueError(
                "'filter_with' must be over the entities and relations of 'data' "
                f"(got {found})"
            )
        sources.append((other, "edge_label_index"))
    return join_triples(sources)


def join_triples(sources: list[tuple[HeteroData, str]]) -> Triples:
    """Returns the triples that knowledge bases hold under a key."""
    columns = zip(*(flat_triples(data, key) for data, key in sources))
    return Triples(*(torch.cat(column).cpu().numpy() for column in columns))


def relation_names(data: HeteroData) -> list[str]:
    """Returns the names of all relations."""
    return [relation for _, relation, _ in data.edge_types]
