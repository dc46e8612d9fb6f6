"""The text formats of rules: reading and writing a line."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from kblrn_pyg.data import DataError
from kblrn_pyg.data.kale import parse_rule
from kblrn_pyg.rules.atoms import AnyburlAtoms, Atom, FileNames, ParsedRule
from kblrn_pyg.rules.constant_files import ConstantFormat
from kblrn_pyg.rules.ruleset import RuleSet
from kblrn_pyg.rules.text import atoms

# The largest count that is read; larger ones lose their last digits.
_MOST = 1 << 53

_AMIE_HEADER = (
    "Rule",
    "Head Coverage",
    "Std Confidence",
    "PCA Confidence",
    "Positive Examples",
    "Body size",
    "PCA Body size",
)


@dataclass(frozen=True)
class TextFormat:
    r"""A text format of rules.

    Args:
        parser (callable): Creates a function that parses a line with known names,
            and that returns :obj:`None` for a header.
        write (callable): Writes a path rule.
        header (tuple, optional): The lines before all rules. (default: :obj:`()`)
        has_estimates (bool, optional): Whether it contains measures, which may be
            estimates. (default: :obj:`True`)
        constants (ConstantFormat, optional): The syntax of rules with constants.
            (default: :obj:`None`, not supported)
    """

    parser: Callable[[FileNames], Callable[[str], ParsedRule | None]]
    write: Callable[[RuleSet, int], str]
    header: tuple[str, ...] = ()
    has_estimates: bool = True
    constants: ConstantFormat | None = None


_AMIE_VARIABLE = re.compile(r"\?\w+")


def _amie_parser(names: FileNames) -> Callable[[str], ParsedRule | None]:
    def parse(line: str) -> ParsedRule | None:
        rule, *numbers = (field.strip() for field in line.split("\t"))
        if rule == "Rule":
            return None
        body, arrow, head = rule.partition("=>")
        heads, atoms_found = _amie_atoms(head, names), _amie_atoms(body, names)
        if not arrow or heads is None or len(heads) != 1 or atoms_found is None:
            raise _not_amie(rule)
        given = ParsedRule(atoms_found, heads[0])
        if not atoms_found and not given.has_constants:
            raise _not_amie(rule)
        if len(numbers) < 6:
            return given
        coverage = _number(numbers[0])
        support, body_size, pca = (_count(numbers[i]) for i in (3, 4, 5))
        head_size = -1
        if coverage > 0:  # which may be NaN
            head_size = round(min(support / coverage, float(_MOST)))
        return ParsedRule(atoms_found, heads[0], support, head_size, body_size, pca)

    return parse


def _amie_atoms(text: str, names: FileNames) -> list[Atom] | None:
    """Splits at two or more spaces, as names may contain one."""
    words = [word for word in re.split(r"\s{2,}", text.strip()) if word]
    if len(words) % 3:
        return None
    triples = (words[i : i + 3] for i in range(0, len(words), 3))
    return [
        (r, names.term(x, _AMIE_VARIABLE), names.term(y, _AMIE_VARIABLE))
        for x, r, y in triples
    ]


def _anyburl_parser(names: FileNames) -> Callable[[str], ParsedRule | None]:
    read = AnyburlAtoms(names)

    def parse(line: str) -> ParsedRule:
        fields = line.split("\t")
        head, arrow, body = fields[-1].partition("<=")
        body = body.strip()
        atoms_found, heads = read(body) if body else [], read(head.strip())
        # A rule with constants may have no body.
        is_rule = bool(arrow) and len(heads) == 1 and bool(atoms_found or not body)
        if not is_rule:
            raise _not_anyburl(fields[-1])
        measures = {}
        if len(fields) == 4:
            predictions, correct = (_count(field) for field in fields[:2])
            measures = {"body_size": predictions, "support": correct}
        rule = ParsedRule(atoms_found, heads[0], **measures)
        if not body and not rule.has_constants:
            raise _not_anyburl(fields[-1])
        return rule

    return parse


def _not_anyburl(text: str) -> DataError:
    return DataError(f"not a rule: {text!r}, expected r(X,Y) <= a(X,A), b(A,Y)")


def _not_amie(text: str) -> DataError:
    return DataError(f"not a rule: {text!r}, expected ?a  r1  ?b   => ?a  r  ?b")


def _kale_parser(_: FileNames) -> Callable[[str], ParsedRule | None]:
    def parse(line: str) -> ParsedRule:
        body, head = parse_rule(line)
        for _, *terms in [*body, head]:
            for term in terms:
                if not re.fullmatch("[a-z]", term.strip()):
                    raise DataError(f"{term!r} is a constant, expected variables only")
        return ParsedRule(body, head)

    return parse


def _count(text: str) -> int:
    number = _number(text)
    if not -1 <= number <= _MOST:  # not a number is neither
        raise DataError(f"{text!r} is not a count")
    return int(number)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{text!r} is not a number") from None


def _named_atoms(
    rules: RuleSet, i: int, variables: dict[str, str]
) -> list[tuple[str, str, str]]:
    head = (int(rules.head[i]), "h", "t")
    return [
        (rules.relations[r], variables[x], variables[y])
        for r, x, y in [*atoms(rules, i), head]
    ]


def _write_amie(rules: RuleSet, i: int) -> str:
    *body, head = _named_atoms(rules, i, {"h": "?a", "t": "?b", "x": "?c", "y": "?d"})
    text = "  ".join(f"{x}  {r}  {y}" for r, x, y in body)
    relation, x, y = head
    measures = (rules.head_coverage[i], rules.confidence[i], rules.pca_confidence[i])
    sizes = (rules.support, rules.body_size, rules.pca_body_size)
    numbers = [*map(_fraction, measures), *(str(size[i]) for size in sizes)]
    return "\t".join([f"{text}   => {x}  {relation}  {y}", *numbers])


def _fraction(value: float) -> str:
    return f"{value:.9f}".rstrip("0").rstrip(".")


def _write_anyburl(rules: RuleSet, i: int) -> str:
    *body, head = _named_atoms(rules, i, {"h": "X", "t": "Y", "x": "A", "y": "B"})
    text = [f"{r}({x},{y})" for r, x, y in [head, *body]]
    confidence = f"{rules.confidence[i]:.9f}"
    numbers = [str(rules.body_size[i]), str(rules.support[i]), confidence]
    return "\t".join([*numbers, f"{text[0]} <= {', '.join(text[1:])}"])


def _write_kale(rules: RuleSet, i: int) -> str:
    names = {"h": "x", "x": "y", "y": "w", "t": "z" if rules.num_steps[i] > 1 else "y"}
    if rules.parallel[i]:
        names["t"] = "y"
    *body, head = _named_atoms(rules, i, names)
    text = [f"{r}({x},{y})" for r, x, y in [*body, head]]
    return f"{'&&'.join(text[:-1])}==>{text[-1]}"


class _AmieConstants:
    """Rules with constants as AMIE prints them; they have no head coverage."""

    variables = ("?a", "?b", "?c")

    def atom(self, relation: str, first: str, second: str) -> str:
        return f"{first}  {relation}  {second}"

    def line(self, head: str, body: str, measures: tuple[int, ...]) -> str:
        support, *sizes = measures
        fractions = (_fraction(_ratio(support, size)) for size in sizes)
        return "\t".join(
            [f"{body}   => {head}", "nan", *fractions, *map(str, measures)]
        )

    def parse_atom(self, text: str, names: FileNames) -> list[Atom]:
        return (_amie_atoms(text, names) or []) if _stays_in_line(text) else []


class _AnyburlConstants:
    """Rules with constants as AnyBURL prints them."""

    variables = ("X", "Y", "A")

    def atom(self, relation: str, first: str, second: str) -> str:
        return f"{relation}({first},{second})"

    def line(self, head: str, body: str, measures: tuple[int, ...]) -> str:
        support, body_size, _ = measures
        confidence = f"{_ratio(support, body_size):.9f}"
        return f"{body_size}\t{support}\t{confidence}\t{head} <= {body}"

    def parse_atom(self, text: str, names: FileNames) -> list[Atom]:
        return AnyburlAtoms(names)(text.strip()) if _stays_in_line(text) else []


def _stays_in_line(text: str) -> bool:
    """Returns whether nothing in a text ends a line, a column or a side of a rule."""
    is_split = any(separator in text for separator in ("\t", "\n", "<=", "=>"))
    return not is_split and not text.startswith(("# ", "\r", "\ufeff"))


def _ratio(part: int, whole: int) -> float:
    return part / whole if part >= 0 and whole > 0 else math.nan


FORMATS = {
    "amie": TextFormat(
        _amie_parser,
        _write_amie,
        header=("\t".join(_AMIE_HEADER),),
        constants=_AmieConstants(),
    ),
    "anyburl": TextFormat(
        _anyburl_parser, _write_anyburl, constants=_AnyburlConstants()
    ),
    "kale": TextFormat(_kale_parser, _write_kale, has_estimates=False),
}
