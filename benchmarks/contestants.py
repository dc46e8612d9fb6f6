"""What trains a batch at a time, and how to time several in turns."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import torch

from kblrn_pyg import KBLRN

TURN, PAUSE = 4, 0.1  # batches of one checkout before the other's, and seconds


class Contestant:
    """Something that trains a batch at a time."""

    def __init__(self, name: str, num_batches: int, step: Callable[[], object]) -> None:
        self.name, self.num_batches, self.step = name, num_batches, step
        self.seconds: list[float] = []

    def run(self) -> float:
        start = time.perf_counter()
        self.step()
        self.seconds.append(time.perf_counter() - start)
        return self.seconds[-1]

    def take_turn(self, pause: float, number: int) -> None:
        """Runs some batches behind a pause, in which threads of others stop spinning,
        and one that is not counted."""
        time.sleep(pause)
        self.step()
        for _ in range(number):
            self.run()

    def warm_up(self) -> None:
        """Compiles kernels, and touches memory for the first time."""
        self.step()

    @property
    def batch(self) -> float:
        return statistics.median(self.seconds)

    @property
    def epoch(self) -> float:
        return self.batch * self.num_batches


class LoopContestant(Contestant):
    """Something with a training loop of its own: a step trains several batches, and
    returns the seconds of each but the first, which has to do with the beginning."""

    def run(self) -> float:
        found = list(self.step())  # type: ignore[call-overload]
        self.seconds += found
        return sum(found)

    def take_turn(self, pause: float, number: int) -> None:
        time.sleep(pause)
        self.run()

    def warm_up(self) -> None:
        """Does nothing: the first batch of a step is one that is not timed."""


def forever(loader: object) -> Iterator[tuple]:
    while True:
        yield from loader


def as_in_fit(model: KBLRN) -> AbstractContextManager[None]:
    """Keeps torch to one thread where :meth:`fit` does; older versions never do."""
    if not getattr(model, "uses_own_threads", False):
        return nullcontext()
    from kblrn_pyg.nn.one_thread import one_torch_thread

    return one_torch_thread()


def adam_of(model: KBLRN) -> torch.optim.Optimizer:
    """Returns the Adam of :meth:`fit`; older versions have torch's."""
    try:
        from kblrn_pyg.training.optimizers import ThreadedAdam
    except ImportError:
        return torch.optim.Adam(model.parameters(), lr=0.001, fused=True)
    return ThreadedAdam(model.parameters(), lr=0.001)


def take_turn(run: Callable[[], float]) -> list[float]:
    """Runs some batches behind a pause, and one that is not counted.

    Threads of torch go on spinning for a while, and would take a core from the
    other process.
    """
    time.sleep(PAUSE)
    return [run() for _ in range(TURN + 1)][1:]
