"""What all predictions need: ids, scores of all candidates, and known answers."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.data.same import how_different
from kblrn_pyg.evaluation import evaluating
from kblrn_pyg.nn import KBLRN

Ids = NDArray[np.int64]
Scores = NDArray[np.floating]

# How many scores are held at once, in a handful of copies.
_SCORES = 1 << 22


class Query(NamedTuple):
    r"""A query :math:`(h, r, ?)` or :math:`(?, r, t)`.

    Args:
        asks_heads (bool): Whether it asks for heads, else for tails.
        rel (int): Its relation.
        given (int): Its entity.
    """

    asks_heads: bool
    rel: int
    given: int

    def triple(self, answer: int) -> tuple[int, int, int]:
        """Returns the triple that an answer makes of the query."""
        if self.asks_heads:
            return answer, self.rel, self.given
        return self.given, self.rel, answer


def kb_of(model: KBLRN) -> HeteroData:
    r"""Returns the knowledge base of a model.

    Args:
        model (KBLRN): The model.
    """
    if model.kb is None:
        raise ValueError(
            "'model' must know its knowledge base: make it by 'KBLRN.from_data', or "
            "set 'model.kb'"
        )
    return model.kb


def check_k(k: int) -> None:
    """Refuses a number of predictions that is none."""
    if k < 1:
        raise ValueError(f"'k' must be positive (got {k})")


class KnownFacts:
    r"""The answers that are known, for one query after the other.

    Args:
        kb (HeteroData): The knowledge base, whose :obj:`edge_index` is known.
        others (iterable): Knowledge bases over the same entities and
            relations, whose :obj:`edge_index` and :obj:`edge_label_index` are
            known, too.
    """

    def __init__(self, kb: HeteroData, others: Iterable[HeteroData]) -> None:
        if isinstance(others, HeteroData):
            raise ValueError("'known' must be a list of them (got one HeteroData)")
        self._num_nodes = kb["entity"].num_nodes
        self._edge_types = kb.edge_types
        self._sources = [(kb, "edge_index")]
        for other in (as_kb(one, len(kb.edge_types)) for one in others):
            found = how_different(kb, other)
            if found is not None:
                raise ValueError(
                    "'known' must be over the entities and relations of the model "
                    f"(got {found})"
                )
            self._sources += [(other, "edge_index"), (other, "edge_label_index")]
        self._codes: dict[tuple[bool, int], Ids] = {}

    def answers(self, query: Query) -> Ids:
        r"""Returns the known answers of a query.

        Args:
            query (Query): The query.
        """
        key = (query.asks_heads, query.rel)
        if key not in self._codes:
            self._codes[key] = self._of_relation(*key)
        codes, first = self._codes[key], query.given * self._num_nodes
        begin, end = np.searchsorted(codes, [first, first + self._num_nodes])
        return codes[begin:end] - first

    def _of_relation(self, asks_heads: bool, rel: int) -> Ids:
        """Query and answer in one number, so that one sort groups them."""
        edge_type = self._edge_types[rel]
        edges = [data[edge_type][key].cpu().numpy() for data, key in self._sources]
        head, tail = np.concatenate(edges, axis=1)
        given, answer = (tail, head) if asks_heads else (head, tail)
        return np.unique(given * self._num_nodes + answer)


def score_queries(
    model: KBLRN, queries: Sequence[Query]
) -> Iterator[tuple[Sequence[Query], Scores, Scores]]:
    r"""Scores all entities as answers to queries, some of these at a time.

    Args:
        model (KBLRN): The model.
        queries (sequence): The queries, all of which ask for the same side.

    Returns:
        Some queries, their scores and their probabilities, both
        :obj:`[num_queries, num_nodes]`.
    """
    device = next(model.parameters()).device
    size = max(1, _SCORES // model.num_nodes)
    for begin in range(0, len(queries), size):
        part = queries[begin : begin + size]
        rel_type = torch.tensor([query.rel for query in part], device=device)
        given = torch.tensor([query.given for query in part], device=device)
        with evaluating(model):
            if part[0].asks_heads:
                scores = model.score_heads(rel_type, given)
            else:
                scores = model.score_tails(given, rel_type)
            if scores.dtype != torch.double:
                scores = scores.float()  # NumPy does not know all short ones
            probability = scores.softmax(dim=1)
        # One score that is no number makes its whole row NaN.
        if probability[:, 0].isnan().any():
            raise ValueError("the scores of the model must be finite (got NaN or inf)")
        yield part, scores.cpu().numpy(), probability.cpu().numpy()


def largest(values: Scores, k: int) -> Ids:
    r"""Returns the places of the largest values, those of ties in their order.

    Args:
        values (numpy.ndarray): The values.
        k (int): How many.

    Example:
        >>> largest(np.array([1.0, 3.0, 2.0, 3.0, 2.0]), 3).tolist()
        [1, 3, 2]
    """
    places = np.arange(len(values))
    if k < len(values):
        places = np.flatnonzero(values >= np.partition(values, -k)[-k])
    order = np.argsort(-values[places], kind="stable")
    return places[order[:k]]
