"""The base class of scorers, which compare queries with rows of entities."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Embedding
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.nn.arguments import Rebuildable
from kblrn_pyg.nn.softmax import Factors, partition

# How many triples are scored at once by the default.
_TRIPLES_AT_ONCE = 1 << 17


class Scorer(Rebuildable):
    r"""Scores triples with embeddings, in a form that can score all candidates.

    A *query*, made of the known entity and the relation, is compared with a
    row for each candidate:

    .. code-block:: python

        encoded = scorer.encode()  # once a step
        query = scorer.tail_query(scorer.table(encoded, head_index), rel_type)
        scores = scorer.compare(query, scorer.table(encoded))

    This class works for any :class:`~torch_geometric.nn.kge.KGEModel`, including
    user-defined ones, because it calls the model's :meth:`forward`, which is slow.
    Subclasses compare vectors. Override :meth:`encode` to put layers of a graph
    neural network in front of the embeddings.

    Args:
        kge (KGEModel): The model.
    """

    # How vectors are compared, "dot" or "l1", if kernels may do it.
    metric: str | None = None

    # Whether making queries takes little time, so that one thread is enough.
    has_light_queries = True

    # Whether only tails can be asked for; see 'ReciprocalScorer'.
    needs_reciprocal = False

    def __init__(self, kge: KGEModel) -> None:
        super().__init__()
        self.kge = kge

    @property
    def num_nodes(self) -> int:
        """The number of entities."""
        return self.kge.num_nodes

    @property
    def num_relations(self) -> int:
        """The number of relations."""
        return self.kge.num_relations

    @property
    def hidden_channels(self) -> int:
        """The embedding size."""
        return self.kge.hidden_channels

    @property
    def title(self) -> str:
        """The name of the scorer in explanations."""
        return type(self.kge).__name__

    @property
    def has_vectors(self) -> bool:
        """Whether queries and rows are vectors, whose entries can be dropped."""
        return type(self).compare is not Scorer.compare

    @property
    def is_direct(self) -> bool:
        """Whether rows are the embeddings themselves, without further
        computation."""
        return type(self).encode is Scorer.encode

    @property
    def embeddings(self) -> list[Embedding]:
        """The embeddings of entities."""
        found = (getattr(self.kge, name, None) for name in ("node_emb", "node_emb_im"))
        return [one for one in found if one is not None]

    @property
    def is_plain(self) -> bool:
        """Whether rows of entities are those of their embeddings, side by side."""
        return False

    def reset_parameters(self) -> None:
        """Resets all embeddings."""
        self.kge.reset_parameters()

    def encode(self) -> Any:
        """Returns what all queries of a step share."""
        return None

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        r"""Returns the rows of entities.

        Args:
            encoded: What :meth:`encode` returned.
            index (torch.Tensor, optional): The entities.
                (default: :obj:`None`, all)
        """
        if index is None:
            index = torch.arange(self.num_nodes, device=self.device)
        return index

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        r"""Returns the queries that tails are compared with.

        Args:
            head (torch.Tensor): The row of each head.
            rel_type (torch.Tensor): The relation types.
        """
        return torch.stack([head, rel_type, torch.zeros_like(head)], dim=-1)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        r"""Returns the queries that heads are compared with.

        Args:
            rel_type (torch.Tensor): The relation types.
            tail (torch.Tensor): The row of each tail.
        """
        return torch.stack([tail, rel_type, torch.ones_like(tail)], dim=-1)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        r"""Scores each query against rows.

        Args:
            query (torch.Tensor): The queries.
            rows (torch.Tensor): The rows of candidates, shared by all queries,
                or, with one dimension more, those of each query.
        """
        if rows.dim() == 1:
            rows = rows.expand(len(query), -1)
        known, rel_type, asks_heads = (
            column[:, None].expand_as(rows) for column in query.unbind(dim=-1)
        )
        head = torch.where(asks_heads > 0, rows, known).flatten()
        tail = torch.where(asks_heads > 0, known, rows).flatten()
        parts = zip(
            head.split(_TRIPLES_AT_ONCE),
            rel_type.flatten().split(_TRIPLES_AT_ONCE),
            tail.split(_TRIPLES_AT_ONCE),
        )
        scores = [self.kge(*triples) for triples in parts]
        return torch.cat(scores or [query.new_empty(0)]).view(rows.shape)

    def drop_entries(self, query: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
        r"""Drops entries of queries.

        Args:
            query (torch.Tensor): The queries.
            drop (callable): A function that drops entries of a tensor.
        """
        return drop(query)

    def norm(self, power: int, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        r"""Returns the sum of the powers of all embeddings of triples.

        Args:
            power (int): The power.
            head (torch.Tensor): The embeddings of each head, side by side.
            rel_type (torch.Tensor): The relation types.
            tail (torch.Tensor): The embeddings of each tail, side by side.
        """
        return sum_of_powers(power, head, self.kge.rel_emb(rel_type), tail)

    def dura(self, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        r"""Returns the duality-induced penalty of triples, if queries multiply:

        .. math::
            \|\mathbf{e}_h\|^2 + \|\mathbf{e}_t\|^2 + \|\mathbf{q}_{h, r}\|^2 +
            \|\mathbf{q}_{r, t}\|^2

        Args:
            head (torch.Tensor): The row of each head.
            rel_type (torch.Tensor): The relation types.
            tail (torch.Tensor): The row of each tail.
        """
        queries = self.tail_query(head, rel_type), self.head_query(rel_type, tail)
        return sum_of_powers(2, head, tail, *queries)

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        r"""Returns vectors of pairs of entities and of relations whose dot products
        are scores, for scorers that have them.

        Args:
            head (torch.Tensor): The row of each head.
            tail (torch.Tensor): The row of each tail.
        """
        return None

    def relation_loss(
        self,
        head: Tensor,
        rel_type: Tensor,
        tail: Tensor,
        precision: torch.dtype | None = None,
    ) -> Tensor:
        r"""Returns the mean cross-entropy of relations, given entities.

        Args:
            head (torch.Tensor): The row of each head.
            rel_type (torch.Tensor): The relation types.
            tail (torch.Tensor): The row of each tail.
            precision (torch.dtype, optional): The type of the numbers that may be
                multiplied. (default: :obj:`None`, that of the rows)
        """
        factors = self.relation_factors(head, tail)
        if factors is None:
            return F.cross_entropy(self._relation_scores(head, tail), rel_type)
        place = torch.arange(len(rel_type), device=rel_type.device)
        found = partition(
            factors._replace(precision=precision), None, (place, rel_type)
        )
        return (found[0] - found[1]).mean()

    def _relation_scores(self, head: Tensor, tail: Tensor) -> Tensor:
        """Returns the scores of all relations between entities, one by one."""
        size, every = len(head), torch.arange(self.num_relations, device=head.device)
        head, tail = (
            rows.repeat_interleave(len(every), dim=0) for rows in (head, tail)
        )
        query = self.tail_query(head, every.repeat(size))
        return self.compare(query, tail.unsqueeze(1)).view(size, -1)

    def fingerprint(self) -> str:
        """Returns a digest that distinguishes scorers with incompatible weights."""
        norm = getattr(self.kge, "p_norm", None)
        names = f"{type(self).__name__} of {type(self.kge).__name__}"
        return names if norm is None else f"{names} of norm {norm}"

    @property
    def device(self) -> torch.device:
        """The device of the embeddings."""
        return self.kge.node_emb.weight.device


def sum_of_powers(power: int, *factors: Tensor) -> Tensor:
    """Returns the sum of the powers of the absolute values of all entries."""
    return sum(
        (factor.abs().pow(power).sum() for factor in factors[1:]),
        start=factors[0].abs().pow(power).sum(),
    )


def rows_of(embedding: Embedding, index: Tensor | None) -> Tensor:
    """Returns the rows of entities, or all of them."""
    return embedding.weight if index is None else embedding(index)


def distances(query: Tensor, rows: Tensor, p: float) -> Tensor:
    """Returns the distance of each query from shared rows, or from its own rows."""
    if rows.dim() == query.dim():
        # The matrix-product form of Euclidean distances is inexact near zero.
        mode = "donot_use_mm_for_euclid_dist"
        return torch.cdist(query, rows, p=p, compute_mode=mode)
    return torch.linalg.vector_norm(query.unsqueeze(-2) - rows, ord=p, dim=-1)
