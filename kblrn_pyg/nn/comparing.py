"""Compares queries with their own candidates, faster than by looking these up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.kernels.threads import default_threads, no_scratch, run_all
from kblrn_pyg.kernels.visits import add_visit_gradients, score_visits, sort_visits


class VisitScores(torch.autograd.Function):
    r"""Compares queries with candidates by dot products or distances.

    No row is copied for a query that it is compared with.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, table: Tensor, candidates: Tensor, by_distance: bool
    ) -> Tensor:
        r"""Returns a row of scores for each query.

        Args:
            query (torch.Tensor): The queries.
            table (torch.Tensor): A row for every entity.
            candidates (torch.Tensor): The candidates of each query.
            by_distance (bool): Whether they are compared by their negative
                distance in the L1 norm, instead of by their dot product.
        """
        query, table = query.contiguous(), table.contiguous()
        check_ids({"candidates": (candidates, len(table))}, num_dims=2)
        check_shape("candidates", candidates, (len(query), candidates.size(1)))
        ctx.save_for_backward(query, table)
        ctx.visits = sort_visits(candidates.contiguous().numpy(), len(table))
        ctx.by_distance = by_distance
        scores = torch.empty(candidates.shape, dtype=query.dtype)
        given = ctx.visits, query.numpy(), table.numpy(), by_distance
        flat = scores.view(-1).numpy()
        _for_entities(ctx.visits, lambda i, part: score_visits(part, *given, flat))
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        query, table = (tensor.numpy() for tensor in ctx.saved_tensors)
        by_query = np.zeros((default_threads(), *query.shape), query.dtype)
        by_table = np.zeros_like(table)
        given = ctx.visits, query, table, ctx.by_distance
        flat = grad.contiguous().view(-1).numpy()
        _for_entities(
            ctx.visits,
            lambda i, part: add_visit_gradients(
                part, *given, flat, by_query[i], by_table
            ),
        )
        total = torch.from_numpy(by_query.sum(axis=0))
        return total, torch.from_numpy(by_table), None, None


def _for_entities(visits: Any, work: Callable[[int, tuple[int, int]], object]) -> None:
    """Splits the entities among threads, to about the same number of visits."""
    shares = np.linspace(0, len(visits.place), default_threads() + 1)
    bounds = np.searchsorted(visits.ptr, shares)
    bounds[-1] = len(visits.ptr) - 1
    parts = list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))
    for _ in run_all(lambda i, _: work(i, parts[i]), range(len(parts)), no_scratch):
        pass
