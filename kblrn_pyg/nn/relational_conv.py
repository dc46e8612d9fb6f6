"""PyG's RGCNConv in a version that is fast for graphs with many relations."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.nn import RGCNConv

from kblrn_pyg.nn.products import by_type

# How many edges gradients are made of at once.
_EDGES_AT_ONCE = 1 << 16


class RelationalConv(RGCNConv):
    r"""Computes the same as :class:`torch_geometric.nn.RGCNConv`, from the
    `"Modeling Relational Data with Graph Convolutional Networks"
    <https://arxiv.org/abs/1703.06103>`_ paper, with basis or block-diagonal
    decomposition:

    .. math::
        \mathbf{x}^{\prime}_i = \mathbf{\Theta}_{\textrm{root}} \cdot \mathbf{x}_i +
        \sum_{r \in \mathcal{R}} \sum_{j \in \mathcal{N}_r(i)}
        \frac{1}{|\mathcal{N}_r(i)|} \mathbf{\Theta}_r \cdot \mathbf{x}_j

    PyG multiplies all nodes by the matrix of every relation. Here, the neighbours
    are summed for each basis, and the sum is multiplied once; with blocks, they are
    multiplied edge by edge.

    Args:
        *args (optional): See :class:`torch_geometric.nn.RGCNConv`.
        all_neighbors (bool, optional): If set to :obj:`True`, sums are divided by
            the number of all edges of a node, :math:`\sum_r |\mathcal{N}_r(i)|`,
            as the paper does for link prediction. (default: :obj:`False`)
        root_dropout (float, optional): The fraction of the entries of
            :math:`\mathbf{\Theta}_{\textrm{root}} \cdot \mathbf{x}_i` that training
            sets to zero. (default: :obj:`0.0`)
        **kwargs (optional): See :class:`torch_geometric.nn.RGCNConv`.
    """

    def __init__(
        self,
        *args: Any,
        all_neighbors: bool = False,
        root_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.all_neighbors, self.root_dropout = all_neighbors, root_dropout

    def forward(
        self, x: Tensor | tuple[Tensor, Tensor], edge_index: Tensor, edge_type: Tensor
    ) -> Tensor:
        r"""Returns the nodes after the convolution.

        Args:
            x (torch.Tensor or tuple): The nodes, or those where edges begin and those
                where they end.
            edge_index (torch.Tensor): The edges, from its first to its second row.
            edge_type (torch.Tensor): The relation of each edge.
        """
        x, own = (x, x) if isinstance(x, Tensor) else x
        edges = *edge_index, len(own)
        share = self._shares(edges[1], edge_type).to(x.dtype)
        if self.num_bases is not None:
            factor = share[:, None] * self.comp[edge_type]
            sums = WeightedSums.apply(x, factor, *edges)
            out = torch.einsum("bni,bio->no", sums, self.weight)
        elif self.num_blocks is not None:
            out = BlockSums.apply(x, self.weight, share, *edges, edge_type)
        else:
            weight = self.weight.unsqueeze(1)
            out = BlockSums.apply(x, weight, share, *edges, edge_type)
        root = F.dropout(own @ self.root, self.root_dropout, self.training)
        return out + root + self.bias

    def _shares(self, target: Tensor, edge_type: Tensor) -> Tensor:
        """Returns one by the number of edges of the same target, and maybe type."""
        if self.all_neighbors:
            return 1 / target.bincount()[target]
        key = target * self.num_relations + edge_type
        _, place, count = torch.unique(key, return_inverse=True, return_counts=True)
        return 1 / count[place]


class WeightedSums(torch.autograd.Function):
    r"""The sums of neighbours, several with different factors of edges."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, factor: Tensor, source: Tensor, target: Tensor, size: int
    ) -> Tensor:
        r"""Returns a tensor of nodes for each column of factors.

        Args:
            x (torch.Tensor): The nodes.
            factor (torch.Tensor): The factors of each edge.
            source (torch.Tensor): Where each edge begins.
            target (torch.Tensor): Where each edge ends.
            size (int): The number of nodes where edges may end.
        """
        ctx.save_for_backward(x, factor, source, target)
        columns = factor.unbind(dim=1)
        return torch.stack([_sum(x, one, source, target, size) for one in columns])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        x, factor, source, target = ctx.saved_tensors
        by_x, by_factor = torch.zeros_like(x), torch.empty_like(factor)
        for one, column, out in zip(grad, factor.unbind(1), by_factor.unbind(1)):
            by_x += _sum(one, column, target, source, len(x))
            edges = (i.split(_EDGES_AT_ONCE) for i in (out, source, target))
            for part, begin, end in zip(*edges):
                part.copy_((x[begin] * one[end]).sum(dim=1))
        return by_x, by_factor, None, None, None


def _sum(
    x: Tensor, factor: Tensor, source: Tensor, target: Tensor, size: int
) -> Tensor:
    shape, index = (size, len(x)), torch.stack([target, source])
    matrix = torch.sparse_coo_tensor(index, factor, shape, check_invariants=False)
    return matrix @ x


class BlockSums(torch.autograd.Function):
    r"""The sums of neighbours, multiplied by block-diagonal matrices.

    The messages of edges are computed for one relation at a time, and again for
    gradients.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        share: Tensor,
        source: Tensor,
        target: Tensor,
        size: int,
        edge_type: Tensor,
    ) -> Tensor:
        r"""Returns the nodes that edges lead to.

        Args:
            x (torch.Tensor): The nodes.
            weight (torch.Tensor): The blocks of each relation, :obj:`[num_relations,
                num_blocks, size, size]`.
            share (torch.Tensor): The factor of each edge.
            source (torch.Tensor): Where each edge begins.
            target (torch.Tensor): Where each edge ends.
            size (int): The number of nodes where edges may end.
            edge_type (torch.Tensor): The relation of each edge.
        """
        ctx.save_for_backward(x, weight, share, source, target)
        ctx.groups = list(by_type(edge_type))
        _, num_blocks, width, out_width = weight.shape
        out = x.new_zeros(size, num_blocks * out_width)
        blocks = x.view(-1, num_blocks, width)
        for rel, edges in ctx.groups:
            sent = torch.einsum("ebi,bio->ebo", blocks[source[edges]], weight[rel])
            out.index_add_(0, target[edges], sent.flatten(1) * share[edges, None])
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        x, weight, share, source, target = ctx.saved_tensors
        by_x, by_weight = torch.zeros_like(x), torch.zeros_like(weight)
        _, num_blocks, width, out_width = weight.shape
        blocks = x.view(-1, num_blocks, width)
        for rel, edges in ctx.groups:
            by_sent = grad[target[edges]] * share[edges, None]
            by_sent = by_sent.view(-1, num_blocks, out_width)
            begin = source[edges]
            by_weight[rel] = torch.einsum("ebi,ebo->bio", blocks[begin], by_sent)
            by_blocks = torch.einsum("ebo,bio->ebi", by_sent, weight[rel])
            by_x.index_add_(0, begin, by_blocks.flatten(1))
        return by_x, by_weight, *[None] * 5
