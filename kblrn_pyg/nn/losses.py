"""Cross-entropy over all entities, and over sampled ones."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.kernels.sampling import new_scratch, sampled_cross_entropy
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

    All three experts are scored, and all gradients collected, in one kernel.
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
        paths: PathFeatures,
        own: PairFeatures,
        differences: Differences,
    ) -> Tensor:
        r"""Returns the loss.

        Args:
            query (torch.Tensor): What candidates are multiplied with.
            table (torch.Tensor): A row for every entity.
            path_weight (torch.Tensor): The weight of each rule.
            num_weight (torch.Tensor): The weight of each numerical feature.
            centre (torch.Tensor): The centre of each.
            width (torch.Tensor): The width of each.
            candidates (torch.Tensor): The candidates, the true one first.
            entity (torch.Tensor): The known entity of each query.
            rel_type (torch.Tensor): The relation of each query.
            from_tail (bool): Whether the known entities are tails.
            paths (PathFeatures): The rules and the facts.
            own (PairFeatures): The rules that hold by the asked fact alone.
            differences (Differences): The numerical features.
        """
        size, dtype = len(entity), query.detach().numpy().dtype
        num_parts = max(1, min(size, default_threads()))
        bounds = np.linspace(0, size, num_parts + 1).astype(int).tolist()
        arrays = [
            tensor.detach().contiguous().numpy()
            for tensor in (query, table, candidates, entity, rel_type)
        ]
        query_grad = np.zeros(query.shape, dtype)
        grads = [
            (
                query_grad,
                np.zeros(table.shape, dtype),
                np.zeros(len(path_weight)),
                np.zeros((3, len(num_weight))),
            )
            for _ in bounds[1:]
        ]
        numbers = [
            tensor.detach().double().numpy()
            for tensor in (path_weight, num_weight, centre, width)
        ]

        def work(part: int, scratch: tuple) -> tuple[int, float]:
            loss = sampled_cross_entropy(
                bounds[part],
                bounds[part + 1],
                *arrays,
                1.0 / size,
                paths.kernel_arguments(from_tail),
                numbers[0],
                own.ptr,
                own.rule,
                differences,
                -1.0 if from_tail else 1.0,
                *numbers[1:],
                grads[part],
                scratch,
            )
            return part, loss

        losses = dict(
            run_all(
                work,
                range(len(grads)),
                lambda: new_scratch(
                    len(table), len(path_weight), candidates.size(1), dtype
                ),
            )
        )
        ctx.save_for_backward(
            torch.from_numpy(query_grad),
            *(
                torch.from_numpy(np.sum([grad[i] for grad in grads], axis=0))
                for i in (1, 2, 3)
            ),
        )
        loss = sum(losses[part] for part in range(len(grads)))
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
            *[None] * 7,
        )
