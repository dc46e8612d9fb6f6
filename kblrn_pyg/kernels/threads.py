"""Work for several threads; kernels hold no lock while they run."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import Empty, SimpleQueue
from typing import TypeVar

from numba import config

Item = TypeVar("Item")
Result = TypeVar("Result")
Scratch = TypeVar("Scratch")


_limit: int | None = None


def default_threads() -> int:
    """Returns how many threads kernels use: Numba's number, unless limited."""
    return int(config.NUMBA_NUM_THREADS) if _limit is None else _limit


def limit_threads(num_threads: int) -> None:
    r"""Sets how many threads kernels use.

    Args:
        num_threads (int): How many.
    """
    global _limit  # noqa: PLW0603, a setting of the process, as torch's is
    _limit = num_threads


def run_all(
    function: Callable[[Item, Scratch], Result],
    items: Iterable[Item],
    new_scratch: Callable[[], Scratch],
    num_threads: int | None = None,
) -> Iterator[Result]:
    r"""Calls a function for each item, results in the order of completion.

    Args:
        function (callable): Takes an item and working memory that no other
            thread uses.
        items (iterable): The items, the longest work first.
        new_scratch (callable): Makes working memory, at most once a thread.
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
    """
    num_threads = num_threads or default_threads()
    if num_threads == 1:
        scratch = new_scratch()
        for item in items:
            yield function(item, scratch)
        return
    idle: SimpleQueue[Scratch] = SimpleQueue()

    def work(item: Item) -> Result:
        try:
            scratch = idle.get_nowait()
        except Empty:
            scratch = new_scratch()
        try:
            return function(item, scratch)
        finally:
            idle.put(scratch)

    with ThreadPoolExecutor(num_threads) as pool:
        for future in as_completed([pool.submit(work, item) for item in items]):
            yield future.result()
