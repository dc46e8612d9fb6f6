"""All that training knows about the process it runs in.

Ranks, threads, random numbers and signals are dealt with here and nowhere else,
so that training over several processes needs changes in this file alone.
"""

import ctypes
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np
import torch

from kblrn_pyg.kernels.threads import limit_threads

# The names of glibc's malloc.h for what mallopt sets.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


class Interrupted(KeyboardInterrupt):
    """Raised when Ctrl-C ended the training, after everything was saved."""


@dataclass(frozen=True)
class Process:
    r"""The place of this process among those that train together.

    Args:
        rank (int, optional): Its number, from 0. (default: :obj:`0`)
        world_size (int, optional): How many there are. (default: :obj:`1`)
    """

    rank: int = 0
    world_size: int = 1

    @classmethod
    def from_environment(cls) -> "Process":
        """Reads what :obj:`torchrun` tells, for now only that we are alone."""
        process = cls(
            int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        )
        if process.world_size != 1:
            raise ValueError(
                "training over several processes is not supported yet "
                f"(got WORLD_SIZE={process.world_size})"
            )
        return process

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that saves, logs and shows."""
        return self.rank == 0


def keep_freed_memory() -> None:
    """Keeps up to half a gigabyte of freed memory for the next step of training.

    The allocator of Linux gives large arrays back at once, and the next step gets
    them anew, page by page, which is about a tenth of the time of training.
    """
    mallopt = (
        getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    )
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 32 * 2**20)
        mallopt(_TRIM_THRESHOLD, 512 * 2**20)


def set_threads(num_threads: int | None) -> int:
    r"""Sets how many threads torch and the kernels may use.

    Returns how many torch uses.

    Sums depend on the number of threads in the last bits, hence so do weights.

    Args:
        num_threads (int, optional): How many.
            (default: :obj:`None`, leave it as it is)
    """
    if num_threads is not None:
        torch.set_num_threads(num_threads)
        limit_threads(num_threads)
    return torch.get_num_threads()


def derive_seed(*numbers: int) -> int:
    r"""Mixes numbers into a seed; close numbers give unrelated seeds.

    Args:
        numbers (int): For example a seed, an epoch and a rank, none negative.
    """
    # Their count goes first, as trailing zeros would make no difference.
    sequence = np.random.SeedSequence((len(numbers), *numbers))
    return int(sequence.generate_state(1, np.uint64)[0])


def seed_all(*numbers: int) -> None:
    r"""Seeds the random numbers of torch, NumPy and Python.

    Args:
        numbers (int): What :meth:`derive_seed` takes.
    """
    seed = derive_seed(*numbers)
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def get_rng_states() -> dict[str, Any]:
    """Returns the states of all random numbers as tensors and plain values."""
    name, key, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, internal, next_gauss = random.getstate()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return {
        "torch": torch.get_rng_state(),
        "cuda": cuda,
        "numpy": {
            "name": str(name),
            "key": torch.from_numpy(np.asarray(key).astype(np.int64)),
            "rest": [int(position), int(has_gauss), float(gauss)],
        },
        "python": {
            "version": version,
            "internal": torch.tensor(internal),
            "next_gauss": next_gauss,
        },
    }


def set_rng_states(states: dict[str, Any]) -> None:
    r"""Continues all random numbers from where they were.

    Args:
        states (dict): What :meth:`get_rng_states` returned.
    """
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    numpy, python = states["numpy"], states["python"]
    key = numpy["key"].numpy().astype(np.uint32)
    np.random.set_state((numpy["name"], key, *numpy["rest"]))
    internal = tuple(python["internal"].tolist())
    random.setstate((python["version"], internal, python["next_gauss"]))


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Leaves the random numbers of the caller as they were."""
    states = get_rng_states()
    try:
        yield
    finally:
        set_rng_states(states)


class InterruptGuard:
    r"""Turns the first Ctrl-C into a wish, to be granted when it is safe.

    A second one raises :class:`KeyboardInterrupt` at once.

    Args:
        enabled (bool, optional): If set to :obj:`False`, Ctrl-C does what it
            always does. (default: :obj:`True`)
    """

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self.requested = False
        self._at_once = False
        self._previous: Any = None

    def __enter__(self) -> "InterruptGuard":
        # Only the main thread may set handlers; a process in the background of
        # a shell ignores Ctrl-C, and is right to do so.
        in_main_thread = threading.current_thread() is threading.main_thread()
        ignored = signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None)
        self.enabled = self.enabled and in_main_thread and not ignored
        if self.enabled:
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self.enabled:
            signal.signal(signal.SIGINT, self._previous)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Marks work that may be left at any point, also by an earlier wish."""
        self._at_once = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._at_once = False

    def _handle(self, _: int, __: FrameType | None) -> None:
        if self.requested or self._at_once:
            raise KeyboardInterrupt
        self.requested = True
