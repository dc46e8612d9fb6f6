"""TuckER."""

import torch
from torch import Tensor
from torch.nn import Embedding, Parameter

from kblrn_pyg.nn.scorers.bilinear import BilinearKGE, BilinearScorer
from kblrn_pyg.nn.softmax import Factors


class TuckER(BilinearKGE):
    r"""The TuckER model from the `"TuckER: Tensor Factorization for Knowledge Graph
    Completion" <https://arxiv.org/abs/1901.09590>`_ paper.

    :class:`TuckER` has a core tensor that all relations share; its product with
    the embedding of a relation is a matrix as that of :class:`RESCAL`:

    .. math::
        d(h, r, t) = \mathcal{W} \times_1 \mathbf{w}_r \times_2 \mathbf{e}_h
        \times_3 \mathbf{e}_t

    The paper's dropout of queries is that of :class:`LatentExpert`, whose dropout
    of entities also applies to candidates; matrices have no dropout. Unlike the
    paper's version, this one does not need reciprocal relations. It therefore has
    no batch normalisation, with which the score of a triple would depend on the
    side of the query.

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
        """Resets all embeddings and the core."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        # So that the matrices of relations are as those of RESCAL.
        for weight in (self.rel_emb.weight, self.core):
            bound = (3 / weight.size(-1)) ** 0.5
            torch.nn.init.uniform_(weight, -bound, bound)

    def matrices(self, rel_type: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the matrices of those relations that occur, because matrices are
        large."""
        distinct, place = torch.unique(rel_type, return_inverse=True)
        return torch.tensordot(self.rel_emb(distinct), self.core, dims=1), place


class TuckERScorer(BilinearScorer):
    r"""Scores as :class:`TuckER` does.

    Args:
        kge (TuckER): The model.
    """

    has_light_queries = False

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        of_tail = torch.tensordot(tail, self.kge.core, dims=([1], [2]))
        pairs = (of_tail * head.unsqueeze(1)).sum(dim=-1)
        return Factors(pairs, (self.kge.rel_emb.weight,))
