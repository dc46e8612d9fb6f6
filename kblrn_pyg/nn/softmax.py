"""Sums over candidates, computed in chunks while scores are in the cache."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.kernels.threads import cut, default_threads
from kblrn_pyg.nn.one_thread import run_torch

# How many scores are made at once: they stay in the cache of a core.
_AT_ONCE = 1 << 20
# How many single scores are looked at at once.
_PICKS_AT_ONCE = 4096
# The least number of candidates that are compared at once.
_MIN_WIDTH = 256


class Factors(NamedTuple):
    r"""Vectors whose dot products are scores.

    Args:
        query (torch.Tensor): The vector of each query.
        tables (tuple): Tables that hold, side by side, the vector of each entity.
        precision (torch.dtype, optional): The type of the numbers that may be
            multiplied. (default: :obj:`None`, that of the vectors)
    """

    query: Tensor
    tables: tuple[Tensor, ...]
    precision: torch.dtype | None = None


def partition(
    factors: Factors | None,
    base: Tensor | None,
    picks: tuple[Tensor, Tensor],
    overwrite: bool = False,
) -> tuple[Tensor, Tensor]:
    r"""Returns log-partition functions over candidates, and the scores of some.

    Args:
        factors (Factors, optional): The factors whose products are the scores, if
            any.
        base (torch.Tensor, optional): The values to add to the products.
        picks (tuple): The query and the candidate of each score to return.
        overwrite (bool, optional): Whether nobody needs what to add after this.
            (default: :obj:`False`)
    """
    query, tables, precision = factors or (None, (), None)
    given: Any = base if query is None else query
    if uses_kernels(given):
        return ProductSoftmax.apply(query, base, *picks, overwrite, precision, *tables)
    scores: Any = base
    if query is not None:
        rows = torch.cat(tables, dim=1)
        kind = precision or query.dtype
        scores = (query.to(kind) @ rows.to(kind).t()).to(query.dtype)
        scores = scores if base is None else scores + base
    return torch.logsumexp(scores, dim=1), scores[picks]


class ProductSoftmax(torch.autograd.Function):
    r"""The log-partition functions :math:`\log \sum_c \exp s_c` of queries, and
    some of the scores, where

    .. math::
        s_c = \mathbf{q} \cdot \mathbf{e}_c + b_c

    The scores of a chunk of the candidates, their exponentials, and their
    contribution to the gradients of queries are computed together, while they are
    in the cache. The candidates are distributed over threads, none of which waits
    for another one.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor | None,
        base: Tensor | None,
        row: Tensor,
        column: Tensor,
        overwrite: bool,
        precision: torch.dtype | None,
        *tables: Tensor,
    ) -> tuple[Tensor, Tensor]:
        r"""Returns the log-partition function of each query, and the scores asked for.

        Args:
            query (torch.Tensor, optional): The queries, if there are products.
            base (torch.Tensor, optional): The values to add to the products.
            row (torch.Tensor): The query of each score to return.
            column (torch.Tensor): The candidate of each score to return.
            overwrite (bool): Whether nobody needs what to add after this, so that
                no further memory of its size is taken.
            precision (torch.dtype, optional): The type of the numbers that are
                multiplied, if not that of the queries. The scores asked for, sums
                and gradients keep that of the queries.
            *tables (torch.Tensor): Tables that hold, side by side, the vector of
                each candidate.
        """
        given = _Given.of(query, tables, base, precision)
        if given.shape[1] == 0:
            ctx.given = None
            nothing = given.like.new_full(given.shape[:1], -torch.inf)
            return nothing, nothing[:0]
        keeps = any(ctx.needs_input_grad)
        picked = given.pick(row, column)
        takes_over = overwrite and keeps and given.rounded is None
        kept = given.base if takes_over else None
        if keeps and kept is None:
            kept = given.like.new_empty(given.shape, dtype=given.kept_type)
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
            return (None,) * len(ctx.needs_input_grad)
        given, shares, kept = ctx.given, ctx.shares, ctx.kept
        query, base = given.query, given.base
        by_query: Any = None if query is None else ctx.by_query * grad[:, None]
        by_tables = [torch.empty_like(one) for one in given.tables]
        by_base: Any = None if base is None else torch.empty_like(base)

        def work(i: int) -> None:
            for part, factor in zip(shares[i], ctx.factors[i]):
                scale = (grad * factor)[:, None]
                if query is not None:
                    probability, some = kept[:, part].t(), [t[part] for t in by_tables]
                    _multiply(probability, query * scale, given.spans, some)
                if by_base is not None:
                    torch.mul(kept[:, part], scale, out=by_base[:, part])

        run_torch(work, len(shares))
        row, column = ctx.picks
        if query is not None:
            for some in _some_picks(len(row)):
                _add_picks(
                    given,
                    (row[some], column[some], by_picked[some]),
                    by_query,
                    by_tables,
                )
        if row.numel() and base is not None:
            by_base.index_put_((row, column), by_picked, accumulate=True)
        return by_query, by_base, None, None, None, None, *by_tables


