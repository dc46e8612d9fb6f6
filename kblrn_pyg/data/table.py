"""Many names in compact form, without a Python object for each."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from kblrn_pyg.kernels.fields import Fields

Ids = NDArray[np.int64]

_NAMES, _LETTERS = 1 << 10, 1 << 14  # room to begin with


class NameTable(Sequence[str]):
    r"""Distinct names, whose positions are their ids.

    Example:
        >>> table = NameTable()
        >>> table.ids(["Ada", "Ben", "Ada"]).tolist(), table.find(["Cy"]).tolist()
        ([0, 1, 0], [-1])
        >>> list(table), "Ben" in table
        (['Ada', 'Ben'], True)
    """

    def __init__(self) -> None:
        kernels = _kernels()
        self._table = kernels.Table(
            np.full(2 * _NAMES, -1, np.int64),
            np.empty(_NAMES, np.uint64),
            np.empty(_NAMES, np.uint64),
            np.zeros(_NAMES + 1, np.int64),
            np.empty(_LETTERS, np.uint8),
            np.zeros(2, np.int64),
        )
        self._is_shared = False  # with copies, as long as nothing is added

    def __len__(self) -> int:
        return int(self._table.size[0])

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        letters = self._table.letters[
            self._table.ptr[place] : self._table.ptr[place + 1]
        ]
        return letters.tobytes().decode(errors="surrogatepass")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and int(self.find([name])[0]) >= 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return self.tolist() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def tolist(self) -> list[str]:
        """Returns all names."""
        number, num_letters = self._table.size.tolist()
        if number == 0:
            return []
        ptr, letters = self._table.ptr[: number + 1], self._table.letters[:num_letters]
        unused = np.flatnonzero(np.bincount(letters, minlength=128)[:128] == 0)
        if len(unused) == 0:
            return [self[i] for i in range(number)]
        joined = np.empty(num_letters + number - 1, np.uint8)
        _kernels().join_letters(ptr, letters, unused[0], joined)
        text = joined.tobytes().decode(errors="surrogatepass")
        return text.split(chr(unused[0]))

    def copy(self) -> "NameTable":
        """Returns a copy, to which names can be added."""
        twin = NameTable()
        twin._table = self._table
        twin._is_shared = self._is_shared = True
        return twin

    def ids(self, names: Sequence[str]) -> Ids:
        """Returns the ids of names, and assigns the next ids to new names."""
        if len(self) == 0 and isinstance(names, NameTable):
            self._table, self._is_shared = names.copy()._table, True
        return self._ids(names, True)

    def find(self, names: Sequence[str]) -> Ids:
        """Returns the ids of names, -1 for unknown ones."""
        return self._ids(names, False)

    def _ids(self, names: Sequence[str], is_new: bool) -> Ids:
        if isinstance(names, NameTable) and names._table is self._table:
            return np.arange(len(self))
        text, fields = _as_fields(names)
        return self.number(text, fields, [0], is_new)[0].astype(np.int64)

    def number(
        self,
        text: NDArray[np.uint8],
        fields: "Fields",
        columns: Sequence[int],
        is_new: bool = True,
    ) -> NDArray[np.int32]:
        r"""Returns the ids of fields, row by row, a row for each column.

        Args:
            text (numpy.ndarray): The text of the fields.
            fields (Fields): The fields.
            columns (sequence): The columns to use.
            is_new (bool, optional): Whether new names get ids.
                (default: :obj:`True`)
        """
        number_fields = _kernels().number_fields
        ids = np.empty((len(columns), fields.begin.shape[1]), np.int32)
        places, row = np.array(columns), 0
        if is_new and self._is_shared:
            number_fields(text, fields, places, 0, self._table, False, ids)
            if (ids >= 0).all():
                return ids
            self._table = _kernels().Table(*(part.copy() for part in self._table))
            self._is_shared = False
        while True:
            row = number_fields(text, fields, places, row, self._table, is_new, ids)
            if row == ids.shape[1]:
                return ids
            lengths = fields.end[places, row] - fields.begin[places, row]
            self._make_room(len(columns), int(lengths.sum()))

    def _make_room(self, num_names: int, num_letters: int) -> None:
        slots, digests, endings, ptr, letters, size = self._table
        number, used = size.tolist()
        if used + num_letters > len(letters):
            letters = _longer(letters, max(used + num_letters, 2 * used))
        if number + num_names > len(digests):
            digests = _longer(digests, 2 * len(digests))
            endings = _longer(endings, len(digests))
            ptr = _longer(ptr, len(digests) + 1)
        if number + num_names > len(slots) * 5 // 8:
            slots = np.full(2 * len(slots), -1, np.int64)
            _kernels().fill_slots(digests[:number], slots)
        self._table = _kernels().Table(slots, digests, endings, ptr, letters, size)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def _kernels() -> Any:
    """Imports the kernels lazily: importing Numba takes long, and small files do
    not need it."""
    from kblrn_pyg.kernels import fields

    return fields


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.empty(size, array.dtype)
    longer[: len(array)] = array
    return longer


def _as_fields(names: Sequence[str]) -> "tuple[NDArray[np.uint8], Fields]":
    kernels = _kernels()
    if isinstance(names, NameTable):
        _, digest, ending, ptr, letters, _ = names._table
        fields = kernels.Fields(ptr[:-1], ptr[1:], digest, ending)
        return letters, kernels.Fields(*(part[None, : len(names)] for part in fields))
    encoded = [name.encode(errors="surrogatepass") for name in names]
    text = np.frombuffer(b"".join(encoded), np.uint8)
    length = np.fromiter(map(len, encoded), np.int64, len(encoded))
    end = np.cumsum(length)
    digest, ending = np.empty((2, 1, len(encoded)), np.uint64)
    fields = kernels.Fields((end - length)[None], end[None], digest, ending)
    kernels.digest_fields(text, fields)
    return text, fields
