"""Names of entities, relations and attributes, and the search for a name."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.ids import check_id
from kblrn_pyg.printable import shortened

_SEPARATORS = "/.#:"
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_MAX_LISTED = 8
_MAX_SCANS = 16
_LONGEST_NAME = 200  # that is shown, or compared with others


class Names:
    r"""The names of the ids of one kind.

    Args:
        kind (str): The kind of named things, for messages: :obj:`"relation"`.
        identifiers (sequence): The identifier of each id; identifiers differ.
        labels (sequence, optional): A readable name for each id; several ids may
            share one. (default: :obj:`None`, the identifiers)

    Example:
        >>> names = Names("relation", ["/people/marriage/spouse", "/film/film/genre"])
        >>> names.resolve("spouse"), names.resolve("film/genre")
        (0, 1)
    """

    def __init__(
        self,
        kind: str,
        identifiers: Sequence[str],
        labels: Sequence[str] | None = None,
    ) -> None:
        self.kind = kind
        self.identifiers = identifiers
        self.labels = identifiers if labels is None else labels
        self._by_identifier = _Places(identifiers)
        self._by_label = self._by_identifier
        if self.labels is not identifiers:
            self._by_label = _Places(self.labels)

    def __len__(self) -> int:
        return len(self.identifiers)

    def __getitem__(self, i: int) -> str:
        return self.labels[i]

    def unique(self, i: int) -> str:
        r"""Returns a readable name that :meth:`resolve` accepts: the label,
        followed by the identifier if several ids share the label.

        Args:
            i (int): The id.

        Example:
            >>> names = Names("entity", ["/m/1", "/m/2"], ["Paris", "Paris"])
            >>> names.unique(1), names.resolve("Paris (/m/2)")
            ('Paris (/m/2)', 1)
        """
        i = check_id(i, self.kind, len(self))
        label, identifier = self.labels[i], self.identifiers[i]
        if label == identifier or len(self._by_label.get(label)) == 1:
            return label
        return f"{label} ({identifier})"

    def resolve(self, name: str) -> int:
        r"""Returns the id of a name.

        A name is an identifier, else a label, else what :meth:`unique` returns,
        else the end of exactly one identifier, after one of :obj:`/ . # :`
        (:obj:`spouse` for :obj:`/people/marriage/spouse`), else a label in a
        different case.

        Raises:
            DataError: If no id, or more than one id, has that name.
        """
        found = self.exact(name) or self._ending_in(name) or self._in_other_case(name)
        if len(found) == 1:
            return found[0]
        shown = repr(shortened(name, _LONGEST_NAME))
        if found:
            given = [self.identifiers[i] for i in found]
            if len(set(given)) < len(found):  # graphs of users may repeat names
                given = [f"the id {i}" for i in found]
            message = f"{self.kind} {shown} is ambiguous, expected one of"
            raise DataError(f"{message} {_listed(given)}")
        raise DataError(f"unknown {self.kind} {shown}{self._nearest(name)}")

    def exact(self, name: str) -> list[int]:
        r"""Returns all ids with exactly that name: an identifier, else a label,
        else what :meth:`unique` returns.

        Args:
            name (str): The name.

        Example:
            >>> Names("entity", ["/m/1", "/m/2"], ["Paris", "Paris"]).exact("Paris")
            [0, 1]
        """
        if not isinstance(name, str):
            shown = shortened(repr(name), _LONGEST_NAME)
            raise ValueError(f"the name of the {self.kind} must be text (got {shown})")
        return (
            self._by_identifier.get(name)
            or self._by_label.get(name)
            or self._with_identifier(name)
        )

    def find(self, given: Any) -> int:
        r"""Returns the id of a name or an id.

        Args:
            given (int or str): An id, or a name for :meth:`resolve`.
        """
        if isinstance(given, str):
            return self.resolve(given)
        if not hasattr(given, "__index__"):
            shown = shortened(repr(given), _LONGEST_NAME)
            raise ValueError(f"the {self.kind} must be a name or an id (got {shown})")
        return check_id(given, self.kind, len(self))

    def _with_identifier(self, name: str) -> list[int]:
        identifier = name.rpartition(" (")[2].removesuffix(")")
        found = self._by_identifier.get(identifier)
        return [i for i in found if self.unique(i) == name]

    def _ending_in(self, name: str) -> list[int]:
        endings = tuple(separator + name for separator in _SEPARATORS)
        return [i for i, full in enumerate(self.identifiers) if full.endswith(endings)]

    def _in_other_case(self, name: str) -> list[int]:
        folded = name.casefold()
        return [i for i, label in enumerate(self.labels) if label.casefold() == folded]

    def _nearest(self, name: str) -> str:
        if len(name) > _LONGEST_NAME:  # comparing takes long
            return ""
        folded = {label.casefold(): label for label in self.labels}
        last = {last_segment(full).casefold(): full for full in self.identifiers}
        # Whole names by a surname, which by spelling alone is far from them.
        words = set(name.casefold().split())
        near = (
            [full for key, full in folded.items() if words and words <= {*key.split()}]
            or _spelled_like(name, folded, _MAX_LISTED)
            or _spelled_like(name, last, 3)
        )
        if near:
            return f", nearest are {_listed(near)}"
        if len(self) <= _MAX_LISTED:
            return f", expected one of {_listed(self.identifiers)}"
        return ""

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.kind!r}, {len(self)})"


@dataclass(frozen=True)
class Vocabulary:
    r"""All names of a knowledge base.

    Args:
        entities (Names): The entities.
        relations (Names): The relations.
        attributes (Names): The numerical attributes.
    """

    entities: Names
    relations: Names
    attributes: Names

    @classmethod
    def of(cls, data: HeteroData) -> "Vocabulary":
        """Returns the names of a knowledge base."""
        entity = data["entity"]
        return cls(
            Names("entity", entity.get("identifier", entity.name), entity.name),
            Names("relation", relation_names(data)),
            Names("attribute", data.attribute_names),
        )


class _Places:
    """The positions of names, few of which occur more than once."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names, self._num_scans = names, 0
        self._last: dict[str, int] = {}  # the last place of each
        self._repeated: dict[str, list[int]] = {}

    def get(self, name: str) -> list[int]:
        """Returns all places of a name."""
        # Who asks for a few of millions of names need not wait for an index.
        if not self._last and self._num_scans < _MAX_SCANS:
            self._num_scans += 1
            return self._scan(name)
        if not self._last:
            self._build()
        if name in self._repeated:
            return self._repeated[name]
        return [self._last[name]] if name in self._last else []

    def _scan(self, name: str) -> list[int]:
        if not isinstance(self._names, list):
            return [i for i, one in enumerate(self._names) if one == name]
        found: list[int] = []
        with suppress(ValueError):
            while True:  # in less time than a loop over all takes
                found.append(self._names.index(name, found[-1] + 1 if found else 0))
        return found

    def _build(self) -> None:
        names = self._names
        self._last = dict(zip(names, range(len(names))))
        if len(self._last) < len(names):  # without a list for every name
            counts = Counter(names)
            self._repeated = {name: [] for name, n in counts.items() if n > 1}
            for i, name in enumerate(names):
                if name in self._repeated:
                    self._repeated[name].append(i)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_LISTED
    text = ", ".join(names[:_MAX_LISTED])
    return f"{text} and {more} more" if more > 0 else text


