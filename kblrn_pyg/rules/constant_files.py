"""Rules with constants in text files."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kblrn_pyg.data import DataError, Names
from kblrn_pyg.rules.atoms import Atom, FileNames, ParsedRule, quoted
from kblrn_pyg.rules.columns import UNKNOWN, Ids
from kblrn_pyg.rules.constant_columns import ANY, COLUMNS, MEASURES, NO_BODY
from kblrn_pyg.rules.constants import ConstantRuleSet

# The lines that are made at once.
_CHUNK = 1 << 16


class ConstantFormat(Protocol):
    """The syntax of rules with constants in a text format."""

    variables: tuple[str, str, str]
    """The variable of a rule if it comes first in the head, and if it comes second,
    and the one of a body that leads anywhere."""

    def atom(self, relation: str, first: str, second: str) -> str:
        """Writes an atom."""
        ...

    def line(self, head: str, body: str, measures: tuple[int, ...]) -> str:
        """Writes a rule with its support, body and PCA body."""
        ...

    def parse_atom(self, text: str, names: FileNames) -> list[Atom]:
        """Parses an atom, such as one that :meth:`atom` has written."""
        ...


class ConstantColumns:
    r"""Collects rules with constants, without an object for each.

    Args:
        names (FileNames): The names of relations and entities.
    """

    def __init__(self, names: FileNames) -> None:
        self.names = names
        self._columns = {name: array("q") for name in COLUMNS}

    def add(self, rule: ParsedRule) -> None:
        """Adds a rule, or raises an error with the reason why it cannot be used."""
        head, body = self._encode(rule)
        sizes = tuple(getattr(rule, name) for name in MEASURES)
        _check_sizes(*sizes)
        for column, value in zip(self._columns.values(), (*head, *body, *sizes)):
            column.append(value)

    def rules(self) -> ConstantRuleSet | None:
        """Returns the rules, if there are any."""
        if not self._columns["head_code"]:
            return None
        columns = [np.frombuffer(one, np.int64) for one in self._columns.values()]
        head, body = columns[:2], columns[2:4]
        measures: dict[str, Any] = dict(zip(MEASURES, columns[4:]))
        return ConstantRuleSet.build(
            list(self.names.relations.identifiers),
            self.names.entities or (),
            (head[0], head[1]),
            (body[0], body[1]),
            **measures,
        )

    def _encode(self, rule: ParsedRule) -> tuple[tuple[int, int], tuple[int, int]]:
        """Turns the two atoms of a rule into codes and entities."""
        _, *terms = rule.head
        variables = [term for term in terms if isinstance(term, str)]
        if len(variables) != 1:
            raise DataError(
                "a rule with constants must have a variable and a constant in its head "
                f"(got {len(variables)} variables)"
            )
        variable = variables[0]
        head = self._step(rule.head, variable)
        if not rule.body:
            return head, (NO_BODY, ANY)
        if len(rule.body) > 1:
            raise DataError(
                "the body of a rule with constants must have at most one atom (got "
                f"{len(rule.body)})"
            )
        _, *terms = rule.body[0]
        if terms.count(variable) != 1:
            raise DataError(f"the body must have the variable {variable} once")
        body = self._step(rule.body[0], variable)
        if body[0] == head[0] and body[1] in (ANY, head[1]):
            raise DataError("the body is part of what the head says")
        return head, body

    def _step(self, atom: Atom, variable: str) -> tuple[int, int]:
        relation, first, second = atom
        is_back = first != variable
        other = first if is_back else second
        entity = other if isinstance(other, int) else ANY
        return 2 * self.names.relation(relation) + is_back, entity


def _check_sizes(support: int, body_size: int, pca_body_size: int) -> None:
    for size in (support, body_size, pca_body_size):
        if not UNKNOWN <= size < 2**31:
            raise DataError(f"a count must lie in -1 to {2**31 - 1} (got {size})")
    for part, whole in (
        (support, body_size),
        (support, pca_body_size),
        (pca_body_size, body_size),
    ):
        if 0 <= whole < part:
            raise DataError(f"{part} of {whole} entities cannot be")


@dataclass(frozen=True)
class ConstantWriter:
    r"""Writes rules with constants as lines of text.

    Args:
        rules (ConstantRuleSet): The rules.
        format (ConstantFormat): The format.
    """

    rules: ConstantRuleSet
    format: ConstantFormat

    def must_encode(self) -> bool:
        """Returns whether names must be encoded to be read again."""
        if self._can_be_read(is_encoded=False):
            return False
        if not self._can_be_read(is_encoded=True):
            raise ValueError(
                "'rules' must have entities and relations with distinct names, which "
                "are not empty, to be written as text"
            )
        return True

    def lines(self, is_encoded: bool) -> Iterator[str]:
        """Yields the line of each rule."""
        heads, head_of = self._atoms(self.rules.head_code, self.rules.head_entity)
        bodies, body_of = self._atoms(self.rules.body_code, self.rules.body_entity)
        head_texts, body_texts = (
            [self._text(*atom, self._name_of(is_encoded)) for atom in atoms]
            for atoms in (heads, bodies)
        )
        measures = [getattr(self.rules, name) for name in MEASURES]
        for begin in range(0, len(self.rules), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            columns = (
                column[part].tolist() for column in (head_of, body_of, *measures)
            )
            for head, body, *sizes in zip(*columns):
                yield self.format.line(head_texts[head], body_texts[body], (*sizes,))

    def _atoms(
        self, code: np.ndarray, entity: np.ndarray
    ) -> tuple[list[tuple[int, int, int]], Ids]:
        """Returns distinct atoms, and which of them each rule has.

        Next to code and entity, an atom knows which variable it is about.
        """
        place = self.rules.head_code & 1
        size = len(self.rules.entities) + 1
        keys = ((code.astype(np.int64) + 1) * size + entity + 1) * 2 + place
        distinct, of_rule = np.unique(keys, return_inverse=True)
        rest, place = np.divmod(distinct, 2)
        codes, entities = np.divmod(rest, size)
        rows = zip((codes - 1).tolist(), (entities - 1).tolist(), place.tolist())
        return list(rows), of_rule

    def _text(
        self, code: int, entity: int, place: int, name_of: Callable[[str], str]
    ) -> str:
        if code == NO_BODY:
            return ""
        variable, anything = self.format.variables[place], self.format.variables[2]
        other = anything if entity == ANY else name_of(self.rules.entities[entity])
        ends = (other, variable) if code & 1 else (variable, other)
        return self.format.atom(name_of(self.rules.relations[code >> 1]), *ends)

    def _can_be_read(self, is_encoded: bool) -> bool:
        relations = Names("relation", self.rules.relations)
        names = FileNames(relations, self.rules.entities, is_encoded)
        heads, _ = self._atoms(self.rules.head_code, self.rules.head_entity)
        bodies, _ = self._atoms(self.rules.body_code, self.rules.body_entity)
        return all(
            self._survives(*atom, names) for atom in dict.fromkeys([*heads, *bodies])
        )

    def _survives(self, code: int, entity: int, place: int, names: FileNames) -> bool:
        """Returns whether an atom is read as what was written."""
        if code == NO_BODY:
            return True
        text = self._text(code, entity, place, self._name_of(names.is_encoded))
        try:
            found = self.format.parse_atom(text, names)
            read = [(names.relation(relation), *terms) for relation, *terms in found]
        except DataError:
            return False
        variable, anything = self.format.variables[place], self.format.variables[2]
        other = anything if entity == ANY else entity
        ends = (other, variable) if code & 1 else (variable, other)
        return read == [(code >> 1, *ends)]

    def _name_of(self, is_encoded: bool) -> Callable[[str], str]:
        return quoted if is_encoded else str
