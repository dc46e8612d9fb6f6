"""TuckER."""

import torch
from torch import Tensor
from torch.nn import Embedding, Parameter

from kblrn_pyg.nn.products import ProductByType
from kblrn_pyg.nn.scorers.distmult import DistMultScorer
from kblrn_pyg.nn.scorers.margin import MarginKGE
from kblrn_pyg.nn.softmax import Factors


class TuckER(MarginKGE):
    r"""The TuckER model from the `"TuckER: Tensor Factorization for Knowledge Graph
    Completion" <https://arxiv.org/abs/1901.09590>`_ paper.

    :class:`TuckER` has a core tensor that all relations share; its product with
    the embedding of a relation is a matrix as that of :class:`RESCAL`:

    .. math::
        d(h, r, t) = \mathcal{W} \times_1 \mathbf{w}_r \times_2 \mathbf{e}_h
        \times_3 \mathbf{e}_t

    The dropouts of entities and of queries in the paper are those of
    :class:`LatentExpert`. Unlike the paper's, it needs no reciprocal relations, and so
    it has no batch normalisation, after which the score of a triple would depend on
    the side that is asked for.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        rel_channels (int, optional): The embedding size of relations.
            (default: :obj:`None`, the same)
        margin (float, optional): The margin of the ranking loss.
            (default: :obj:`1.0`)
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
        sparse: bool = False,
    ) -> None:
        super().__init__(num_nodes, num_relations, hidden_channels, margin, sparse)
        self.rel_channels = rel_channels or hidden_channels
        self.rel_emb = Embedding(num_relations, self.rel_channels)
        shape = self.rel_channels, hidden_channels, hidden_channels
        self.core = Parameter(torch.empty(shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all embeddings and the core anew."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        # So that the matrices of relations are as those of RESCAL.
        for weight in (self.rel_emb.weight, self.core):
            bound = (3 / weight.size(-1)) ** 0.5
            torch.nn.init.uniform_(weight, -bound, bound)

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
        # Matrices are large, so only those of the relations that occur are made.
        distinct, place = torch.unique(rel_type, return_inverse=True)
        matrix = torch.tensordot(self.rel_emb(distinct), self.core, dims=1)
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


class TuckERScorer(DistMultScorer):
    r"""Scores as :class:`TuckER` does.

    Args:
        kge (TuckER): The model.
    """

    has_light_queries = False

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return self.kge.product(head, rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.kge.product(tail, rel_type, transposed=True)

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        of_tail = torch.tensordot(tail, self.kge.core, dims=([1], [2]))
        pairs = (of_tail * head.unsqueeze(1)).sum(dim=-1)
        return Factors(pairs, (self.kge.rel_emb.weight,))
