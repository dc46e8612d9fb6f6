"""Runs torch in the threads of the library instead of its own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from kblrn_pyg.kernels.threads import no_scratch, run_all

Result = TypeVar("Result")


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limits torch to one thread within the context, for the calling thread.

    Torch's threads keep spinning after every operation. They would take a core from
    the threads of the kernels, and wait for each other if another process is busy.
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


def run_torch(work: Callable[[int], Result], number: int) -> list[Result]:
    r"""Calls a function for each number below :obj:`number`, in order.

    The calls are shared among the threads of the library, each of which keeps torch
    to itself.

    Args:
        work (callable): Takes the number.
        number (int): The number of calls.
    """

    def alone(i: int, _: None) -> tuple[int, Result]:
        with one_torch_thread():
            return i, work(i)

    found = run_all(alone, range(number), no_scratch)
    return [result for _, result in sorted(found, key=lambda item: item[0])]
