"""Matrix products of scorers, where the straightforward way is slow on a CPU."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# How many candidates are multiplied at once: at least, and by all queries.
_WIDTH, _PRODUCTS = 2048, 1 << 19


def dot_products(query: Tensor, rows: Tensor) -> Tensor:
    r"""Returns the dot products of each query with rows.

    Args:
        query (torch.Tensor): The queries.
        rows (torch.Tensor): The rows that all queries share, or, with one
            dimension more, those of each query.
    """
    if rows.dim() == query.dim():
        return ProductWithAll.apply(query, rows)
    return (query.unsqueeze(-2) * rows).sum(dim=-1)


class ProductWithAll(torch.autograd.Function):
    r"""The dot product of every query with every row.

    It is computed in chunks, because a single product of few queries with very many
    rows takes almost twice as long.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, rows: Tensor) -> Tensor:
        r"""Returns a row of products for each query.

        Args:
            query (torch.Tensor): The queries.
            rows (torch.Tensor): The rows.
        """
        ctx.save_for_backward(query, rows)
        products = query.new_empty(len(query), len(rows))
        width = max(_WIDTH, _PRODUCTS // max(len(query), 1))
        for part, some in zip(products.split(width, dim=1), rows.split(width)):
            torch.mm(query, some.t(), out=part)
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
        query, rows = ctx.saved_tensors
        by_query = grad @ rows if ctx.needs_input_grad[0] else None
        by_rows = grad.t() @ query if ctx.needs_input_grad[1] else None
        return by_query, by_rows


class ProductByType(torch.autograd.Function):
    r"""The product of every vector with the matrix of its type.

    Vectors of one type are multiplied together: looking up a matrix for each
    vector would copy it as often as the type occurs.
    """

    @staticmethod
    def forward(ctx: Any, vector: Tensor, matrix: Tensor, kind: Tensor) -> Tensor:
        r"""Returns :math:`\mathbf{v}_i^{\top} \mathbf{M}_{k_i}` for each vector.

        Args:
            vector (torch.Tensor): The vectors.
            matrix (torch.Tensor): The matrix of each type.
            kind (torch.Tensor): The type of each vector.
        """
        ctx.save_for_backward(vector, matrix, kind)
        products = vector.new_empty(len(vector), matrix.size(2))
        for one, places in by_type(kind):
            products[places] = vector[places] @ matrix[one]
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        vector, matrix, kind = ctx.saved_tensors
        by_vector, by_matrix = torch.empty_like(vector), torch.zeros_like(matrix)
        for one, places in by_type(kind):
            by_vector[places] = grad[places] @ matrix[one].t()
            by_matrix[one] = vector[places].t() @ grad[places]
        return by_vector, by_matrix, None


class SquaredLengths(torch.autograd.Function):
    r"""The squared length of the product of every row with every matrix.

    Products are computed with one matrix at a time, and again for gradients: the
    products with all matrices would be by far the largest tensor of a step.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, matrix: Tensor) -> Tensor:
        r"""Returns :math:`{\| \mathbf{r}_j^{\top} \mathbf{M}_i \|}^2`, a row for
        each matrix.

        Args:
            rows (torch.Tensor): The rows.
            matrix (torch.Tensor): The matrices.
        """
        ctx.save_for_backward(rows, matrix)
        lengths = rows.new_empty(len(matrix), len(rows))
        for one, out in zip(matrix, lengths):
            out.copy_((rows @ one).square().sum(dim=1))
        return lengths

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        rows, matrix = ctx.saved_tensors
        by_rows, by_matrix = torch.zeros_like(rows), torch.empty_like(matrix)
        for i, one in enumerate(matrix):
            by_product = 2 * grad[i, :, None] * (rows @ one)
            by_rows.addmm_(by_product, one.t())
            torch.mm(rows.t(), by_product, out=by_matrix[i])
        return by_rows, by_matrix


def by_type(kind: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Returns the types that occur, and where each of them does."""
    order = torch.argsort(kind)
    kinds, counts = torch.unique_consecutive(kind[order], return_counts=True)
    return zip(kinds.tolist(), order.split(counts.tolist()))
