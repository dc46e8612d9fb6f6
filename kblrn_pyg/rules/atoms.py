"""Atoms of rules in text files: their relations, variables and constants."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from kblrn_pyg.data import DataError, Names

# A variable is a string, a constant the id of an entity.
Term = str | int
Atom = tuple[str, Term, Term]  # relation, first term, second term

# Says that names are written as 'quoted' does.
ENCODED_NAMES = "# names: percent-encoded"

_UNSAFE = re.compile(r"[%(),<=>?\s\x00-\x1f\x7f\ufeff]|^[A-Z]$")


@dataclass(frozen=True)
class ParsedRule:
    """A rule from a file, with the measures that the file states."""

    body: Sequence[Atom]
    head: Atom
    support: int = -1
    head_size: int = -1
    body_size: int = -1
    pca_body_size: int = -1

    @property
    def has_constants(self) -> bool:
        """Whether a term is a constant."""
        return any(isinstance(t, int) for _, *terms in self.atoms for t in terms)

    @property
    def atoms(self) -> list[Atom]:
        """The atoms of head and body."""
        return [self.head, *self.body]


class FileNames:
    r"""The names that a text file of rules may use.

    Args:
        relations (Names): The relations.
        entities (sequence, optional): The identifiers of the entities. Without them,
            constants are refused. (default: :obj:`None`)
        is_encoded (bool, optional): Whether names are written as :meth:`quoted`
            does. (default: :obj:`False`)
    """

    def __init__(
        self,
        relations: Names,
        entities: Sequence[str] | None = None,
        is_encoded: bool = False,
    ) -> None:
        self.relations, self.entities = relations, entities
        self.is_encoded = is_encoded
        self._id_of = {name: i for i, name in enumerate(entities or ())}
        self._relation_of: dict[str, int] = {}
        # A label with its identifier; each byte of a letter may be three characters.
        longest = [
            max(map(len, n), default=0)
            for n in (relations.identifiers, relations.labels)
        ]
        self.longest_relation = 12 * (sum(longest) + 3)

    def relation(self, text: str) -> int:
        """Returns the id of a relation."""
        if text not in self._relation_of:
            name = unquote(text) if self.is_encoded else text
            self._relation_of[text] = self.relations.resolve(name)
        return self._relation_of[text]

    def term(self, text: str, variable: "re.Pattern[str]") -> Term:
        """Returns a variable, or the id of the entity that a constant is."""
        if variable.fullmatch(text):
            return text
        if self.entities is None:
            raise DataError(f"{text!r} is a constant, expected variables only")
        name = unquote(text) if self.is_encoded else text
        if name not in self._id_of:
            raise DataError(f"unknown entity {name!r}")
        return self._id_of[name]

    def knows(self, relation: str, *terms: str, variable: "re.Pattern[str]") -> bool:
        """Returns whether all names of an atom are known."""
        try:
            self.relation(relation)
            return [self.term(term, variable) for term in terms] != []
        except DataError:
            return False


def quoted(name: str) -> str:
    r"""Returns a name in which characters with a meaning in rules are encoded.

    Example:
        >>> quoted("Paris, Texas"), quoted("X"), quoted("über")
        ('Paris%2C%20Texas', '%58', 'über')
    """
    return _UNSAFE.sub(
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name
    )


class AnyburlAtoms:
    r"""Reads lists of atoms such as :obj:`r(X,A), s(A,c)`, whose names may contain
    any character, as long as only one way to split them gives known names.

    Args:
        names (FileNames): The known names.
    """

    _VARIABLE = re.compile("[A-Z]")
    # Without spaces around terms, which would be tried in many ways.
    _ATOM = re.compile(r"(.+?)\(([^(),]+),([^(),]+)\)(?:, *|$)")

    def __init__(self, names: FileNames) -> None:
        self.names = names
        self._read: dict[str, list[Atom]] = {}  # rules repeat atoms

    def __call__(self, text: str) -> list[Atom]:
        """Returns the atoms of a text, or none if it contains anything else."""
        if text not in self._read:
            self._read[text] = [self._resolved(*atom) for atom in self._split(text)]
        return self._read[text]

    def _resolved(self, relation: str, first: str, second: str) -> Atom:
        term = self.names.term
        return relation, term(first, self._VARIABLE), term(second, self._VARIABLE)

    def _split(self, text: str) -> list[tuple[str, str, str]]:
        plain = self._plain(text)
        is_simple = text.count("(") == 1 and text.count(",") == 1
        if is_simple or self.names.entities is None:
            return plain
        readings = [[atom] for atom in self._readings(text) if self._knows(atom)]
        if plain and plain not in readings and all(map(self._knows, plain)):
            readings.append(plain)
        if len(readings) > 1:
            raise DataError(f"{text!r} can be read in several ways")
        return readings[0] if readings else plain

    def _plain(self, text: str) -> list[tuple[str, str, str]]:
        """Reads atoms one behind the other, as far as that leads to the end."""
        found, at = [], 0
        while at < len(text):
            # Searching from here on would begin anew at each character.
            match = self._ATOM.match(text, at)
            if match is None:
                return []
            found.append((match[1], match[2].strip(), match[3].strip()))
            at = match.end()
        return found

    def _readings(self, text: str) -> list[tuple[str, str, str]]:
        """Returns all ways to read a text as one atom with a variable."""
        found: list[tuple[str, str, str]] = []
        end = self.names.longest_relation + 1  # behind which no relation can end
        for at in [match.start() for match in re.finditer(r"\(", text[:end])]:
            relation, terms = text[:at], text[at + 1 : -1]
            first, _, behind = (term.strip() for term in terms.partition(","))
            before, _, last = (term.strip() for term in terms.rpartition(","))
            if relation and text.endswith(")"):
                if self._VARIABLE.fullmatch(first) and behind:
                    found.append((relation, first, behind))
                if self._VARIABLE.fullmatch(last) and before:
                    found.append((relation, before, last))
        return list(dict.fromkeys(found))  # 'X,Y' fits both

    def _knows(self, atom: tuple[str, str, str]) -> bool:
        return self.names.knows(*atom, variable=self._VARIABLE)
