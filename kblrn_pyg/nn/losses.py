"""Cross-entropy over all entities, and over sampled ones."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.kernels.sampling import Scratch, cross_entropy_gradients, new_scratch
from kblrn_pyg.kernels.scoring import Differences
from kblrn_pyg.kernels.threads import default_threads, run_all
from kblrn_pyg.nn.comparing import Comparison
from kblrn_pyg.rules import PairFeatures, PathFeatures

Compare = Callable[[Tensor, Tensor, Tensor], Comparison]


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
        top = scores.amax(dim=1)
        potential = (scores - top[:, None]).exp_()
        partition = potential.sum(dim=1)
        ctx.save_for_backward(potential, partition, row, answer)
        log_partition = partition.log() + top
        return (log_partition[row] - scores[row, answer]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        potential, partition, row, answer = ctx.saved_tensors
        scale = grad / row.numel()
        num_answers = torch.bincount(row, minlength=potential.size(0))
        factor = num_answers * scale / partition
        scores_grad = potential * factor.to(potential.dtype)[:, None]
        ones = torch.full_like(row, 1, dtype=potential.dtype) * -scale
        scores_grad.index_put_((row, answer), ones, accumulate=True)
        return scores_grad, None, None


class SampledCrossEntropy(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_{c \in E} \exp s_c - s_t` over queries.

    All three experts are scored, and the gradients of scores, rules and numbers
    collected, on the way forward.
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
        compare: Compare,
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
            compare (callable): How queries are compared with candidates, given
                queries, table and candidates.
            paths (PathFeatures): The rules and the facts.
            own (PairFeatures): The rules that hold by the asked fact alone.
            differences (Differences): The numerical features.
        """
        comparison = compare(
            *(tensor.detach().contiguous() for tensor in (query, table, candidates))
        )
        score = comparison.scores()
        weights = [
            tensor.detach().double().numpy()
            for tensor in (path_weight, num_weight, centre, width)
        ]
        asked = tuple(
            ids.contiguous().numpy() for ids in (candidates, entity, rel_type)
        )
        loss, by_path, by_number = _add_features(
            score,
            asked,
            paths,
            weights[0],
            own,
            differences,
            from_tail,
            tuple(weights[1:]),
        )
        ctx.comparison = comparison
        ctx.save_for_backward(
            torch.from_numpy(score),
            torch.from_numpy(by_path),
            torch.from_numpy(by_number),
        )
        return query.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        by_score, by_path, by_number = ctx.saved_tensors
        numbers = (grad * by_number).to(grad.dtype)
        # Scores are scaled, because the table may be much larger.
        return (
            *ctx.comparison.gradients((grad * by_score).numpy()),
            (grad * by_path).to(grad.dtype),
            *numbers.unbind(),
            *[None] * 8,
        )


def _add_features(
    score: np.ndarray,
    asked: tuple[np.ndarray, ...],
    paths: PathFeatures,
    path_weight: np.ndarray,
    own: PairFeatures,
    differences: Differences,
    from_tail: bool,
    numbers: tuple[np.ndarray, ...],
) -> tuple[float, np.ndarray, np.ndarray]:
    """Adds what paths and numbers give to scores, and turns these into gradients.

    Returns the loss, and the gradients of the weights of paths and numbers.
    """
    candidates, entity, rel = asked
    size = len(entity)
    bounds = np.linspace(0, size, default_threads() + 1).astype(int).tolist()
    parts = list(zip(bounds[:-1], bounds[1:]))
    by_path = np.zeros((len(parts), len(path_weight)))
    by_number = np.zeros((len(parts), 3, len(numbers[0])))
    losses = np.zeros(len(parts))
    walks = paths.walk_arguments(from_tail, entity, rel)

    def work(i: int, scratch: Scratch) -> None:
        losses[i] = cross_entropy_gradients(
            *parts[i],
            score,
            candidates,
            entity,
            rel,
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
    shape = paths.num_entities, most_rules, candidates.shape[1]
    run = run_all(work, range(len(parts)), lambda: new_scratch(*shape, score.dtype))
    for _ in run:
        pass
    return float(losses.sum()), by_path.sum(axis=0), by_number.sum(axis=0)
