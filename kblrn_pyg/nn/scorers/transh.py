"""TransH."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Embedding

from kblrn_pyg.nn.products import dot_products
from kblrn_pyg.nn.scorers.projecting import ProjectingKGE, ProjectingScorer


class TransH(ProjectingKGE):
    r"""The TransH model from the `"Knowledge Graph Embedding by Translating on
    Hyperplanes" <https://ojs.aaai.org/index.php/AAAI/article/view/8870>`_ paper.

    :class:`TransH` translates projections of entities on a hyperplane of the
    relation, whose normal vector :math:`\mathbf{w}_r` has length one:

    .. math::
        d(h, r, t) = - {\| (\mathbf{e}_h - \mathbf{w}_r^{\top} \mathbf{e}_h
        \mathbf{w}_r) + \mathbf{d}_r - (\mathbf{e}_t - \mathbf{w}_r^{\top}
        \mathbf{e}_t \mathbf{w}_r) \|}_p^p

    The paper bounds the lengths of entities, which would harm a softmax (see
    :class:`FreeTransE`), and keeps :math:`\mathbf{d}_r` close to the hyperplane.
    Squared Euclidean distances do not need this: the component outside the
    hyperplane adds the same value to all candidates.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        margin (float, optional): The margin of the ranking loss.
            (default: :obj:`1.0`)
        p_norm (float, optional): The order of the norm, whose power is taken; the
            paper's is 2. (default: :obj:`2.0`)
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
        sizes = num_nodes, num_relations, hidden_channels
        super().__init__(*sizes, margin, p_norm, sparse)
        self.rel_normal = Embedding(num_relations, hidden_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all embeddings, close to each other."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        torch.nn.init.xavier_uniform_(self.rel_emb.weight)
        torch.nn.init.normal_(self.rel_normal.weight)

    def normal(self, rel_type: Tensor) -> Tensor:
        """Returns the normal vectors of hyperplanes, of length one."""
        return F.normalize(self.rel_normal(rel_type), dim=-1)

    def project(self, embedding: Tensor, rel_type: Tensor) -> Tensor:
        """Projects embeddings on hyperplanes; see :class:`ProjectingKGE`."""
        normal = self.normal(rel_type)
        if embedding.dim() > normal.dim():
            normal = normal.unsqueeze(-2)
        return embedding - (embedding * normal).sum(dim=-1, keepdim=True) * normal


class TransHScorer(ProjectingScorer):
    r"""Scores as :class:`TransH` does.

    With :math:`\mathbf{q}` for the vector of a query and :math:`\mathbf{q}_\perp`
    for its projection, its squared distance from the projection of a tail is

    .. math::
        {\| \mathbf{q} \|}^2 - 2 \mathbf{q}_\perp \cdot \mathbf{e}_t + {\|
        \mathbf{e}_t \|}^2 - (\mathbf{w}_r \cdot \mathbf{e}_t)^2

    Args:
        kge (TransH): The model.
    """

    def compare_squared(self, vector: Tensor, rel_type: Tensor, rows: Tensor) -> Tensor:
        distinct, place = torch.unique(rel_type, return_inverse=True)
        out_of_plane = dot_products(self.kge.normal(distinct), rows).square()
        products = dot_products(2 * self.kge.project(vector, rel_type), rows)
        of_rows = out_of_plane - rows.square().sum(dim=-1)
        of_queries = vector.square().sum(dim=-1, keepdim=True)
        return products + of_rows[place] - of_queries
