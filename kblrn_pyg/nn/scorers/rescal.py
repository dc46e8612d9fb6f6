"""RESCAL, which PyG's collection of scorers lacks."""

import torch
from torch import Tensor
from torch.nn import Embedding

from kblrn_pyg.nn.scorers.bilinear import BilinearKGE, BilinearScorer
from kblrn_pyg.nn.softmax import Factors


class RESCAL(BilinearKGE):
    r"""The RESCAL model from the `"A Three-Way Model for Collective Learning on
    Multi-Relational Data"
    <https://icml.cc/2011/papers/438_icmlpaper.pdf>`_ paper.

    :class:`RESCAL` models relations as full matrices, of which those of
    :class:`~torch_geometric.nn.kge.DistMult` are the diagonals:

    .. math::
        d(h, r, t) = \mathbf{e}_h^{\top} \mathbf{W}_r \mathbf{e}_t

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
        super().__init__(num_nodes, num_relations, hidden_channels, margin, sparse)
        self.rel_emb = Embedding(num_relations, hidden_channels**2, sparse=sparse)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all embeddings."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        # As xavier_uniform_ would draw the matrix of each relation.
        bound = (3 / self.hidden_channels) ** 0.5
        torch.nn.init.uniform_(self.rel_emb.weight, -bound, bound)

    def matrices(self, rel_type: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the matrices of all relations."""
        size = self.hidden_channels
        return self.rel_emb.weight.view(-1, size, size), rel_type


class RESCALScorer(BilinearScorer):
    r"""Scores as :class:`RESCAL` does.

    Args:
        kge (RESCAL): The model.
    """

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        products = head.unsqueeze(2) * tail.unsqueeze(1)
        return Factors(products.flatten(1), (self.kge.rel_emb.weight,))
