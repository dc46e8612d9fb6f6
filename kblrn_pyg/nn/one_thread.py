"""Keeping torch to one thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keeps torch to one thread for a while, as far as the calling thread goes.

    Its threads go on spinning after every operation. They would take a core from
    those of the kernels, and wait for each other where another process is busy.
    """
    before = torch.get_num_threads()
    if before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
