"""Cross-entropy over all entities, and over sampled ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.kernels.sampling import (
    Scratch,
    add_visit_gradients,
    cross_entropy_gradients,
    new_scratch,
    score_visits,
    sort_visits,
)
from kblrn_pyg.kernels.scoring import Differences
from kblrn_pyg.kernels.threads import default_threads, run_all
from kblrn_pyg.rules import PairFeatures, PathFeatures


class ExactCrossEntropy(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_c \exp s_c - s_t` over the answers of queries.

    A query with several answers has one row of scores; all of its answers share
    its partition function. Only one array of the size of the scores is made on
    the way back.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, row: Tensor, answer: Tensor) -> Tensor:
        r"""Returns the loss.

        Args:
            scores (torch.Tensor): A row of scores for each query.
            row (torch.Tensor): The row of each answer.
            answer (torch.Tensor): The entity of each answer.
        """
        log_partition = torch.logsumexp(scores, dim=1)
        ctx.save_for_backward(scores, log_partition, row, answer)
        return (log_partition[row] - scores[row, answer]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        scores, log_partition, row, answer = ctx.saved_tensors
        scale = grad / row.numel()
        num_answers = torch.bincount(row, minlength=scores.size(0))
        shift = (num_answers * scale).log() - log_partition
        scores_grad = (scores + shift.to(scores.dtype)[:, None]).exp_()
        ones = torch.full_like(row, 1, dtype=scores.dtype) * -scale
        scores_grad.index_put_((row, answer), ones, accumulate=True)
        return scores_grad, None, None


class SampledCrossEntropy(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_{c \in E} \exp s_c - s_t` over queries.

    All three experts are scored, and all gradients collected, on the way forward.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        table: Tensor,
        path_weight: Tensor,
        num_weight: Tensor,
        centre: Tensor,
        width: Tensor,
        candidates: Tensor,
        entity: Tensor,
        rel_type: Tensor,
        from_tail: bool,
        by_distance: bool,
        paths: PathFeatures,
        own: PairFeatures,
        differences: Differences,
    ) -> Tensor:
        r"""Returns the loss.

        Args:
            query (torch.Tensor): What candidates are compared with.
            table (torch.Tensor): A row for every entity.
            path_weight (torch.Tensor): The weight of each rule.
            num_weight (torch.Tensor): The weight of each numerical feature.
            centre (torch.Tensor): The centre of each.
            width (torch.Tensor): The width of each.
            candidates (torch.Tensor): The candidates, the true one first.
            entity (torch.Tensor): The known entity of each query.
            rel_type (torch.Tensor): The relation of each query.
            from_tail (bool): Whether the known entities are tails.
            by_distance (bool): Whether they are compared by their distance
                in the L1 norm, instead of by their dot product.
            paths (PathFeatures): The rules and the facts.
            own (PairFeatures): The rules that hold by the asked fact alone.
            differences (Differences): The numerical features.
        """
        given = [
            tensor.detach().contiguous().numpy()
            for tensor in (query, table, candidates, entity, rel_type)
        ]
        weights = [
            tensor.detach().double().numpy()
            for tensor in (path_weight, num_weight, centre, width)
        ]
        sampled = _Sampled(by_distance, *given)
        loss, by_path, by_number = sampled.add_features(
            paths, weights[0], own, differences, from_tail, tuple(weights[1:])
        )
        grads = (*sampled.embedding_gradients(), by_path, by_number)
        ctx.save_for_backward(*(torch.from_numpy(grad) for grad in grads))
        return query.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        by_query, by_table, by_path, by_number = ctx.saved_tensors
        numbers = (grad * by_number).to(grad.dtype)
        return (
            grad * by_query,
            grad * by_table,
            (grad * by_path).to(grad.dtype),
            *numbers.unbind(),
            *[None] * 8,
        )


class _Sampled:
    """The scores of sampled candidates, then their gradients."""

    def __init__(
        self,
        by_distance: bool,
        query: np.ndarray,
        table: np.ndarray,
        candidates: np.ndarray,
        entity: np.ndarray,
        rel: np.ndarray,
    ) -> None:
        self.query, self.table, self.by_distance = query, table, by_distance
        self.candidates, self.entity, self.rel = candidates, entity, rel
        self.score = np.zeros(candidates.shape, query.dtype)
        self.has_embeddings = query.shape[1] > 0
        if self.has_embeddings:
            self.visits = sort_visits(candidates, len(table))
            given = self.visits, query, table, by_distance
            score = self.score.reshape(-1)
            self._for_entities(lambda _, part: score_visits(*part, *given, score))

    def add_features(
        self,
        paths: PathFeatures,
        path_weight: np.ndarray,
        own: PairFeatures,
        differences: Differences,
        from_tail: bool,
        numbers: tuple[np.ndarray, ...],
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """Adds all other scores and turns them into gradients.

        Returns the loss, and the gradients of the weights of paths and numbers.
        """
        size = len(self.entity)
        parts = _split(np.linspace(0, size, default_threads() + 1).astype(int))
        by_path = np.zeros((len(parts), len(path_weight)))
        by_number = np.zeros((len(parts), 3, len(numbers[0])))
        losses = np.zeros(len(parts))
        walks = paths.walk_arguments(from_tail, self.entity, self.rel)

        def work(i: int, scratch: Scratch) -> None:
            losses[i] = cross_entropy_gradients(
                *parts[i],
                self.score,
                self.candidates,
                self.entity,
                self.rel,
                1.0 / size,
                walks,
                path_weight,
                own.ptr,
                own.rule,
                differences,
                -1.0 if from_tail else 1.0,
                numbers,
                by_path[i],
                by_number[i],
                scratch,
            )

        most_rules = int(np.diff(paths.rules.ptr).max(initial=0))
        shape = len(self.table), most_rules, self.candidates.shape[1]
        _run(work, len(parts), lambda: new_scratch(*shape, self.score.dtype))
        return float(losses.sum()), by_path.sum(axis=0), by_number.sum(axis=0)

    def embedding_gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the gradients of queries and table, given those of the scores."""
        by_query = np.zeros((default_threads(), *self.query.shape), self.query.dtype)
        by_table = np.zeros_like(self.table)
        if self.has_embeddings:
            score_grad = self.score.reshape(-1)
            given = self.visits, self.query, self.table, self.by_distance, score_grad
            self._for_entities(
                lambda i, part: add_visit_gradients(
                    *part, *given, by_query[i], by_table
                )
            )
        return by_query.sum(axis=0), by_table

    def _for_entities(self, work: Callable[[int, tuple[int, int]], object]) -> None:
        """Splits the entities among threads, to about the same number of visits."""
        shares = np.linspace(0, self.candidates.size, default_threads() + 1)
        bounds = np.searchsorted(self.visits.ptr, shares)
        bounds[-1] = len(self.table)
        parts = _split(bounds)
        _run(lambda i, _: work(i, parts[i]), len(parts), lambda: None)


def _split(bounds: np.ndarray) -> list[tuple[int, int]]:
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist()))


def _run(work: Callable[[int, Any], object], number: int, scratch: Any) -> None:
    for _ in run_all(work, range(number), scratch):
        pass
