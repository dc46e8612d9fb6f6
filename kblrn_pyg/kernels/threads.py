"""Distributes work over threads; kernels hold no lock while they run."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Generic, TypeVar

from numba import config

Item = TypeVar("Item")
Result = TypeVar("Result")
Scratch = TypeVar("Scratch")

_limit: int | None = None
_state = threading.local()


def default_threads() -> int:
    """Returns the number of threads of kernels: Numba's number, unless limited.

    Within a worker thread, it is one.
    """
    if _is_sharing():
        return 1
    return int(config.NUMBA_NUM_THREADS) if _limit is None else _limit


def limit_threads(num_threads: int) -> None:
    r"""Sets the number of threads of kernels.

    Args:
        num_threads (int): The number of threads.
    """
    global _limit  # noqa: PLW0603, a setting of the process, as torch's is
    _limit = num_threads


def run_all(
    function: Callable[[Item, Scratch], Result],
    items: Iterable[Item],
    new_scratch: Callable[[], Scratch],
    num_threads: int | None = None,
) -> Iterator[Result]:
    r"""Calls a function for each item, and yields results roughly in the order of
    completion.

    The calling thread takes its share of the work.

    Args:
        function (callable): Takes an item and working memory that no other
            thread uses.
        items (iterable): The items, the longest work first.
        new_scratch (callable): Creates working memory, at most once a thread.
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
    """
    # All threads take from one list; its iterator gives no item twice.
    waiting = iter(list(items))
    found: SimpleQueue[Result] = SimpleQueue()
    num_helpers = 0 if _is_sharing() else (num_threads or default_threads()) - 1

    def work() -> Iterator[Result]:
        scratch = None
        for item in waiting:
            scratch = new_scratch() if scratch is None else scratch
            with _sharing(num_helpers > 0):
                result = function(item, scratch)
            yield result

    def help_out() -> None:
        for result in work():
            found.put(result)

    helpers = [_helpers(num_helpers).submit(help_out) for _ in range(num_helpers)]
    try:
        for result in work():
            yield result
            while not found.empty():
                yield found.get()
    finally:  # after an error, nobody begins another item
        for _ in waiting:
            pass
        for helper in helpers:
            helper.result()
    while not found.empty():
        yield found.get()


def run_slices(
    function: Callable[[slice, Scratch], Result],
    size: int,
    new_scratch: Callable[[], Scratch],
    num_threads: int | None = None,
    min_rows: int = 1,
) -> list[Result]:
    r"""Calls a function for slices of rows; results are in the order of the rows.

    There are more slices than threads, so that all threads finish at about the same
    time. The slices are always the same, so that sums over their results are
    reproducible.

    Args:
        function (callable): Takes a slice and working memory that no other
            thread uses.
        size (int): The number of rows.
        new_scratch (callable): Creates working memory, at most once a thread.
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
        min_rows (int, optional): The minimum number of rows of a slice, because
            passing a slice to a thread takes time. (default: :obj:`1`)
    """
    num_threads = num_threads or default_threads()
    num_parts = min(size // min_rows, 4 * num_threads) if num_threads > 1 else 1
    parts = cut(size, max(num_parts, 1))

    def work(i: int, scratch: Scratch) -> tuple[int, Result]:
        return i, function(parts[i], scratch)

    found = run_all(work, range(len(parts)), new_scratch, num_threads)
    return [result for _, result in sorted(found, key=lambda item: item[0])]


def cut(size: int, num_parts: int) -> list[slice]:
    r"""Cuts rows into consecutive slices of about the same length.

    Args:
        size (int): The number of rows.
        num_parts (int): The number of slices.

    Example:
        >>> cut(5, 2)
        [slice(0, 2, None), slice(2, 5, None)]
    """
    bounds = [size * i // num_parts for i in range(num_parts + 1)]
    return [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:])]


class ScratchPool(Generic[Scratch]):
    r"""Working memory that is reused by several calls, because creating it takes
    time.

    Args:
        make (callable): Creates working memory when all of it is in use.
    """

    def __init__(self, make: Callable[[], Scratch]) -> None:
        self._make = make
        self._free: list[Scratch] = []

    @contextmanager
    def borrowed(self) -> Iterator[Scratch]:
        """Lends working memory exclusively, within the context."""
        try:
            scratch = self._free.pop()
        except IndexError:
            scratch = self._make()
        yield scratch
        self._free.append(scratch)  # not after an error, which may have left traces

    def run_slices(
        self,
        function: Callable[[slice, Scratch], Result],
        size: int,
        num_threads: int | None = None,
    ) -> list[Result]:
        """Does the same as :meth:`run_slices`, with working memory of the pool."""

        def work(part: slice, _: None) -> Result:
            with self.borrowed() as scratch:
                return function(part, scratch)

        return run_slices(work, size, no_scratch, num_threads)

    def __reduce__(self) -> tuple[type["ScratchPool[Scratch]"], tuple]:
        return type(self), (self._make,)  # copies make their own


def no_scratch() -> None:
    """Working memory of a function that needs none."""


def _is_sharing() -> bool:
    return getattr(_state, "is_sharing", False)


@contextmanager
def _sharing(is_sharing: bool) -> Iterator[None]:
    before = _is_sharing()
    _state.is_sharing = before or is_sharing
    try:
        yield
    finally:
        _state.is_sharing = before


@cache
def _helpers(number: int) -> ThreadPoolExecutor:
    """Threads that stay: starting them takes as long as a small batch."""
    return ThreadPoolExecutor(number, thread_name_prefix="kblrn")


# A forked process has no threads but the one that forked.
if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_helpers.cache_clear)
