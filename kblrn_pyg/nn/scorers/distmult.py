"""DistMult."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from kblrn_pyg.nn.products import dot_products
from kblrn_pyg.nn.scorers.scorer import Scorer
from kblrn_pyg.nn.softmax import Factors


class DistMultScorer(Scorer):
    r"""Scores as :class:`torch_geometric.nn.kge.DistMult` does:

    .. math::
        d(h, r, t) = (\mathbf{e}_h * \mathbf{w}_r) \cdot \mathbf{e}_t

    Args:
        kge (torch_geometric.nn.kge.DistMult): The model.
    """

    metric = "dot"

    @property
    def is_direct(self) -> bool:
        return type(self).encode is DistMultScorer.encode

    @property
    def is_plain(self) -> bool:
        return self.is_direct

    def encode(self) -> Any:
        return self.kge.node_emb.weight

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        if index is None:
            return encoded
        # Only gradients of the embeddings themselves can be sparse.
        embedding = self.kge.node_emb
        is_sparse = embedding.sparse and encoded is embedding.weight
        return F.embedding(index, encoded, sparse=is_sparse)

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return head * self.kge.rel_emb(rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return tail * self.kge.rel_emb(rel_type)

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        return Factors(head * tail, (self.kge.rel_emb.weight,))

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return dot_products(query, rows)
