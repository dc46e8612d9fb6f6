"""Optimisers by name, and one for tables of which a batch uses few rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adam import adam

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.kernels.rows import adagrad_rows
from kblrn_pyg.kernels.threads import cut, default_threads, no_scratch, run_all
from kblrn_pyg.nn.one_thread import run_torch

# The least number of rows, and of single numbers, to hand to a thread.
_MIN_ROWS, _MIN_NUMBERS = 1024, 1 << 16
# How many numbers of a parameter are updated at once.
_IN_CACHE = 1 << 15


class RowAdagrad(Optimizer):
    r"""Adagrad that keeps one number for each row of a table with row-sparse
    gradients, as `PyTorch-BigGraph <https://arxiv.org/abs/1903.12287>`_ does:

    .. math::
        G_i \leftarrow G_i + \frac{1}{d} \| \mathbf{g}_i \|^2, \quad
        \mathbf{e}_i \leftarrow \mathbf{e}_i - \frac{\eta}{\sqrt{G_i} +
        \epsilon} \mathbf{g}_i

    The cost of a step is that of the rows that have a gradient. Parameters with
    dense gradients are updated as by :class:`torch.optim.Adagrad`.

    Args:
        params (iterable): The parameters, or groups of them.
        lr (float, optional): The learning rate. (default: :obj:`0.1`)
        eps (float, optional): A small constant that keeps the quotient finite.
            (default: :obj:`1e-10`)
    """

    def __init__(self, params: Any, lr: float = 0.1, eps: float = 1e-10) -> None:
        if not lr > 0:
            raise ValueError(f"'lr' must be positive (got {lr})")
        super().__init__(params, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Performs a single optimisation step."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                update = _update_rows if parameter.grad.is_sparse else _update_all
                update(parameter, self.state[parameter], group["lr"], group["eps"])
        return loss


def _update_rows(parameter: Tensor, state: Any, lr: float, eps: float) -> None:
    if not state:
        state["sum"] = parameter.new_zeros(len(parameter), 1)
    assert parameter.grad is not None
    index, values = parameter.grad._indices()[0], parameter.grad._values()
    if uses_kernels(parameter):
        _update_by_kernel(parameter, state["sum"], (index, values), lr, eps)
        return
    rows, place = torch.unique(index, return_inverse=True)
    total = values.new_zeros(len(rows), values.size(1)).index_add_(0, place, values)
    # Equal rows are added up by now: none of these indices repeats.
    sums = state["sum"][rows] + total.pow(2).mean(dim=1, keepdim=True)
    state["sum"][rows] = sums
    parameter.index_add_(0, rows, total.mul_(-lr / (sums.sqrt() + eps)))


def _update_by_kernel(
    parameter: Tensor, sums: Tensor, grad: tuple[Tensor, Tensor], lr: float, eps: float
) -> None:
    rows, order = (ids.numpy() for ids in torch.sort(grad[0]))
    arrays = parameter.numpy(), sums.numpy(), rows, order, grad[1].contiguous().numpy()
    # No row is shared by two threads.
    bounds = [
        np.searchsorted(rows, rows[part.start]) for part in _parts(len(rows), _MIN_ROWS)
    ]
    parts = list(zip(bounds, [*bounds[1:], len(rows)]))

    def work(part: tuple[int, int], _: None) -> None:
        adagrad_rows(*arrays, part, (lr, eps))

    for _ in run_all(work, parts, no_scratch):
        pass


def _parts(size: int, least: int) -> list[slice]:
    """Splits rows for threads, each of which gets a minimum number."""
    number = max(1, min(default_threads(), size // least))
    return cut(size, number) if size else []


def _update_all(parameter: Tensor, state: Any, lr: float, eps: float) -> None:
    if not state:
        state["sum"] = torch.zeros_like(parameter)
    assert parameter.grad is not None
    # Detached, because the threads that help would keep gradients.
    several = parameter.detach(), parameter.grad, state["sum"]
    tensors, parts = _flat_parts(list(several))

    def work(i: int) -> None:
        values, grad, total = (one[parts[i]] for one in tensors)
        # Piece by piece, so that what is in between stays in the cache.
        pieces = (one.split(_IN_CACHE) for one in (values, grad, total))
        for value, by_value, square in zip(*pieces):
            square.addcmul_(by_value, by_value)
            value.addcdiv_(by_value, square.sqrt().add_(eps), value=-lr)

    run_torch(work, len(parts))


def _flat_parts(tensors: list[Tensor]) -> tuple[list[Tensor], list[slice]]:
    """Splits tensors of the same shape for threads, if kernels may be used."""
    if uses_kernels(tensors[0]) and all(one.is_contiguous() for one in tensors):
        tensors = [one.view(-1) for one in tensors]
        return tensors, _parts(len(tensors[0]), _MIN_NUMBERS) or [slice(None)]
    return tensors, [slice(None)]


class ThreadedAdam(torch.optim.Adam):
    r"""Adam whose large parameters are updated by the threads of the library.

    Torch's own threads keep spinning when they are done, which slows down the
    threads of the library in the next batch. The results are those of
    :class:`torch.optim.Adam`.

    Args:
        params (iterable): The parameters, or groups of them.
        lr (float, optional): The learning rate. (default: :obj:`0.001`)
    """

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        # Fused, because it is seven times faster on a CPU.
        super().__init__(params, lr=lr, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Performs a single optimisation step."""
        if torch.get_num_threads() > 1:  # it is to use its own threads
            return super().step(closure)
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            several: tuple[list[Tensor], ...] = ([], [], [], [], [])
            parameters, grads, averages, squares, counts = several
            self._init_group(group, parameters, grads, averages, squares, [], counts)
            for tensors in zip(*several):
                self._update(group, list(tensors[:4]), tensors[4])
        return loss

    def _update(
        self, group: dict[str, Any], tensors: list[Tensor], num_steps: Tensor
    ) -> None:
        tensors, parts = _flat_parts(tensors)
        rates = group["lr"], *group["betas"], group["eps"]

        def work(i: int) -> Tensor:
            return _adam([one[parts[i]] for one in tensors], num_steps.clone(), rates)

        num_steps.copy_(run_torch(work, len(parts))[0])


def _adam(
    tensors: list[Tensor], num_steps: Tensor, rates: tuple[float, float, float, float]
) -> Tensor:
    """Updates a part of a parameter, and returns the number of steps by now."""
    lr, beta1, beta2, eps = rates
    parameter, grad, average, square = tensors
    adam(
        [parameter],
        [grad],
        [average],
        [square],
        [],
        [num_steps],
        fused=True,
        amsgrad=False,
        maximize=False,
        weight_decay=0.0,
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        eps=eps,
    )
    return num_steps


def make_optimizer(name: str, groups: list[dict[str, Any]]) -> Optimizer:
    r"""Creates an optimiser.

    Args:
        name (str): See :obj:`FitSettings.optimizer`.
        groups (list): The parameters with their learning rates.
    """
    if name == "adagrad":
        return RowAdagrad(groups)
    return ThreadedAdam(groups)
