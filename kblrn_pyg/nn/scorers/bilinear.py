"""The base class of scorers whose relations are matrices."""

from torch import Tensor

from kblrn_pyg.nn.products import ProductByType
from kblrn_pyg.nn.scorers.distmult import DistMultScorer
from kblrn_pyg.nn.scorers.margin import MarginKGE


class BilinearKGE(MarginKGE):
    r"""A model that scores with a matrix for each relation:

    .. math::
        d(h, r, t) = \mathbf{e}_h^{\top} \mathbf{W}_r \mathbf{e}_t

    See :class:`MarginKGE` for its arguments.
    """

    def matrices(self, rel_type: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns matrices of relations, and which of them each relation has.

        Args:
            rel_type (torch.Tensor): The relation types.
        """
        raise NotImplementedError

    def product(
        self, embedding: Tensor, rel_type: Tensor, transposed: bool = False
    ) -> Tensor:
        r"""Returns the product of each embedding with the matrix of its relation.

        Args:
            embedding (torch.Tensor): The embeddings, of heads, or of tails if
                :obj:`transposed`.
            rel_type (torch.Tensor): The relation types.
            transposed (bool, optional): Whether to transpose the matrices.
                (default: :obj:`False`)
        """
        matrix, place = self.matrices(rel_type)
        if transposed:
            matrix = matrix.transpose(1, 2)
        vectors = embedding.reshape(-1, self.hidden_channels)
        products = ProductByType.apply(vectors, matrix, place.reshape(-1))
        return products.view(embedding.shape)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        head, tail = self.node_emb(head_index), self.node_emb(tail_index)
        return (self.product(head, rel_type) * tail).sum(dim=-1)


class BilinearScorer(DistMultScorer):
    r"""Scores as a :class:`BilinearKGE` does.

    Args:
        kge (BilinearKGE): The model.
    """

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return self.kge.product(head, rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.kge.product(tail, rel_type, transposed=True)
