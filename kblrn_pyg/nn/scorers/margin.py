"""The base class of embedding models that PyG lacks: a margin ranking loss."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.kge import KGEModel


class MarginKGE(KGEModel):
    r"""A :class:`~torch_geometric.nn.kge.KGEModel` with a margin ranking loss, so
    that PyG's own scripts can train it, too.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        margin (float, optional): The margin of the ranking loss.
            (default: :obj:`1.0`)
        sparse (bool, optional): If set to :obj:`True`, gradients w.r.t. to
            the embedding matrices will be sparse. (default: :obj:`False`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        hidden_channels: int,
        margin: float = 1.0,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_nodes, num_relations, hidden_channels, sparse)
        self.margin = margin

    def loss(self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Returns the margin ranking loss against random triples."""
        score = self(head_index, rel_type, tail_index)
        other = self(*self.random_sample(head_index, rel_type, tail_index))
        return F.margin_ranking_loss(
            score, other, target=torch.ones_like(score), margin=self.margin
        )
