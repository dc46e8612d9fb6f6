"""The process of a training run: its threads, random numbers and signals."""

import atexit
import ctypes
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from kblrn_pyg.kernels.threads import limit_threads

# The names of glibc's malloc.h for what mallopt sets.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4


# Held by the thread that trains; one for the process, as its random numbers are.
_training = threading.RLock()


class Interrupted(KeyboardInterrupt):
    """Raised after Ctrl-C has ended training and the state has been saved."""


def join_processes() -> None:
    """Initialises the processes that :obj:`torchrun` started, each with its own
    threads."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        return
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    atexit.register(_leave_processes)
    # As many as torchrun says, which is one if nobody has set OMP_NUM_THREADS.
    set_threads(torch.get_num_threads())


def _leave_processes() -> None:
    """Ends the threads of the group: an exit that finds them running may abort."""
    if dist.is_initialized():
        dist.destroy_process_group()


def keep_freed_memory() -> None:
    """Keeps freed memory for the next training step.

    By default, glibc returns large arrays to the system at once, and the next step
    has to fault them in page by page, which takes a tenth of the time or more. From
    here on, only what is free at the end of the heap is returned, and only if it is
    more than half a gigabyte. This holds for the whole process.
    """
    library = ctypes.CDLL(None) if os.name == "posix" else None
    if mallopt := getattr(library, "mallopt", None):
        mallopt(_MMAP_THRESHOLD, 32 * 2**20)
        mallopt(_MMAP_MAX, 0)  # larger ones would be returned, whatever the threshold
        mallopt(_TRIM_THRESHOLD, 512 * 2**20)


def set_threads(num_threads: int | None) -> int:
    r"""Sets the number of threads of torch and the kernels, and returns it.

    The last bits of sums, and hence of weights, depend on the number of threads.

    Args:
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, unchanged)
    """
    if num_threads is not None:
        torch.set_num_threads(num_threads)
        limit_threads(num_threads)
    return torch.get_num_threads()


def derive_seed(*numbers: int) -> int:
    """Derives a seed from non-negative numbers; similar numbers give unrelated
    seeds."""
    # Their count comes first, because trailing zeros would make no difference.
    sequence = np.random.SeedSequence((len(numbers), *numbers))
    return int(sequence.generate_state(1, np.uint64)[0])


def seed_all(*numbers: int) -> None:
    r"""Seeds the random number generators of torch, NumPy and Python.

    Args:
        numbers (int): Non-negative numbers to derive the seed from, such as a seed
            and an epoch.
    """
    seed = derive_seed(*numbers)
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def get_rng_states() -> dict[str, Any]:
    """Returns the states of all generators as tensors and plain values."""
    name, key, position, has_gauss, gauss = np.random.get_state(legacy=True)
    version, internal, next_gauss = random.getstate()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
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
    """Restores what :meth:`get_rng_states` returned."""
    torch.set_rng_state(states["torch"])
    if states["cuda"] and torch.cuda.device_count() == len(states["cuda"]):
        torch.cuda.set_rng_state_all(states["cuda"])
    numpy, python = states["numpy"], states["python"]
    key = numpy["key"].numpy().astype(np.uint32)
    np.random.set_state((numpy["name"], key, *numpy["rest"]))
    internal = tuple(python["internal"].tolist())
    random.setstate((python["version"], internal, python["next_gauss"]))


@contextmanager
def only_training() -> Iterator[None]:
    """Refuses to train in a second thread: all threads of a process share the same
    random number generators, so neither training run would be reproducible."""
    if not _training.acquire(blocking=False):
        raise RuntimeError(
            "another thread of this process is training, use a process for each"
        )
    try:
        yield
    finally:
        _training.release()


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Restores the caller's random number generators at the end."""
    states = get_rng_states()
    try:
        yield
    finally:
        set_rng_states(states)


class InterruptGuard:
    """Defers the first Ctrl-C until it is safe to stop.

    The first one only sets :obj:`requested`; a second one raises
    :class:`KeyboardInterrupt` at once. If not enabled, Ctrl-C works as usual.
    """

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.requested = False
        self._at_once = False
        self._previous: Any = None

    def __enter__(self) -> "InterruptGuard":
        # Only the main thread may set handlers; a background process of a shell
        # ignores Ctrl-C, and that must stay so.
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
        """Marks work that may be interrupted at any point."""
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
