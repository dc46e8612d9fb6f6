"""An index of facts by their ids, with one row per fact."""

from collections.abc import Iterator

import numpy as np

from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.rules.columns import Ids

# The number of facts between two steps of a progress bar.
_AT_ONCE = 4096


class FactIndex:
    r"""Numbers the distinct facts of a knowledge base.

    Args:
        triples (tuple): The heads, relations and tails of the facts.
        num_entities (int): The number of entities.

    Example:
        >>> ids = np.array([1, 0]), np.array([0, 0]), np.array([2, 1])
        >>> FactIndex(ids, num_entities=3).find(*ids)
        array([1, 0])
    """

    def __init__(self, triples: tuple[Ids, ...], num_entities: int) -> None:
        self._num_entities = num_entities
        self._keys, first = np.unique(self._key(*triples), return_index=True)
        self._triples = tuple(ids[first] for ids in triples)

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, head: Ids, rel: Ids, tail: Ids) -> Ids:
        r"""Returns the number of each triple, -1 where it is not a fact.

        Args:
            head (numpy.ndarray): The head of each triple.
            rel (numpy.ndarray): The relation of each triple.
            tail (numpy.ndarray): The tail of each triple.
        """
        key = self._key(head, rel, tail)
        if len(self) == 0:
            return np.full(len(key), -1)
        at = np.minimum(np.searchsorted(self._keys, key), len(self) - 1)
        return np.where(self._keys[at] == key, at, -1)

    def batches(self, what: str) -> Iterator[tuple[Ids, Ids, Ids]]:
        r"""Iterates over the facts in their order, with a progress bar if that
        takes some time.

        Args:
            what (str): The label of the bar.
        """
        with ProgressBar(
            total=len(self), desc=what, unit="fact", delay=3, leave=False, disable=None
        ) as bar:
            for begin in range(0, len(self), _AT_ONCE):
                head, rel, tail = (
                    ids[begin : begin + _AT_ONCE] for ids in self._triples
                )
                yield head, rel, tail
                bar.update(len(head))

    def _key(self, head: Ids, rel: Ids, tail: Ids) -> Ids:
        return (rel * self._num_entities + head) * self._num_entities + tail
