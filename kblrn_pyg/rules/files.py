"""Files of rules: the text formats of AMIE, AnyBURL and KALE, and our own."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kblrn_pyg.data import DataError, Names
from kblrn_pyg.data.kale import parse_rule
from kblrn_pyg.data.rows import PathLike, open_source
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.rules.ruleset import MEASURES, RuleSet
from kblrn_pyg.rules.semantics import AMIE, Semantics
from kblrn_pyg.rules.text import atoms

Atom = tuple[str, str, str]  # relation, first variable, second variable

_COMMENT = "# "
_SEMANTICS = "# semantics: "
_ESTIMATED = "# the body sizes of the next rule are estimates"

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
class ParsedRule:
    """A rule as a file has it, with the measures that it states."""

    body: list[Atom]
    head: Atom
    support: int = -1
    head_size: int = -1
    body_size: int = -1
    pca_body_size: int = -1


@dataclass(frozen=True)
class Refused:
    """A line that was skipped, and why."""

    line: int
    reason: str


def read_rules(
    source: PathLike | Sequence[str],
    relations: Sequence[str],
    format: str | None = None,
    strict: bool = True,
) -> tuple[RuleSet, list[Refused]]:
    r"""Reads rules from a file of any format.

    Args:
        source (str or sequence): The file, or the lines of one. A text file may
            be compressed (:obj:`.gz`); :obj:`.pt` is what
            :meth:`RuleSet.save` writes.
        relations (sequence): The names of the relations that there are. A rule
            in a text file may name a relation by its end, if it is the only
            one that ends so.
        format (str, optional): The format of the text: :obj:`"amie"` (the table
            that AMIE prints), :obj:`"anyburl"` (:obj:`predictions, correct,
            confidence, rule`) or :obj:`"kale"`
            (:obj:`a(x,y)&&b(y,z)==>r(x,z)`). Lines that begin with :obj:`"# "`
            are comments.
            (default: :obj:`None`, determined by the first rule)
        strict (bool, optional): If set to :obj:`False`, a rule that names an
            unknown relation, or whose shape is not supported, is skipped and
            listed. (default: :obj:`True`)

    Returns:
        The rules, and the lines that were skipped.
    """
    path = source if isinstance(source, (str, os.PathLike)) else "<lines>"
    if Path(path).suffix == ".pt":
        rules = RuleSet.load(path)
        try:
            rules.check_relations(relations)
        except DataError as error:
            raise DataError(str(error), path) from None
        return rules, []
    lines = [(number, line) for number, line in _lines(source) if line]
    semantics = _semantics(lines, path)
    estimated = {
        number for (_, line), (number, _) in zip(lines, lines[1:]) if line == _ESTIMATED
    }
    lines = [pair for pair in lines if not pair[1].startswith(_COMMENT)]
    if not lines:
        raise DataError("the file is empty, expected rules", path, 1)
    format = _guess_format(lines[0][1]) if format is None else format
    if format not in _PARSERS:
        raise ValueError(f"'format' must be one of {tuple(_PARSERS)} (got {format!r})")
    names = Names("relation", relations)
    parsed, estimates, refused = [], [], []
    for number, line in lines:
        try:
            rule = _PARSERS[format](line)
            if rule is not None:
                parsed.append((_encode(rule, names, semantics), rule))
                estimates.append(number in estimated)
        except DataError as error:
            if strict:
                raise DataError(str(error), path, number) from None
            refused.append(Refused(number, str(error)))
    rules = RuleSet.build(
        relations,
        head=[head for (head, _, _), _ in parsed],
        steps=[steps for (_, steps, _), _ in parsed],
        parallel=[parallel for (_, _, parallel), _ in parsed],
        semantics=semantics,
        estimated=estimates,
        **{name: [getattr(rule, name) for _, rule in parsed] for name in MEASURES},
    )
    return rules, refused


def write_rules(rules: RuleSet, path: PathLike, format: str = "amie") -> None:
    r"""Writes rules to a text file.

    Semantics other than the default, and estimates, are noted in comments, which
    :meth:`read_rules` takes back.

    Args:
        rules (RuleSet): The rules.
        path (str): The file.
        format (str, optional): See :meth:`read_rules`.
            (default: :obj:`"amie"`)
    """
    if format not in _WRITERS:
        raise ValueError(f"'format' must be one of {tuple(_WRITERS)} (got {format!r})")
    write = _WRITERS[format]
    header = ["\t".join(_AMIE_HEADER)] if format == "amie" else []
    if rules.semantics != AMIE:
        header = [f"{_SEMANTICS}{rules.semantics}", *header]
    lines = header
    for i in range(len(rules)):
        lines += [_ESTIMATED] if rules.estimated[i] and format != "kale" else []
        lines.append(write(rules, i))
    write_text(path, "".join(line + "\n" for line in lines))


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


def _semantics(lines: list[tuple[int, str]], path: PathLike) -> Semantics:
    """Returns the semantics that a comment states."""
    found = None
    for number, line in lines:
        if not line.startswith(_SEMANTICS):
            continue
        try:
            stated = Semantics.parse(line.removeprefix(_SEMANTICS))
        except DataError as error:
            raise DataError(str(error), path, number) from None
        if found not in (None, stated):
            raise DataError(
                "the semantics differ from those stated above", path, number
            )
        found = stated
    return found or AMIE


def _guess_format(line: str) -> str:
    if line.startswith("Rule\t") or re.search(r"\s=>\s", line):
        return "amie"
    return "anyburl" if "<=" in line else "kale"


def _encode(
    rule: ParsedRule, names: Names, semantics: Semantics
) -> tuple[int, list[int], bool]:
    """Turns atoms into a path from the head's first variable to its second."""
    relation, h, t = rule.head
    head = names.resolve(relation)
    body = [(names.resolve(name), x, y) for name, x, y in rule.body]
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
    while left:
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


