"""Sums over candidates, made part by part while their scores are in the cache."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.kernels.threads import cut, default_threads
from kblrn_pyg.nn.one_thread import run_torch

# How many scores are made at once: they stay in the cache of a core.
_AT_ONCE = 1 << 20
# The least number of candidates that are compared at once.
_MIN_WIDTH = 256


class ProductSoftmax(torch.autograd.Function):
    r"""The log-partition functions :math:`\log \sum_c \exp s_c` of queries, and
    some of the scores, where

    .. math::
        s_c = \mathbf{q} \cdot \mathbf{e}_c + b_c

    The scores of a part of the candidates, their exponentials, and what they add
    to the gradients of queries are made together, while they are in the cache.
    Threads share the candidates, and none of them waits for another one.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor | None,
        rows: Tensor | None,
        base: Tensor | None,
        row: Tensor,
        column: Tensor,
        overwrite: bool = False,
    ) -> tuple[Tensor, Tensor]:
        r"""Returns the log-partition function of each query, and the scores asked for.

        Args:
            query (torch.Tensor, optional): The queries, if there are products.
            rows (torch.Tensor, optional): The row of each candidate.
            base (torch.Tensor, optional): What to add to the products.
            row (torch.Tensor): The query of each score to return.
            column (torch.Tensor): The candidate of each score to return.
            overwrite (bool, optional): Whether nobody needs what to add after
                this, so that no further memory of its size is taken.
                (default: :obj:`False`)
        """
        given = _Given.of(query, rows, base)
        if given.shape[1] == 0:
            ctx.given = None
            nothing = given.like.new_full(given.shape[:1], -torch.inf)
            return nothing, nothing[:0]
        keeps = any(ctx.needs_input_grad)
        picked = given.pick(row, column)
        kept = given.base if overwrite and keeps else None
        if keeps and kept is None:
            kept = given.like.new_empty(given.shape)
        shares = _shares(*given.shape)

        sums = run_torch(lambda i: _sum_share(given, shares[i], kept), len(shares))
        log_partition = torch.logsumexp(
            torch.stack([one.tops[-1] + one.total.log() for one in sums]), dim=0
        )
        if keeps:
            ctx.given, ctx.shares, ctx.kept = given, shares, kept
            ctx.factors = [(one.tops - log_partition).exp() for one in sums]
            ctx.by_query = _add_up(sums, ctx.factors)
            ctx.picks = row, column
        return log_partition, picked

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, by_picked: Tensor) -> tuple[Any, ...]:
        if ctx.given is None:
            return (None,) * 6
        shares, kept = ctx.shares, ctx.kept
        query, rows, base = ctx.given
        by_query: Any = None if query is None else ctx.by_query * grad[:, None]
        by_rows: Any = None if rows is None else torch.empty_like(rows)
        by_base: Any = None if base is None else torch.empty_like(kept)

        def work(i: int) -> None:
            for part, factor in zip(shares[i], ctx.factors[i]):
                scale = (grad * factor)[:, None]
                if by_rows is not None:
                    torch.mm(kept[:, part].t(), query * scale, out=by_rows[part])
                if by_base is not None:
                    torch.mul(kept[:, part], scale, out=by_base[:, part])

        run_torch(work, len(shares))
        row, column = ctx.picks
        if row.numel() and query is not None:
            by_query.index_add_(0, row, by_picked[:, None] * rows[column])
            by_rows.index_add_(0, column, by_picked[:, None] * query[row])
        if row.numel() and base is not None:
            by_base.index_put_((row, column), by_picked, accumulate=True)
        return by_query, by_rows, by_base, None, None, None


class _Given(NamedTuple):
    """What scores are made of."""

    query: Tensor | None
    rows: Tensor | None
    base: Tensor | None

    @classmethod
    def of(
        cls, query: Tensor | None, rows: Tensor | None, base: Tensor | None
    ) -> "_Given":
        # Detached, because the threads that help keep no gradients.
        several = (query, rows, base)
        query, rows, base = (None if t is None else t.detach() for t in several)
        if query is not None and rows is not None:
            query, rows = query.contiguous(), rows.contiguous()
            base = None if base is None else base.to(query.dtype)
        return cls(query, rows, base)

    @property
    def like(self) -> Tensor:
        """A tensor of the type and device of the scores."""
        one = self.base if self.query is None else self.query
        assert one is not None
        return one

    @property
    def shape(self) -> tuple[int, int]:
        if self.query is None or self.rows is None:
            return tuple(self.like.shape)  # type: ignore[return-value]
        return len(self.query), len(self.rows)

    def scores(self, part: slice, out: Tensor | None = None) -> Tensor:
        """Returns the scores of a part of the candidates."""
        query, rows, base = self
        if query is None or rows is None:
            assert base is not None
            return base[:, part].clone() if out is None else out.copy_(base[:, part])
        if base is None:
            return torch.mm(query, rows[part].t(), out=out)
        if out is not None and out.data_ptr() == base[:, part].data_ptr():
            return out.addmm_(query, rows[part].t())
        return torch.addmm(base[:, part], query, rows[part].t(), out=out)

    def pick(self, row: Tensor, column: Tensor) -> Tensor:
        """Returns some of the scores."""
        picked = self.like.new_zeros(row.shape)
        if self.query is not None and self.rows is not None:
            picked = (self.query[row] * self.rows[column]).sum(dim=1)
        return picked if self.base is None else picked + self.base[row, column]


class _Sums(NamedTuple):
    """Sums over some parts of the candidates, relative to their largest scores.

    Those of a part are relative to the largest scores up to it, and the sums to the
    last of them.
    """

    tops: Tensor
    total: Tensor
    by_query: Tensor | None


def _sum_share(given: _Given, parts: list[slice], kept: Tensor | None) -> _Sums:
    """Sums over some parts of the candidates, and keeps what the way back needs."""
    query, rows, _ = given
    total, by_query = given.like.new_zeros(given.shape[0]), None
    if kept is not None and query is not None:
        by_query = torch.zeros_like(query)
    # Finite, as the difference of two infinities is not a number.
    top = torch.full_like(total, torch.finfo(total.dtype).min / 2)
    tops = []
    for part in parts:
        scores = given.scores(part, None if kept is None else kept[:, part])
        higher = torch.maximum(top, scores.amax(dim=1))
        factor = (top - higher).exp_()
        scores.sub_(higher[:, None]).exp_()
        total.mul_(factor).add_(scores.sum(dim=1))
        if by_query is not None and rows is not None:
            by_query.mul_(factor[:, None]).addmm_(scores, rows[part])
        top = higher
        tops.append(top)
    return _Sums(torch.stack(tops), total, by_query)


def _add_up(sums: list[_Sums], factors: list[Tensor]) -> Tensor | None:
    """Returns the mean row of the candidates, weighted by their probabilities."""
    mean = None
    for one, factor in zip(sums, factors):
        if one.by_query is not None:
            scaled = one.by_query.mul_(factor[-1][:, None])
            mean = scaled if mean is None else mean.add_(scaled)
    return mean


def _shares(num_queries: int, num_candidates: int) -> list[list[slice]]:
    """Cuts candidates for threads, and so that scores of a part fit into the cache."""
    width = max(_MIN_WIDTH, _AT_ONCE // max(num_queries, 1))
    number = max(-(-num_candidates // width), default_threads())
    parts = cut(num_candidates, max(1, min(number, num_candidates)))
    return [
        parts[share] for share in cut(len(parts), min(default_threads(), len(parts)))
    ]
