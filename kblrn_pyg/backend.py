"""The choice between the kernels and plain torch, which runs on any device."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor

_uses_torch = False


def uses_kernels(tensor: Tensor) -> bool:
    r"""Returns whether kernels may compute with a tensor.

    This is the case on a CPU, unless :meth:`plain_torch` is active; every other
    device needs torch.

    Args:
        tensor (torch.Tensor): The tensor.
    """
    return tensor.device.type == "cpu" and not _uses_torch


@contextmanager
def plain_torch() -> Iterator[None]:
    """Runs the code paths of other devices on a CPU."""
    global _uses_torch  # noqa: PLW0603, a setting of the process
    before = _uses_torch
    _uses_torch = True
    try:
        yield
    finally:
        _uses_torch = before
