"""Logical rules in the format of KALE: reading them, and inferring facts."""

import re
from collections import defaultdict

from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.kb import flat_triples
from kblrn_pyg.data.names import Vocabulary
from kblrn_pyg.data.rows import PathLike

Atom = tuple[str, str, str]  # relation, first variable, second variable
Triple = tuple[int, int, int]

_ATOM = re.compile(r"(.+)\(\s*(\w+)\s*,\s*(\w+)\s*\)")


def read_rule_lines(path: PathLike) -> list[str]:
    """Reads the lines of a rule file that are not blank."""
    with open(path, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def parse_rule(line: str) -> tuple[list[Atom], Atom]:
    r"""Parses a rule :obj:`a(x,y)&&b(y,z)==>r(x,z)` into its body and its head.

    Example:
        >>> parse_rule("wife(x,y)==>husband(y,x)")
        ([('wife', 'x', 'y')], ('husband', 'y', 'x'))
    """
    body, arrow, head = line.partition("==>")
    matches = [_ATOM.fullmatch(text.strip()) for text in (*body.split("&&"), head)]
    atoms = [(m[1], m[2], m[3]) for m in matches if m is not None]
    if not arrow or len(atoms) < len(matches):
        raise DataError(f"not a rule: {line!r}, expected a(x,y)&&b(y,z)==>r(x,z)")
    return atoms[:-1], atoms[-1]


def infer(data: HeteroData, rule_lines: list[str]) -> set[Triple]:
    """Returns the triples that rules infer from the known ones.

    The rules are applied until nothing new follows; the known triples
    themselves are left out.
    """
    resolve = Vocabulary.of(data).relations.resolve
    rules = [
        ([(resolve(r), x, y) for r, x, y in body], (resolve(head[0]), *head[1:]))
        for body, head in map(parse_rule, rule_lines)
    ]
    known = set(zip(*(index.tolist() for index in flat_triples(data))))
    facts = set(known)
    while True:
        pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for head, relation, tail in facts:
            pairs[relation].append((head, tail))
        new = {
            (binding[x], relation, binding[y])
            for body, (relation, x, y) in rules
            for binding in _bindings(body, pairs)
        } - facts
        if not new:
            return facts - known
        facts |= new


def _bindings(
    body: list[tuple[int, str, str]], pairs: dict[int, list[tuple[int, int]]]
) -> list[dict[str, int]]:
    """Returns all assignments of entities to the variables of a body, atom by
    atom."""
    bindings: list[dict[str, int]] = [{}]
    for relation, x, y in body:
        # Join on the variables that are bound already.
        joined = [v for v in (x, y) if v in bindings[0]] if bindings else []
        matching: dict[tuple[int, ...], list[dict[str, int]]] = defaultdict(list)
        for pair in pairs[relation]:
            row = dict(zip((x, y), pair))
            matching[tuple(row[v] for v in joined)].append(row)
        bindings = [
            {**binding, **row}
            for binding in bindings
            for row in matching[tuple(binding[v] for v in joined)]
        ]
    return bindings
