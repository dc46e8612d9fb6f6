"""TransR."""

import torch
from torch import Tensor
from torch.nn import Embedding

from kblrn_pyg.nn.products import ProductByType, SquaredLengths, dot_products
from kblrn_pyg.nn.scorers.projecting import ProjectingKGE, ProjectingScorer


class TransR(ProjectingKGE):
    r"""The TransR model from the `"Learning Entity and Relation Embeddings for
    Knowledge Graph Completion"
    <https://ojs.aaai.org/index.php/AAAI/article/view/9491>`_ paper.

    :class:`TransR` translates entities in a space of the relation, where a matrix
    projects them to:

    .. math::
        d(h, r, t) = - {\| \mathbf{e}_h^{\top} \mathbf{M}_r + \mathbf{d}_r -
        \mathbf{e}_t^{\top} \mathbf{M}_r \|}_p^p

    The matrices are initialised to the identity, as in the paper. The paper also
    initialises the embeddings from a trained TransE, and bounds the lengths of
    embeddings and of projections. Here, embeddings are initialised randomly, and
    lengths are unconstrained, as a softmax requires (see :class:`FreeTransE`).

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        rel_channels (int, optional): The size of the spaces of relations.
            (default: :obj:`None`, the same)
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
        rel_channels: int | None = None,
        margin: float = 1.0,
        p_norm: float = 2.0,
        sparse: bool = False,
    ) -> None:
        sizes = num_nodes, num_relations, hidden_channels
        super().__init__(*sizes, margin, p_norm, sparse)
        self.rel_channels = rel_channels or hidden_channels
        self.rel_emb = Embedding(num_relations, self.rel_channels)
        self.rel_matrix = Embedding(num_relations, hidden_channels * self.rel_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all embeddings, and makes all matrices the identity."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        torch.nn.init.xavier_uniform_(self.rel_emb.weight)
        with torch.no_grad():
            identity = torch.eye(self.hidden_channels, self.rel_channels)
            self.rel_matrix.weight.copy_(
                identity.flatten().expand_as(self.rel_matrix.weight)
            )

    @property
    def matrix(self) -> Tensor:
        """The matrix of each relation."""
        return self.rel_matrix.weight.view(-1, self.hidden_channels, self.rel_channels)

    def project(self, embedding: Tensor, rel_type: Tensor) -> Tensor:
        """Multiplies embeddings by matrices; see :class:`ProjectingKGE`."""
        kind = rel_type
        if embedding.dim() > rel_type.dim() + 1:
            kind = rel_type.unsqueeze(-1).expand(embedding.shape[:-1])
        vectors = embedding.reshape(-1, self.hidden_channels)
        products = ProductByType.apply(vectors, self.matrix, kind.reshape(-1))
        return products.view(*embedding.shape[:-1], self.rel_channels)


class TransRScorer(ProjectingScorer):
    r"""Scores as :class:`TransR` does.

    With :math:`\mathbf{q}` for the vector of a query, its squared distance from
    the projection of a tail is

    .. math::
        {\| \mathbf{q} \|}^2 - 2 (\mathbf{M}_r \mathbf{q}) \cdot \mathbf{e}_t +
        {\| \mathbf{e}_t^{\top} \mathbf{M}_r \|}^2

    Only the last addend needs the projections of all candidates, once for each
    relation.

    Args:
        kge (TransR): The model.
    """

    def compare_squared(self, vector: Tensor, rel_type: Tensor, rows: Tensor) -> Tensor:
        distinct, place = torch.unique(rel_type, return_inverse=True)
        matrix = self.kge.matrix
        back = ProductByType.apply(vector, matrix.transpose(1, 2), rel_type)
        lengths = SquaredLengths.apply(rows, matrix[distinct])
        of_queries = vector.square().sum(dim=-1, keepdim=True)
        return dot_products(2 * back, rows) - lengths[place] - of_queries
