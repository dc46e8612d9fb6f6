"""Dropout with random numbers that are fast to generate on a CPU."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.kernels.dropping import drop

_STEPS = 2**16


def drop_entries(values: Tensor, part: float) -> Tensor:
    r"""Sets a fraction of the entries to zero, and scales up the others to
    compensate.

    On a CPU, torch's own dropout of a whole table of embeddings takes longer
    than multiplying with it.

    Args:
        values (torch.Tensor): The entries.
        part (float): The fraction to drop, less than one; on a CPU it is rounded to
            a multiple of :math:`2^{-16}`.
    """
    if not uses_kernels(values):
        return F.dropout(values, part)
    seed = int(torch.randint(2**62, ()))
    return _Drop.apply(values, seed, round(part * _STEPS))


class _Drop(torch.autograd.Function):
    """Dropping is linear, so that the gradient drops the same entries."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, seed: int, threshold: int) -> Tensor:
        ctx.seed, ctx.threshold = seed, threshold
        return _drop(values.detach(), seed, threshold)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return _drop(grad, ctx.seed, ctx.threshold), None, None


def _drop(values: Tensor, seed: int, threshold: int) -> Tensor:
    values = values.contiguous()
    out = torch.empty_like(values)
    factors = values.new_tensor([0, _STEPS / (_STEPS - threshold)])
    flat = values.view(-1).numpy(), out.view(-1).numpy()
    drop(flat[0], np.uint64(seed), threshold, factors.numpy(), flat[1])
    return out