def _some_picks(number: int) -> list[slice]:
    """Cuts scores to return: a query may have very many answers."""
    return [slice(i, i + _PICKS_AT_ONCE) for i in range(0, number, _PICKS_AT_ONCE)]


def _add_picks(
    given: "_Given",
    picks: tuple[Tensor, Tensor, Tensor],
    by_query: Tensor,
    by_tables: list[Tensor],
) -> None:
    """Adds the gradients of single scores."""
    row, column, by_picked = picks
    assert given.query is not None
    for one, by_one, span in zip(given.tables, by_tables, given.spans):
        of_query = by_picked[:, None] * one[column]
        by_query[:, span].index_add_(0, row, of_query)
        by_one.index_add_(0, column, by_picked[:, None] * given.query[row, span])


def _multiply(
    left: Tensor, right: Tensor, spans: list[slice], out: list[Tensor]
) -> None:
    """Writes a product, made by numbers of the type of the left factor."""
    if left.dtype == right.dtype:
        for span, one in zip(spans, out):
            torch.mm(left, right[:, span], out=one)
        return
    product = left @ right.to(left.dtype)
    for span, one in zip(spans, out):
        one.copy_(product[:, span])


class _Given(NamedTuple):
    """The inputs of scores."""

    query: Tensor | None
    tables: list[Tensor]
    base: Tensor | None
    # The queries and the vectors in the precision of products, if it is another one.
    rounded: tuple[Tensor, Tensor] | None

    @classmethod
    def of(
        cls,
        query: Tensor | None,
        tables: tuple[Tensor, ...],
        base: Tensor | None,
        precision: torch.dtype | None,
    ) -> "_Given":
        # Detached, because the threads that help keep no gradients.
        base, rounded = None if base is None else base.detach(), None
        if query is None:
            return cls(None, [], base, None)
        query = query.detach().contiguous()
        several = [one.detach().contiguous() for one in tables]
        base = None if base is None else base.to(query.dtype)
        if precision not in (None, query.dtype):
            rounded = query.to(precision), _rounded(several, precision)
        return cls(query, several, base, rounded)

    @property
    def like(self) -> Tensor:
        """A tensor of the type and device of the scores."""
        one = self.base if self.query is None else self.query
        assert one is not None
        return one

    @property
    def kept_type(self) -> torch.dtype:
        """The type in which the way back needs probabilities."""
        return self.like.dtype if self.rounded is None else self.rounded[0].dtype

    @property
    def shape(self) -> tuple[int, int]:
        if self.query is None:
            return tuple(self.like.shape)  # type: ignore[return-value]
        return len(self.query), len(self.tables[0])

    @property
    def spans(self) -> list[slice]:
        """Where the entries of each table are in a query."""
        return list(_spans(self.tables))

    def scores(self, part: slice, out: Tensor | None = None) -> Tensor:
        """Returns the scores of a part of the candidates."""
        query, tables, base, rounded = self
        if query is None:
            assert base is not None
            return base[:, part].clone() if out is None else out.copy_(base[:, part])
        if rounded is not None:
            scores = (rounded[0] @ rounded[1][part].t()).to(query.dtype)
            return scores if base is None else scores.add_(base[:, part])
        first, *others = zip(_spans(tables), tables)
        factors = query[:, first[0]], first[1][part].t()
        if base is None:
            scores = torch.mm(*factors, out=out)
        elif out is not None and out.data_ptr() == base[:, part].data_ptr():
            scores = out.addmm_(*factors)
        else:
            scores = torch.addmm(base[:, part], *factors, out=out)
        for span, one in others:
            scores.addmm_(query[:, span], one[part].t())
        return scores

    def pick(self, row: Tensor, column: Tensor) -> Tensor:
        """Returns some of the scores."""
        picked = self.like.new_zeros(row.shape)
        if self.query is not None:
            for some in _some_picks(len(row)):
                for span, one in zip(self.spans, self.tables):
                    asked = self.query[row[some], span]
                    picked[some] += (asked * one[column[some]]).sum(dim=1)
        return picked if self.base is None else picked + self.base[row, column]