def _spelled_like(name: str, folded: Mapping[str, str], number: int) -> list[str]:
    keys = difflib.get_close_matches(name.casefold(), folded, n=number)
    return [folded[key] for key in keys]


def last_segment(name: str) -> str:
    """Returns what follows the last separator of a name."""
    return re.split(f"[{_SEPARATORS}]", name.rstrip(_SEPARATORS))[-1]


def shorten(names: Sequence[str]) -> list[str]:
    r"""Shortens names that are paths to their shortest unique ending.

    A path is an IRI, a name in angle brackets, or a name that begins with a slash,
    as in Freebase; other names, such as :obj:`km/h`, stay as they are.

    Example:
        >>> shorten(["<http://x/ns/person.height>", "<http://x/ns/club.founded>",
        ...          "<http://x/ns/city.founded>"])
        ['height', 'club.founded', 'city.founded']
    """
    endings = [path_endings(name) for name in names]
    owners = Counter(chain.from_iterable(endings))
    return [
        next((ending for ending in group if owners[ending] == 1), name)
        for name, group in zip(names, endings)
    ]


def path_endings(name: str) -> list[str]:
    r"""Returns the possible short forms of a name, the shortest first.

    Args:
        name (str): The name; only paths become shorter, see :meth:`shorten`.
    """
    is_bracketed = len(name) > 2 and name[0] == "<" and name[-1] == ">"
    if not (is_bracketed or name.startswith("/") or _IRI.fullmatch(name)):
        return [name]
    name = name[1:-1] if is_bracketed else name
    starts = [match.end() for match in re.finditer(f"[{_SEPARATORS}]+", name)]
    endings = [name[start:] for start in reversed(starts) if start < len(name)]
    return [*endings, name]


def relation_names(data: HeteroData) -> list[str]:
    """Returns the names of all relations of a knowledge base."""
    return [relation for _, relation, _ in data.edge_types]
