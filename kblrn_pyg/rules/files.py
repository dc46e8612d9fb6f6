"""Rule files: the text formats of AMIE, AnyBURL and KALE, and our own."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kblrn_pyg.data import DataError, Names
from kblrn_pyg.data.rows import PathLike, open_source
from kblrn_pyg.data.whole import whole_file
from kblrn_pyg.rules.atoms import ENCODED_NAMES, FileNames, ParsedRule, quoted
from kblrn_pyg.rules.building import MEASURES
from kblrn_pyg.rules.constant_files import ConstantColumns, ConstantWriter
from kblrn_pyg.rules.formats import FORMATS, TextFormat
from kblrn_pyg.rules.ruleset import RuleSet
from kblrn_pyg.rules.semantics import AMIE, Semantics

_COMMENT = "# "
_SEMANTICS = "# semantics: "
_ESTIMATED = "# the body sizes of the next rule are estimates"


@dataclass(frozen=True)
class Refused:
    """A skipped line and the reason."""

    line: int
    reason: str


def read_rules(
    source: PathLike | Sequence[str],
    relations: Sequence[str],
    format: str | None = None,
    strict: bool = True,
    entities: Sequence[str] | None = None,
) -> tuple[RuleSet, list[Refused]]:
    r"""Reads rules from a file of any format.

    Args:
        source (str or sequence): The file, or the lines of one. A text file may
            be compressed (:obj:`.gz`); :obj:`.pt` is what
            :meth:`RuleSet.save` writes.
        relations (sequence): The names of all relations. A rule in a text file may
            refer to a relation by the end of its name, if only one relation ends
            this way.
        format (str, optional): The format of the text: :obj:`"amie"` (the table
            that AMIE prints), :obj:`"anyburl"` (:obj:`predictions, correct,
            confidence, rule`) or :obj:`"kale"`
            (:obj:`a(x,y)&&b(y,z)==>r(x,z)`). Lines that begin with :obj:`"# "`
            are comments.
            (default: :obj:`None`, determined by the first rule)
        strict (bool, optional): If set to :obj:`False`, a rule that names an
            unknown relation or entity, or whose shape is not supported, is skipped
            and listed. (default: :obj:`True`)
        entities (sequence, optional): The identifiers of all entities. Without
            them, rules with constants in a text file are refused.
            (default: :obj:`None`)

    Returns:
        The rules, and the lines that were skipped.
    """
    path = source if isinstance(source, (str, os.PathLike)) else "<lines>"
    if Path(path).suffix == ".pt":
        return _load(path, relations, entities), []
    reader = _Reader(path, Names("relation", relations), entities, format, strict)
    for number, line in _lines(source):
        if line:
            reader.add(number, line)
    return reader.rules()


def write_rules(rules: RuleSet, path: PathLike, format: str = "amie") -> None:
    r"""Writes rules to a text file.

    Semantics other than the default, and estimates, are noted in comments, which
    :meth:`read_rules` understands. Names in rules with constants are
    percent-encoded if they could not be read back otherwise, which is also noted in
    a comment.

    Args:
        rules (RuleSet): The rules.
        path (str): The file.
        format (str, optional): See :meth:`read_rules`; :obj:`"kale"` does not
            support rules with constants. (default: :obj:`"amie"`)
    """
    chosen = _format(format)
    if rules.constants and chosen.constants is None:
        raise ValueError(
            "'format' must be amie or anyburl to write rules with constants (got "
            f"{format!r})"
        )
    if rules.constants and rules.constants.speaks_of_numbers:
        raise ValueError(
            "'rules' must have no intervals of numbers to be written as text, which "
            "has no words for them: use 'RuleSet.save'"
        )
    with whole_file(path, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in _written(rules, chosen))


def _written(rules: RuleSet, format: TextFormat) -> Iterator[str]:
    """Yields the lines of a file."""
    writer, is_encoded = None, False
    if rules.constants and format.constants is not None:
        writer = ConstantWriter(rules.constants, format.constants)
        is_encoded = writer.must_encode()
    if rules.semantics != AMIE:
        yield f"{_SEMANTICS}{rules.semantics}"
    if is_encoded:
        yield ENCODED_NAMES
        rules = replace(
            rules, relations=[*map(quoted, rules.relations)], constants=None
        )
    yield from format.header
    for i in range(len(rules)):
        if rules.estimated[i] and format.has_estimates:
            yield _ESTIMATED
        yield format.write(rules, i)
    if writer is not None:
        yield from writer.lines(is_encoded)


def _load(
    path: PathLike, relations: Sequence[str], entities: Sequence[str] | None
) -> RuleSet:
    rules = RuleSet.load(path)
    try:
        rules.check_relations(relations)
        if rules.constants is not None and entities is not None:
            rules.constants.check_names(relations, entities)
    except DataError as error:
        raise DataError(str(error), path) from None
    return rules


def _format(name: str) -> TextFormat:
    if name not in FORMATS:
        raise ValueError(f"'format' must be one of {tuple(FORMATS)} (got {name!r})")
    return FORMATS[name]


class _Reader:
    """Reads a text line by line, and keeps only path rules as objects."""

    def __init__(
        self,
        path: PathLike,
        relations: Names,
        entities: Sequence[str] | None,
        format: str | None,
        strict: bool,
    ) -> None:
        self.path, self.strict = path, strict
        self.names = FileNames(relations, entities)
        self.format = None if format is None else _format(format)
        self.parse: Callable[[str], ParsedRule | None] | None = None
        self.paths: list[tuple[int, ParsedRule, bool]] = []
        self.constants = ConstantColumns(self.names)
        self.refused: list[Refused] = []
        self.semantics: Semantics | None = None
        self.is_estimate = False

    def add(self, number: int, line: str) -> None:
        """Takes a line that is not empty."""
        if line.startswith(_COMMENT):
            self._note(number, line)
            return
        if self.parse is None:
            self.format = self.format or FORMATS[_guess_format(line)]
            self.parse = self.format.parser(self.names)
        is_estimate, self.is_estimate = self.is_estimate, False
        try:
            rule = self.parse(line)
            if rule is not None and rule.has_constants:
                self.constants.add(rule)
            elif rule is not None:
                self.paths.append((number, rule, is_estimate))
        except DataError as error:
            self._refuse(number, error)

    def rules(self) -> tuple[RuleSet, list[Refused]]:
        """Returns all rules, and the lines that were skipped."""
        if self.parse is None:
            raise DataError("the file is empty, expected rules", self.path, 1)
        semantics = self.semantics or AMIE
        found = []
        for number, rule, is_estimate in self.paths:
            try:
                found.append((_encode(rule, self.names, semantics), rule, is_estimate))
            except DataError as error:
                self._refuse(number, error)
        rules = RuleSet.build(
            self.names.relations.identifiers,
            head=[head for (head, _, _), *_ in found],
            steps=[steps for (_, steps, _), *_ in found],
            parallel=[parallel for (_, _, parallel), *_ in found],
            semantics=semantics,
            estimated=[is_estimate for *_, is_estimate in found],
            **{
                name: [getattr(rule, name) for _, rule, _ in found] for name in MEASURES
            },
        )
        refused = sorted(self.refused, key=lambda one: one.line)
        return rules.with_constants(self.constants.rules()), refused

    def _note(self, number: int, line: str) -> None:
        """Parses a comment, which may contain information about rules."""
        self.is_estimate = line == _ESTIMATED
        if line == ENCODED_NAMES:
            if self.parse is not None:
                raise DataError("must stand before all rules", self.path, number)
            self.names.is_encoded = True
        if not line.startswith(_SEMANTICS):
            return
        try:
            stated = Semantics.parse(line.removeprefix(_SEMANTICS))
        except DataError as error:
            raise DataError(str(error), self.path, number) from None
        if self.semantics not in (None, stated):
            raise DataError(
                "the semantics differ from those stated above", self.path, number
            )
        self.semantics = stated

    def _refuse(self, number: int, error: DataError) -> None:
        if self.strict:
            raise DataError(str(error), self.path, number) from None
        self.refused.append(Refused(number, str(error)))


def _lines(source: PathLike | Sequence[str]) -> Iterator[tuple[int, str]]:
    if not isinstance(source, (str, os.PathLike)):
        yield from ((number, line.strip()) for number, line in enumerate(source, 1))
        return
    with open_source(Path(source)) as (file, _):
        for number, raw in enumerate(file, 1):
            try:
                yield number, raw.decode().strip("\r\n \ufeff")
            except UnicodeDecodeError:
                raise DataError("is not UTF-8 text", source, number) from None


def _guess_format(line: str) -> str:
    if line.startswith("Rule\t") or re.search(r"\s=>\s", line):
        return "amie"
    return "anyburl" if "<=" in line else "kale"


def _encode(
    rule: ParsedRule, names: FileNames, semantics: Semantics
) -> tuple[int, list[int], bool]:
    """Turns atoms into a path from the head's first variable to its second."""
    relation, h, t = rule.head
    head = names.relation(relation)
    body = [(names.relation(name), x, y) for name, x, y in rule.body]
    if h == t:
        raise DataError(f"the head {relation}({h}, {t}) has one variable, expected two")
    for name, x, y in rule.body:
        if x == y:
            raise DataError(f"{name}({x}, {y}) has one variable, expected two")
    if not semantics.head_in_body and head in [name for name, _, _ in body]:
        raise DataError(f"the body contains {relation}, but head_in_body=False")
    if len(body) > 1 and all({x, y} == {h, t} for _, x, y in body):
        codes = [2 * a + (x != h) for a, x, y in body]
        if len(codes) > 2 or codes[0] == codes[1]:
            raise DataError("a parallel body has two different atoms")
        if 2 * head in codes:
            raise DataError("the body contains the head")
        return head, sorted(codes), True
    codes, at, left = [], h, list(body)
    while left and len(codes) < 3:  # more are refused below
        step = next((atom for atom in left if at in atom[1:]), None)
        if step is None or (at == t):
            raise DataError(f"the body is not a path from {h} to {t}")
        left.remove(step)
        a, x, y = step
        codes.append(2 * a + (x != at))
        at = y if x == at else x
    if at != t or len(codes) > 2:
        raise DataError(f"the body is not a path of one or two atoms from {h} to {t}")
    if codes == [2 * head]:
        raise DataError("the body is the head")
    return head, codes, False