def _spans(tables: list[Tensor]) -> Iterator[slice]:
    begin = 0
    for one in tables:
        yield slice(begin, begin + one.size(1))
        begin += one.size(1)


def _rounded(tables: list[Tensor], precision: torch.dtype) -> Tensor:
    """Puts rounded tables side by side, by the threads of the library."""
    size, width = len(tables[0]), sum(one.size(1) for one in tables)
    out = tables[0].new_empty(size, width, dtype=precision)
    parts = cut(size, max(1, min(default_threads(), size)))

    def work(i: int) -> None:
        for span, one in zip(_spans(tables), tables):
            out[parts[i], span].copy_(one[parts[i]])

    run_torch(work, len(parts))
    return out


class _Sums(NamedTuple):
    """Sums over some parts of the candidates, relative to their largest scores.

    Those of a part are relative to the largest scores up to it, and the sums to the
    last of them.
    """

    tops: Tensor
    total: Tensor
    by_query: Tensor | None


def _sum_share(given: _Given, parts: list[slice], kept: Tensor | None) -> _Sums:
    """Sums over some chunks of the candidates, and keeps what the backward pass
    needs."""
    query, tables, _, rounded = given
    total, by_query = given.like.new_zeros(given.shape[0]), None
    if kept is not None and query is not None:
        by_query = torch.zeros_like(query)
    # Finite, as the difference of two infinities is not a number.
    top = torch.full_like(total, torch.finfo(total.dtype).min / 2)
    tops = []
    for part in parts:
        in_place = None if kept is None or rounded is not None else kept[:, part]
        scores = given.scores(part, in_place)
        higher = torch.maximum(top, scores.amax(dim=1))
        factor = (top - higher).exp_()
        scores.sub_(higher[:, None]).exp_()
        total.mul_(factor).add_(scores.sum(dim=1))
        if by_query is not None:
            by_query.mul_(factor[:, None])
            if rounded is not None:
                assert kept is not None
                kept[:, part].copy_(scores)
                by_query.add_(kept[:, part] @ rounded[1][part])
            else:
                for span, one in zip(_spans(tables), tables):
                    by_query[:, span].addmm_(scores, one[part])
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
    """Splits candidates into chunks for threads, so that the scores of a chunk fit
    into the cache."""
    width = max(_MIN_WIDTH, _AT_ONCE // max(num_queries, 1))
    number = max(-(-num_candidates // width), default_threads())
    parts = cut(num_candidates, max(1, min(number, num_candidates)))
    return [
        parts[share] for share in cut(len(parts), min(default_threads(), len(parts)))
    ]
