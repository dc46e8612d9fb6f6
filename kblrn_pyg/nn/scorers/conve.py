"""ConvE."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d, BatchNorm2d, Conv2d, Embedding, Linear

from kblrn_pyg.nn.scorers.distmult import DistMultScorer
from kblrn_pyg.nn.scorers.margin import MarginKGE
from kblrn_pyg.nn.scorers.scorer import sum_of_powers
from kblrn_pyg.nn.softmax import Factors


class ConvE(MarginKGE):
    r"""The ConvE model from the `"Convolutional 2D Knowledge Graph Embeddings"
    <https://arxiv.org/abs/1707.01476>`_ paper.

    :class:`ConvE` convolves the embeddings of head and relation, folded to an
    image, one below the other, and multiplies the result by the tail's:

    .. math::
        d(h, r, t) = f(\textrm{vec}(f([\overline{\mathbf{e}}_h;
        \overline{\mathbf{w}}_r] * \omega)) \mathbf{W}) \cdot \mathbf{e}_t + b_t

    The image, its features and the hidden layer are batch-normalised. The bias
    :math:`b_t` is the last column of :obj:`node_emb`. Heads are predicted through
    reciprocal relations. An embedding of size 200 becomes an image of 10 by 20; the
    authors' later code uses 20 by 10 (:obj:`height=20`). The loss is that of
    :class:`KBLRN`, not a binary cross-entropy with smoothed labels.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        height (int, optional): The height of the image of an embedding.
            (default: :obj:`None`, that which is closest to a square from below)
        conv_channels (int, optional): The number of filters.
            (default: :obj:`32`)
        dropouts (sequence, optional): The dropout fractions of the image, of whole
            feature maps, and of the hidden layer. (default: :obj:`(0.2, 0.2, 0.3)`)
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
        height: int | None = None,
        conv_channels: int = 32,
        dropouts: tuple[float, float, float] = (0.2, 0.2, 0.3),
        margin: float = 1.0,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_nodes, num_relations, hidden_channels, margin, sparse)
        self.height = _height(hidden_channels) if height is None else height
        if self.height < 1 or hidden_channels % self.height:
            raise ValueError(
                f"'height' must divide 'hidden_channels', {hidden_channels} (got "
                f"{height})"
            )
        self.conv_channels, self.dropouts = conv_channels, tuple(dropouts)
        image = 2 * self.height, hidden_channels // self.height
        kernel = min(3, image[0]), min(3, image[1])
        size = [side - width + 1 for side, width in zip(image, kernel)]
        self.node_emb = Embedding(num_nodes, hidden_channels + 1, sparse=sparse)
        self.rel_emb = Embedding(num_relations, hidden_channels)
        self.image_norm = BatchNorm2d(1)
        self.conv = Conv2d(1, conv_channels, kernel)
        self.conv_norm = BatchNorm2d(conv_channels)
        self.hidden = Linear(conv_channels * size[0] * size[1], hidden_channels)
        self.hidden_norm = BatchNorm1d(hidden_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets all weights."""
        torch.nn.init.xavier_uniform_(self.node_emb.weight)
        torch.nn.init.xavier_uniform_(self.rel_emb.weight)
        with torch.no_grad():
            self.node_emb.weight[:, -1] = 0
        layers = self.image_norm, self.conv, self.conv_norm, self.hidden
        for layer in (*layers, self.hidden_norm):
            layer.reset_parameters()

    def query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        r"""Returns the vectors that are multiplied by the rows of tails.

        Args:
            head (torch.Tensor): The row of each head.
            rel_type (torch.Tensor): The relation types.
        """
        of_image, of_features, of_hidden = self.dropouts
        pair = torch.cat([head[:, :-1], self.rel_emb(rel_type)], dim=-1)
        image = pair.view(-1, 1, 2 * self.height, self.hidden_channels // self.height)
        x = _normalise(image, self.image_norm)
        x = self.conv(F.dropout(x, of_image, self.training))
        x = F.relu(_normalise(x, self.conv_norm))
        x = F.dropout2d(x, of_features, self.training)
        x = F.dropout(self.hidden(x.flatten(1)), of_hidden, self.training)
        x = F.relu(_normalise(x, self.hidden_norm))
        return torch.cat([x, x.new_ones(len(x), 1)], dim=-1)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        head, tail = self.node_emb(head_index), self.node_emb(tail_index)
        return (self.query(head, rel_type) * tail).sum(dim=-1)


class ConvEScorer(DistMultScorer):
    r"""Scores as :class:`ConvE` does, tails only.

    Args:
        kge (ConvE): The model.
    """

    has_light_queries = False
    needs_reciprocal = True

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return self.kge.query(head, rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        raise NotImplementedError("ConvE asks for heads by reciprocal relations")

    def norm(self, power: int, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        ends = head[:, :-1], tail[:, :-1]  # biases are not penalised
        return sum_of_powers(power, *ends, self.kge.rel_emb(rel_type))

    def dura(self, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        """Returns the penalty without the query for heads, which there is none of."""
        return sum_of_powers(2, head, tail, self.tail_query(head, rel_type))

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        return None


def _height(hidden_channels: int) -> int:
    """Returns the largest divisor that is not above the square root."""
    heights = range(1, int(hidden_channels**0.5) + 1)
    return max(height for height in heights if hidden_channels % height == 0)


def _normalise(x: Tensor, layer: BatchNorm1d | BatchNorm2d) -> Tensor:
    """Normalises a batch; one query alone is normalised by what others were."""
    if len(x) > 1 or not layer.training:
        return layer(x)
    running = layer.running_mean, layer.running_var
    return F.batch_norm(x, *running, layer.weight, layer.bias, eps=layer.eps)
