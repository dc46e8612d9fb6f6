"""TransE as a softmax needs it."""

import torch
from torch import Tensor
from torch_geometric.nn.kge import TransE


class FreeTransE(TransE):
    r"""PyG's :class:`~torch_geometric.nn.kge.TransE` without making every
    embedding of an entity one long:

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
        """Draws all embeddings anew, close to each other."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        torch.nn.init.xavier_uniform_(self.rel_emb.weight)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        reached = self.node_emb(head_index) + self.rel_emb(rel_type)
        return -(reached - self.node_emb(tail_index)).norm(p=self.p_norm, dim=-1)