def _parse_amie(line: str) -> ParsedRule | None:
    rule, *numbers = (field.strip() for field in line.split("\t"))
    if rule == "Rule":
        return None
    body, arrow, head = rule.partition("=>")
    words, ends = _amie_words(body), _amie_words(head)
    if not arrow or len(words) % 3 or len(ends) != 3 or not words:
        raise DataError(f"not a rule: {rule!r}, expected ?a  r1  ?b   => ?a  r  ?b")
    triples = [words[i : i + 3] for i in range(0, len(words), 3)]
    x, relation, y = ends
    parsed = [(r, a, b) for a, r, b in triples]
    _refuse_constants([*parsed, (relation, x, y)], r"\?\w+")
    if len(numbers) < 6:
        return ParsedRule(parsed, (relation, x, y))
    coverage = _number(numbers[0])
    support, body_size, pca = (_count(numbers[i]) for i in (3, 4, 5))
    head_size = -1
    if coverage > 0:  # which may be NaN
        head_size = round(min(support / coverage, float(_MOST)))
    return ParsedRule(parsed, (relation, x, y), support, head_size, body_size, pca)


def _amie_words(text: str) -> list[str]:
    """Splits at two or more spaces, as names may contain one."""
    return [word for word in re.split(r"\s{2,}", text.strip()) if word]


_ATOM = re.compile(r"(.+?)\(\s*([^(),]+?)\s*,\s*([^(),]+?)\s*\)(?:, *|$)")


def _anyburl_atoms(text: str) -> list[Atom]:
    """Returns the atoms of a text, or none if it contains anything else."""
    found = list(_ATOM.finditer(text))
    is_all = bool(found) and found[-1].end() == len(text)
    return [(m[1], m[2], m[3]) for m in found] if is_all else []


def _parse_anyburl(line: str) -> ParsedRule:
    fields = line.split("\t")
    head, arrow, body = fields[-1].partition("<=")
    atoms_found, heads = _anyburl_atoms(body.strip()), _anyburl_atoms(head.strip())
    if not arrow or len(heads) != 1 or not atoms_found:
        raise DataError(
            f"not a rule: {fields[-1]!r}, expected r(X,Y) <= a(X,A), b(A,Y)"
        )
    _refuse_constants([*heads, *atoms_found], "[A-Z]")
    measures = {}
    if len(fields) == 4:
        predictions, correct = (_count(field) for field in fields[:2])
        measures = {"body_size": predictions, "support": correct}
    return ParsedRule(atoms_found, heads[0], **measures)


def _parse_kale(line: str) -> ParsedRule:
    body, head = parse_rule(line)
    _refuse_constants([*body, head], "[a-z]")
    return ParsedRule(body, head)


def _refuse_constants(found: Iterable[Atom], variable: str) -> None:
    for _, *terms in found:
        for term in terms:
            if not re.fullmatch(variable, term.strip()):
                raise DataError(f"{term!r} is a constant, expected variables only")


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


_PARSERS: dict[str, Callable[[str], ParsedRule | None]] = {
    "amie": _parse_amie,
    "anyburl": _parse_anyburl,
    "kale": _parse_kale,
}


def _named_atoms(rules: RuleSet, i: int, variables: dict[str, str]) -> list[Atom]:
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
    numbers = [f"{value:.9f}".rstrip("0").rstrip(".") for value in measures]
    sizes = (rules.support, rules.body_size, rules.pca_body_size)
    numbers += [str(size[i]) for size in sizes]
    return "\t".join([f"{text}   => {x}  {relation}  {y}", *numbers])


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


_WRITERS: dict[str, Callable[[RuleSet, int], str]] = {
    "amie": _write_amie,
    "anyburl": _write_anyburl,
    "kale": _write_kale,
}
