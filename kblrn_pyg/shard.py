"""Entities that are split among the processes of a training run.

Every process has the rows of its own entities and scores these as candidates. The
processes exchange only data of the size of a batch: the rows of queries, the
partition functions over candidates, the scores of answers, and gradients of queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter


def num_processes() -> int:
    """Returns the number of processes that train together."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def process_rank() -> int:
    """Returns the number of this process, from 0."""
    return dist.get_rank() if num_processes() > 1 else 0


def agreed(value: Any) -> Any:
    """Returns the value that the first process has."""
    if num_processes() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values, src=0)
    return values[0]


def told_all(value: Any) -> list[Any]:
    """Returns the values of all processes, to every process."""
    values = [value] * num_processes()
    if len(values) > 1:
        dist.all_gather_object(values, value)
    return values


def any_says(is_true: bool) -> bool:
    """Returns whether the condition is true in any process."""
    if num_processes() == 1:
        return is_true
    said = torch.tensor(int(is_true))
    dist.all_reduce(said, op=dist.ReduceOp.MAX)
    return bool(said)


def add_up(values: Tensor) -> Tensor:
    """Returns the sum of the values of all processes."""
    total = values.detach().clone().contiguous()
    dist.all_reduce(total)
    return total


def add_up_gradients(parameters: Sequence[Parameter]) -> None:
    r"""Sums the gradients of parameters that every process has, in one message.

    Args:
        parameters (sequence): The parameters.
    """
    if not parameters:
        return
    grads = [
        torch.zeros_like(one) if one.grad is None else one.grad for one in parameters
    ]
    total = add_up(torch.cat([grad.flatten() for grad in grads]))
    for one, part in zip(parameters, total.split([one.numel() for one in parameters])):
        one.grad = part.view_as(one).to(one.dtype)


@dataclass(frozen=True)
class Shard:
    r"""The entities of this process.

    Args:
        low (int): The first entity.
        high (int): The entity after the last one.
        num_nodes (int): The number of all entities.
    """

    low: int
    high: int
    num_nodes: int

    @classmethod
    def of_this_process(cls, num_nodes: int) -> "Shard":
        r"""Splits entities into equal shares, one for each process.

        Args:
            num_nodes (int): The number of all entities.
        """
        rank, size = process_rank(), num_processes()
        if num_nodes < size:
            raise ValueError(
                f"there must be an entity for each process (got {num_nodes} for {size})"
            )
        return cls(rank * num_nodes // size, (rank + 1) * num_nodes // size, num_nodes)

    @property
    def size(self) -> int:
        """The number of entities of this process."""
        return self.high - self.low

    def is_mine(self, index: Tensor) -> Tensor:
        """Returns which entities belong to this process."""
        return (index >= self.low) & (index < self.high)

    def local(self, index: Tensor) -> Tensor:
        """Returns the rows of entities, and arbitrary rows for those of other
        processes."""
        return (index - self.low).clamp(0, self.size - 1)

    def rows(self, rows: Tensor, index: Tensor) -> Tensor:
        r"""Returns the rows of any entities, sent by their processes.

        Args:
            rows (torch.Tensor): The rows at :meth:`local` positions.
            index (torch.Tensor): The entities.
        """
        return _TellRows.apply(rows * self.is_mine(index)[..., None])

    def sum(self, values: Tensor) -> Tensor:
        """Returns the sum over processes, which each of them gets."""
        return _Sum.apply(values)

    def log_sum(self, values: Tensor, summed: Tensor) -> tuple[Tensor, Tensor]:
        r"""Returns the logarithm of the sum of exponentials over processes, and the
        sum of other numbers, to all processes.

        Both are sent in one message, because synchronising takes time.

        Args:
            values (torch.Tensor): The values whose exponentials are added up.
            summed (torch.Tensor): The other numbers.
        """
        return _LogSum.apply(values, summed)

    def answer_scores(
        self, scores: np.ndarray, row: np.ndarray, answer: np.ndarray
    ) -> np.ndarray:
        r"""Returns the scores of answers, sent by their processes.

        Args:
            scores (numpy.ndarray): The scores of the entities of this process.
            row (numpy.ndarray): The row of each answer.
            answer (numpy.ndarray): The entity of each answer.
        """
        mine = (answer >= self.low) & (answer < self.high)
        own = np.zeros(len(row), scores.dtype)
        own[mine] = scores[row[mine], answer[mine] - self.low]
        return add_up(torch.from_numpy(own)).numpy()

    def gather(self, rows: Tensor) -> Tensor:
        """Returns the rows of all entities, to every process."""
        bounds = [i * self.num_nodes // num_processes() for i in range(num_processes())]
        bounds.append(self.num_nodes)
        whole = rows.new_empty(self.num_nodes, *rows.shape[1:])
        for i, (low, high) in enumerate(zip(bounds[:-1], bounds[1:])):
            part = whole[low:high]
            if i == process_rank():
                part.copy_(rows.detach())
            dist.broadcast(part, src=i)
        return whole

    def gather_all(self, state: Mapping[str, Tensor], split: set[str]) -> dict:
        r"""Returns whole tensors, such as weights.

        Args:
            state (dict): The tensors by name.
            split (set): The names of those that are split.
        """
        return {
            name: self.gather(value) if name in split else value
            for name, value in state.items()
        }

    def cut_all(self, state: Mapping[str, Tensor], split: set[str]) -> dict:
        r"""Reverses :meth:`gather_all`.

        Args:
            state (dict): The tensors by name.
            split (set): The names of those that are to be split.
        """
        return {
            name: value[self.low : self.high].clone() if name in split else value
            for name, value in state.items()
        }


class _TellRows(torch.autograd.Function):
    """Sums in the forward and the backward pass: the processes continue
    differently."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        return add_up(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return add_up(grad)


class _Sum(torch.autograd.Function):
    """Sums in the forward pass only: all processes continue in the same way."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return add_up(values)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class _LogSum(torch.autograd.Function):
    """Like :class:`_Sum`, for exponentials and other numbers."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, summed: Tensor) -> tuple[Tensor, Tensor]:
        own = torch.cat([values.detach(), summed.detach().to(values.dtype)])
        told = [torch.empty_like(own) for _ in range(num_processes())]
        dist.all_gather(told, own)
        total = torch.stack([one[: len(values)] for one in told]).logsumexp(dim=0)
        # Where nobody has a candidate, there is nothing to learn either.
        ctx.save_for_backward((values - total).exp().nan_to_num(0.0))
        others = torch.stack([one[len(values) :] for one in told]).sum(dim=0)
        return total, others.to(summed.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, by_summed: Tensor) -> tuple[Tensor, Tensor]:
        return grad * ctx.saved_tensors[0], by_summed
