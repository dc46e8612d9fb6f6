"""Completion: the names that match a few typed letters."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]

# How many names with the letters are looked at; of these, the weightiest are shown.
_MAX_FOUND = 2000
_END = "\n"


class NameIndex:
    r"""Finds names that begin with some letters, or that have a word that does, and
    then names that contain them.

    All names are stored as one text, which is scanned at memory speed: no index is
    needed, and searching millions of names takes a fraction of a second.

    Args:
        names (sequence): The names.
        weight (numpy.ndarray): The importance of each name; of equally good
            matches, the most important come first.

    Example:
        >>> index = NameIndex(["New York", "York", "Newark"], np.array([9, 1, 5]))
        >>> index.find("york", 3), index.find("NEW", 3)
        ([1, 0], [0, 2])
    """

    def __init__(self, names: Sequence[str], weight: Ids) -> None:
        folded = [_folded(name) for name in names]
        self._text = _END + _END.join(folded) + _END
        sizes = np.fromiter(map(len, folded), np.int64, len(folded)) + 1
        self._start = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + 1
        self._weight = weight

    def find(self, letters: str, number: int) -> list[int]:
        r"""Returns the positions of the best names.

        Args:
            letters (str): The letters to search for, in upper or lower case.
            number (int): The maximum number of names.
        """
        wanted = _folded(letters).strip()
        if not wanted or not len(self._start):
            return []
        found: dict[int, None] = {}
        # Whole names, beginnings of names, beginnings of words, anything.
        for pattern in (_END + wanted + _END, _END + wanted, " " + wanted, wanted):
            places = self._containing(pattern)
            order = np.argsort(-self._weight[places], kind="stable")
            found |= dict.fromkeys(places[order].tolist())
            if len(found) >= number:
                break
        return list(islice(found, number))

    def _containing(self, pattern: str) -> Ids:
        places: list[int] = []
        at = self._text.find(pattern)
        while at >= 0 and len(places) < _MAX_FOUND:
            places.append(at)
            at = self._text.find(pattern, at + 1)
        # A pattern may begin with the end of the name before.
        inside = np.array(places, np.int64) + pattern.startswith(_END)
        return np.unique(np.searchsorted(self._start, inside, side="right") - 1)


def _folded(name: str) -> str:
    # Separators of identifiers end words, too.
    return name.casefold().replace(_END, " ").replace("_", " ").replace("/", " ")
