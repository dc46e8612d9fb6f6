"""Look-ups of rows of tables that also get a gradient as a whole."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class TakeRows(torch.autograd.Function):
    r"""Returns rows of tables, side by side, together with the tables.

    Torch would create a gradient of the size of a table for every look-up, and add
    these. If later operations use the returned tables and produce a gradient for
    them, the gradient of the rows is added to it in place.
    """

    @staticmethod
    def forward(ctx: Any, index: Tensor, *tables: Tensor) -> tuple[Tensor, ...]:
        r"""Returns the rows, and the same tables.

        Args:
            index (torch.Tensor): The rows.
            *tables (torch.Tensor): The tables.
        """
        ctx.set_materialize_grads(False)
        ctx.index, ctx.shapes = index, [one.shape for one in tables]
        rows = torch.cat([one.index_select(0, index) for one in tables], dim=-1)
        return rows, *(one.view_as(one) for one in tables)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_rows: Tensor | None, *by_tables: Any) -> tuple[Any, ...]:
        if by_rows is None:
            return None, *by_tables
        parts = by_rows.split([shape[1] for shape in ctx.shapes], dim=1)
        found = []
        for shape, part, by_table in zip(ctx.shapes, parts, by_tables):
            if by_table is None:
                by_table = by_rows.new_zeros(shape)
            found.append(by_table.index_add_(0, ctx.index, part))
        return None, *found
