"""Distances between projections of entities that depend on the relation."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from kblrn_pyg.nn.products import by_type
from kblrn_pyg.nn.scorers.margin import MarginKGE
from kblrn_pyg.nn.scorers.scorer import Scorer, rows_of


class ProjectingKGE(MarginKGE):
    r"""A model that projects entities before it translates them, with a projection
    for each relation:

    .. math::
        d(h, r, t) = - {\| p_r(\mathbf{e}_h) + \mathbf{d}_r -
        p_r(\mathbf{e}_t) \|}_p^p

    Subclasses implement :meth:`project`.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        margin (float, optional): The margin of the ranking loss.
            (default: :obj:`1.0`)
        p_norm (float, optional): The order of the norm, whose power is taken: 2
            is the squared Euclidean distance. (default: :obj:`2.0`)
        sparse (bool, optional): If set to :obj:`True`, gradients w.r.t. to
            the embeddings of entities will be sparse. (default: :obj:`False`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        hidden_channels: int,
        margin: float = 1.0,
        p_norm: float = 2.0,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_nodes, num_relations, hidden_channels, margin, sparse)
        self.p_norm = p_norm

    def project(self, embedding: Tensor, rel_type: Tensor) -> Tensor:
        r"""Projects the embeddings of entities.

        Args:
            embedding (torch.Tensor): An embedding for each relation type, or,
                with one dimension more, several of them.
            rel_type (torch.Tensor): The relation types.
        """
        raise NotImplementedError

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        head = self.project(self.node_emb(head_index), rel_type)
        tail = self.project(self.node_emb(tail_index), rel_type)
        return -powers(head + self.rel_emb(rel_type) - tail, self.p_norm)


class ProjectingScorer(Scorer):
    r"""Compares projections with candidates of many queries at once.

    The vector of a query is already projected, and its relation, by which
    candidates are projected, is its last entry. No tensor has a row for each pair
    of a query and a candidate: squared Euclidean distances are expanded into dot
    products, and for other distances all candidates are projected once for each
    relation, and again for gradients.

    Args:
        kge (ProjectingKGE): The model.
    """

    is_plain = True

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        return rows_of(self.kge.node_emb, index)

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        projected = self.kge.project(head, rel_type)
        return self._query(projected + self.kge.rel_emb(rel_type), rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        projected = self.kge.project(tail, rel_type)
        return self._query(projected - self.kge.rel_emb(rel_type), rel_type)

    def _query(self, vector: Tensor, rel_type: Tensor) -> Tensor:
        if self.kge.num_relations > 2 / torch.finfo(vector.dtype).eps:
            raise ValueError(
                f"'num_relations' must be numbers that {vector.dtype} can hold (got "
                f"{self.kge.num_relations})"
            )
        return torch.cat([vector, rel_type.to(vector.dtype).unsqueeze(-1)], dim=-1)

    def drop_entries(self, query: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
        return torch.cat([drop(query[..., :-1]), query[..., -1:]], dim=-1)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        vector, rel_type = query[..., :-1], query[..., -1].detach().long()
        if rows.dim() > query.dim():
            projected = self.kge.project(rows, rel_type)
            return -powers(vector.unsqueeze(-2) - projected, self.kge.p_norm)
        if self.kge.p_norm == 2.0:
            return self.compare_squared(vector, rel_type, rows)
        if len(query) == 0:
            return query.new_empty(0, len(rows))
        groups = [places for _, places in by_type(rel_type)]
        scores = [
            checkpoint(
                self._compare_by_one,
                *(vector[places], rel_type[places[:1]], rows),
                use_reentrant=False,
                preserve_rng_state=False,
            )
            for places in groups
        ]
        return torch.cat(scores)[torch.argsort(torch.cat(groups))]

    def compare_squared(self, vector: Tensor, rel_type: Tensor, rows: Tensor) -> Tensor:
        r"""Scores each query against shared rows by squared Euclidean distances.

        Args:
            vector (torch.Tensor): The projected vector of each query.
            rel_type (torch.Tensor): The relation type of each query.
            rows (torch.Tensor): The rows of candidates.
        """
        raise NotImplementedError

    def _compare_by_one(self, vector: Tensor, rel_type: Tensor, rows: Tensor) -> Tensor:
        """Scores queries of one relation."""
        projected = self.kge.project(rows.unsqueeze(0), rel_type).squeeze(0)
        p = float(self.kge.p_norm)
        return -torch.cdist(vector, projected, p=p).pow(p)


def powers(difference: Tensor, p: float) -> Tensor:
    """Returns the sums of the powers of absolute values."""
    return difference.abs().pow(p).sum(dim=-1)
