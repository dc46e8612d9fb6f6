"""Sums over candidates, made part by part while their scores are in the cache."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.kernels.threads import cut, default_threads, no_scratch, run_all
from kblrn_pyg.nn.one_thread import one_torch_thread

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
    ) -> tuple[Tensor, Tensor]:
        r"""Returns the log-partition function of each query, and the scores asked for.

        Args:
            query (torch.Tensor, optional): The queries, if there are products.
            rows (torch.Tensor, optional): The row of each candidate.
            base (torch.Tensor, optional): What to add to the products.
            row (torch.Tensor): The query of each score to return.
            column (torch.Tensor): The candidate of each score to return.
        """
        given = _Given.of(query, rows, base)
        keeps = any(ctx.needs_input_grad)
        kept = given.like.new_empty(given.shape) if keeps else None
        shares = _shares(*given.shape)

        def work(i: int, _: None) -> tuple[int, _Sums]:
            return i, _sum_share(given, shares[i], kept)

        found = dict(_in_threads(work, len(shares)))
        sums = [found[i] for i in range(len(shares))]
        log_partition = torch.logsumexp(
            torch.stack([one.reference + one.total.log() for one in sums]), dim=0
        )
        if keeps:
            ctx.given, ctx.shares, ctx.kept = given, shares, kept
            ctx.factors = [(one.reference - log_partition).exp() for one in sums]
            ctx.by_query = _add_up(sums, ctx.factors)
            ctx.picks = row, column
        return log_partition, given.pick(row, column)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, by_picked: Tensor) -> tuple[Any, ...]:
        shares, kept = ctx.shares, ctx.kept
        query, rows, base = ctx.given
        by_query: Any = None if query is None else ctx.by_query * grad[:, None]
        by_rows: Any = None if rows is None else torch.empty_like(rows)
        by_base: Any = None if base is None else torch.empty_like(kept)
        factors = [(grad * factor)[:, None] for factor in ctx.factors]

        def work(i: int, _: None) -> None:
            scaled: Any = None if query is None else query * factors[i]
            for part in shares[i]:
                if by_rows is not None:
                    torch.mm(kept[:, part].t(), scaled, out=by_rows[part])
                if by_base is not None:
                    torch.mul(kept[:, part], factors[i], out=by_base[:, part])

        for _ in _in_threads(work, len(shares)):
            pass
        row, column = ctx.picks
        if row.numel() and query is not None:
            by_query.index_add_(0, row, by_picked[:, None] * rows[column])
            by_rows.index_add_(0, column, by_picked[:, None] * query[row])
        if row.numel() and base is not None:
            by_base.index_put_((row, column), by_picked, accumulate=True)
        return by_query, by_rows, by_base, None, None


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
        return torch.addmm(base[:, part], query, rows[part].t(), out=out)

    def pick(self, row: Tensor, column: Tensor) -> Tensor:
        """Returns some of the scores."""
        picked = self.like.new_zeros(row.shape)
        if self.query is not None and self.rows is not None:
            picked = (self.query[row] * self.rows[column]).sum(dim=1)
        return picked if self.base is None else picked + self.base[row, column]


class _Sums(NamedTuple):
    """Sums over some candidates of exponentials of scores, relative to a reference."""

    reference: Tensor
    total: Tensor
    by_query: Tensor | None


def _sum_share(given: _Given, parts: list[slice], kept: Tensor | None) -> _Sums:
    """Sums over some parts of the candidates, and keeps what the way back needs."""
    sums = _sum_relative(given, parts, kept, None)
    if not bool(sums.total.isfinite().all()):
        # Scores far above those of the first part, which training hardly makes.
        tops = torch.stack([_largest(given.scores(part)) for part in parts])
        sums = _sum_relative(given, parts, kept, tops.amax(dim=0))
    return sums


def _sum_relative(
    given: _Given, parts: list[slice], kept: Tensor | None, reference: Tensor | None
) -> _Sums:
    """Sums relative to a reference, or to the largest scores of the first part."""
    query, rows, _ = given
    total, by_query = given.like.new_zeros(given.shape[0]), None
    if kept is not None and query is not None:
        by_query = torch.zeros_like(query)
    for part in parts:
        scores = given.scores(part, None if kept is None else kept[:, part])
        reference = _largest(scores) if reference is None else reference
        scores.sub_(reference[:, None]).exp_()
        total += scores.sum(dim=1)
        if by_query is not None and rows is not None:
            by_query.addmm_(scores, rows[part])
    assert reference is not None
    return _Sums(reference, total, by_query)


def _largest(scores: Tensor) -> Tensor:
    """Returns the largest score of each query."""
    # Finite, as the difference of two infinities is no number.
    return scores.amax(dim=1).clamp_(min=torch.finfo(scores.dtype).min / 2)


def _add_up(sums: list[_Sums], factors: list[Tensor]) -> Tensor | None:
    """Returns the mean row of the candidates, weighted by their probabilities."""
    if sums[0].by_query is None:
        return None
    scaled = [one.by_query * f[:, None] for one, f in zip(sums, factors)]  # type: ignore[operator]
    return torch.stack(scaled).sum(dim=0)


def _shares(num_queries: int, num_candidates: int) -> list[list[slice]]:
    """Cuts candidates for threads, and so that scores of a part fit into the cache."""
    width = max(_MIN_WIDTH, _AT_ONCE // max(num_queries, 1))
    number = max(-(-num_candidates // width), default_threads())
    parts = cut(num_candidates, max(1, min(number, num_candidates)))
    return [
        parts[share] for share in cut(len(parts), min(default_threads(), len(parts)))
    ]


def _in_threads(work: Any, number: int) -> Any:
    def alone(i: int, _: None) -> Any:
        with one_torch_thread():
            return work(i, None)

    return run_all(alone, range(number), no_scratch)
