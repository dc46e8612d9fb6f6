"""The relational expert: the paths that connect two entities."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.data import HeteroData
from torch_geometric.utils import segment

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.candidates import new_scratch, path_gradient_of, score_paths
from kblrn_pyg.kernels.columns import column_gradients
from kblrn_pyg.kernels.threads import ScratchPool, no_scratch, run_all, run_slices
from kblrn_pyg.nn.features import FeatureExpert, at_least_single
from kblrn_pyg.nn.part import Fact, Part, Ref, Words
from kblrn_pyg.rules import PathFeatures, RuleSet
from kblrn_pyg.rules.text import atoms
from kblrn_pyg.sizes import LARGE


class RelationalExpert(FeatureExpert):
    r"""Scores a triple by the bodies of its relation's rules that hold:

    .. math::
        \log f_{(r, R)}(h, r, t) = \mathbf{r}_{(h, t)} \cdot
        \mathbf{w}^r_{\textrm{rel}}

    with one weight for every (relation, body).

    Args:
        data (HeteroData): The knowledge base, whose facts bodies are evaluated
            on.
        rules (RuleSet): The rules.
    """

    name = "relational"

    def __init__(self, data: HeteroData, rules: RuleSet) -> None:
        super().__init__(torch.from_numpy(rules.ptr))
        self.features = PathFeatures(data, rules)
        num_entities = self.features.num_entities
        self._pool = ScratchPool(partial(new_scratch, num_entities))
        # Columns as a tensor and as an array: the same ones may come again.
        self._is_step = False
        # The triples that were scored last in a step, and their scores.
        self._last: tuple[tuple[Tensor, ...], Tensor] | None = None
        self.reset_parameters()

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        found = self.features.pairs(_ids(head_index), _ids(rel_type), _ids(tail_index))
        return self._sum(found.ptr, found.rule)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        self._remember()
        if not uses_kernels(candidates):
            return super().score_candidates(queries, candidates)
        weight = at_least_single(self.weight)
        given = self.features, self._pool, queries, candidates
        return _CandidatePaths.apply(weight, *given)

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        """Scores an answer to each query; see :class:`Expert`."""
        # Both sides of a loss ask about the same triples.
        asked = queries.entity, queries.rel_type, answer
        asked = asked if queries.side == "tail" else asked[::-1]
        last = self._last
        if last is not None and all(a is b for a, b in zip(last[0], asked)):
            return last[1]
        scores = self(*asked)
        if self._is_step and torch.is_grad_enabled():
            self._last = asked, scores
        return scores

    @contextmanager
    def encoded(self, entities: Sequence[Tensor] | None = ()) -> Iterator[None]:
        """Scores the triples of a step once; see :class:`Expert`."""
        self._is_step = True
        try:
            yield
        finally:
            self._is_step, self._last = False, None

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        scores = at_least_single(scores)
        weight = self.weight.to(scores.dtype)
        if not uses_kernels(scores):
            return self._add_by_torch(scores, weight, queries, entities)
        if entities is not None and self._reads_walks(entities):
            key = queries.rel_type * self.features.num_entities + queries.entity
            order = torch.argsort(key)  # equal queries side by side
            candidates = entities.expand(len(order), -1)
            found = self.score_candidates(queries[order], candidates)
            return scores.index_add(0, order, found.to(scores.dtype))
        if entities is not None:
            given = self.features, queries, _ids(entities)
            return _ColumnPaths.apply(scores, weight, *given)
        self._remember()
        return _AddPaths.apply(scores, weight, self.features, queries)

    def _reads_walks(self, entities: Tensor) -> bool:
        """Whether to use cached walks, which is faster in small knowledge bases."""
        number = self.features.num_entities
        return self.training and number < LARGE and 4 * len(entities) <= number

    def _add_by_torch(
        self, scores: Tensor, weight: Tensor, queries: Queries, entities: Tensor | None
    ) -> Tensor:
        """Walks paths on the CPU, and adds their weights on any device."""
        entity, rel = _ids(queries.entity), _ids(queries.rel_type)
        asked = queries.side, entity, rel
        if entities is None:
            found = self.features.reached(*asked)
        else:
            found = self.features.reached_columns(*asked, _ids(entities))
        row, column, rule = (torch.from_numpy(i).to(scores.device) for i in found)
        return scores.index_put((row, column), weight[rule], accumulate=True)

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the weights of bodies that hold only because of the fact
        itself."""
        found = self.features.own_evidence(
            _ids(head_index), _ids(rel_type), _ids(tail_index)
        )
        return self._sum(found.ptr, found.rule)

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns the bodies that hold; see :class:`Expert`."""
        rules = self.features.pairs([head], [rel], [tail]).rule.tolist()
        own = self.features.own_evidence(*(np.array([i]) for i in (head, rel, tail)))
        if not rules:
            return [Part(0.0, ("no body of its rules holds",))]
        return [
            Part(
                weight := float(self.weight[rule]),
                self._body(rule),
                paths=self._paths(rule, head, tail),
                own=rule in own.rule,
                details={"rule": rule, "weight": weight},
            )
            for rule in rules
        ]

    def fingerprint(self) -> bytes:
        """Returns a digest of the rules that the weights belong to."""
        rules = self.features.rules
        columns = (rules.head, rules.steps, rules.parallel)
        content = [np.ascontiguousarray(column).tobytes() for column in columns]
        return b" ".join(
            [super().fingerprint(), str(rules.semantics).encode(), *content]
        )

    def extra_repr(self) -> str:
        """Returns the number of rules."""
        return f"{len(self.weight):,} rules"

    def _remember(self) -> None:
        """Caches the walks of training queries, which every epoch needs again."""
        if self.training and torch.is_grad_enabled():
            self.features.remember()

    def _body(self, rule: int) -> Words:
        words: list[str | Ref] = []
        for relation, start, end in atoms(self.features.rules, rule):
            words += [" ∧ "] if words else []
            words += [Ref("relation", relation), f"({start}, {end})"]
        return tuple(words)

    def _paths(self, rule: int, head: int, tail: int) -> tuple[tuple[Fact, ...], ...]:
        """Returns the facts that a body steps over, once for each middle."""
        steps = atoms(self.features.rules, rule)
        middles = self.features.middles(rule, head, tail).tolist() or [-1]
        stops = ({"h": head, "t": tail, "x": middle} for middle in middles)
        return tuple(
            tuple((stop[start], r, stop[end]) for r, start, end in steps)
            for stop in stops
        )

    def _sum(self, ptr: np.ndarray, rule: np.ndarray) -> Tensor:
        device = self.weight.device
        values = self.weight[torch.from_numpy(rule).to(device)]
        return segment(values, torch.from_numpy(ptr).to(device))


class _AddPaths(torch.autograd.Function):
    """Walks the paths forward to add scores, and again to collect gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        features: PathFeatures,
        queries: Queries,
    ) -> Tensor:
        ctx.features = features
        ctx.asked = queries.side, _ids(queries.entity), _ids(queries.rel_type)
        ctx.mark_dirty(scores)
        side, entity, rel = ctx.asked
        rows = weight.detach().numpy(), scores.detach().numpy()
        features.add_scores(side, entity, rel, *rows)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        weight_grad = None
        if ctx.needs_input_grad[1]:
            found = ctx.features.weight_gradient(*ctx.asked, grad.contiguous().numpy())
            weight_grad = torch.from_numpy(found).to(grad.dtype)
        return grad, weight_grad, None, None


