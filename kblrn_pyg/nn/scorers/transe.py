"""TransE, with embeddings of any length or of length one."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.kge import TransE

from kblrn_pyg.nn.scorers.scorer import Scorer, distances, rows_of


class FreeTransE(TransE):
    r"""PyG's :class:`~torch_geometric.nn.kge.TransE` without normalising the
    embeddings of entities:

    .. math::
        d(h, r, t) = - {\| \mathbf{e}_h + \mathbf{e}_r - \mathbf{e}_t \|}_p

    Embeddings of length one are hardly ever more than two apart, which is enough
    for a margin, but keeps the probabilities of a softmax over thousands of
    entities almost equal.

    Args:
        *args (optional): See :class:`torch_geometric.nn.kge.TransE`.
        **kwargs (optional): See :class:`torch_geometric.nn.kge.TransE`.
    """

    def reset_parameters(self) -> None:
        """Resets all embeddings, close to each other."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        torch.nn.init.xavier_uniform_(self.rel_emb.weight)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        reached = self.node_emb(head_index) + self.rel_emb(rel_type)
        return -(reached - self.node_emb(tail_index)).norm(p=self.p_norm, dim=-1)


class TransEScorer(Scorer):
    r"""Scores as :class:`FreeTransE` does.

    Args:
        kge (FreeTransE): The model.
    """

    is_plain = True

    @property
    def metric(self) -> str | None:  # type: ignore[override]
        """The metric for kernels, which support the L1 norm."""
        return "l1" if self.kge.p_norm == 1.0 else None

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        return rows_of(self.kge.node_emb, index)

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return head + self.kge.rel_emb(rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return tail - self.kge.rel_emb(rel_type)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return -distances(query, rows, float(self.kge.p_norm))


class UnitTransEScorer(TransEScorer):
    r"""Scores as PyG's :class:`~torch_geometric.nn.kge.TransE` does, whose
    embeddings of entities have length one.

    Args:
        kge (torch_geometric.nn.kge.TransE): The model.
    """

    is_plain = False

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        rows = super().table(encoded, index)
        return F.normalize(rows, p=self.kge.p_norm, dim=-1)
