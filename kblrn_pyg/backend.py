"""What computes: the kernels, or plain torch, which any device can run."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

_uses_torch = False


def uses_kernels(tensor: Tensor) -> bool:
    r"""Tells whether kernels may compute with a tensor.

    They do on a CPU, unless :meth:`plain_torch` says otherwise; every other device
    needs torch.

    Args:
        tensor (torch.Tensor): The tensor.
    """
    return tensor.device.type == "cpu" and not _uses_torch


@contextmanager
def plain_torch() -> Iterator[None]:
    """Lets torch compute on a CPU what it would compute on another device."""
    global _uses_torch  # noqa: PLW0603, a setting of the process
    before = _uses_torch
    _uses_torch = True
    try:
        yield
    finally:
        _uses_torch = before