class _ColumnPaths(torch.autograd.Function):
    """Walks the paths to some entities, and keeps which ones they reach."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        features: PathFeatures,
        queries: Queries,
        entities: np.ndarray,
    ) -> Tensor:
        ctx.mark_dirty(scores)
        given = queries.side, _ids(queries.entity), _ids(queries.rel_type), entities
        rows = weight.detach().numpy(), scores.detach().numpy()
        ctx.hits, ctx.num_rules = features.add_to_columns(*given, *rows), len(weight)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        rows = grad.contiguous().numpy()

        def work(i: int, _: None) -> tuple[int, np.ndarray]:
            row, hits = ctx.hits[i]
            return i, column_gradients(hits, row, rows)

        totals = dict(run_all(work, range(len(ctx.hits)), no_scratch))
        # Adding up in order keeps sums reproducible, whichever thread is first.
        rules = np.concatenate([hits.rule for _, hits in ctx.hits])
        gradients = np.concatenate([totals[i] for i in range(len(totals))])
        found = np.bincount(rules, gradients, minlength=ctx.num_rules)
        return grad, torch.from_numpy(found).to(grad.dtype), None, None, None


class _CandidatePaths(torch.autograd.Function):
    """Walks the paths once, and keeps the reached candidates for the backward
    pass."""

    @staticmethod
    def forward(
        ctx: Any,
        weight: Tensor,
        features: PathFeatures,
        pool: ScratchPool,
        queries: Queries,
        candidates: Tensor,
    ) -> Tensor:
        entity, rel, drawn = map(_ids, (queries.entity, queries.rel_type, candidates))
        check_ids({"candidates": (drawn, features.num_entities)}, num_dims=2)
        check_shape("candidates", drawn, (len(rel), drawn.shape[1]))
        *known, walks, place = features.walk_arguments(queries.side, entity, rel)
        scores = torch.zeros(candidates.shape, dtype=weight.dtype)
        weights, rows = weight.detach().numpy(), scores.numpy()

        def work(part: slice, _: None) -> tuple[slice, Any]:
            asked = drawn[part], entity[part], rel[part]
            paths = (*known, walks, place[part])
            with pool.borrowed() as scratch:
                return part, score_paths(*asked, paths, weights, rows[part], scratch)

        ctx.reached = run_slices(work, len(entity), no_scratch)
        ctx.drawn, ctx.pool, ctx.num_rules = drawn, pool, len(weights)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        rows = grad.contiguous().numpy()
        # Adding up in order keeps sums reproducible, whichever thread is first.
        found = np.zeros((len(ctx.reached), ctx.num_rules))

        def work(i: int, _: None) -> None:
            part, reached = ctx.reached[i]
            with ctx.pool.borrowed() as scratch:
                path_gradient_of(
                    reached, ctx.drawn[part], rows[part], found[i], scratch
                )

        for _ in run_all(work, range(len(ctx.reached)), no_scratch):
            pass
        total = torch.from_numpy(found.sum(axis=0)).to(grad.dtype)
        return total, None, None, None, None


def _ids(index: Tensor) -> np.ndarray:
    return index.detach().cpu().contiguous().numpy()
