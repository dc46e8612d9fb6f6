"""Triples as N-Triples, with their probabilities."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

# What is said beside a triple: nothing; its probability about a triple term, as RDF 1.2
# (formerly RDF-star) has it; or about a statement, as RDF 1.1 reifies it.
STATEMENTS = ("plain", "star", "reified")

_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`\x00-\x20]*")
_BLANK = re.compile(r"_:[A-Za-z0-9_]+")

NamedTriple = tuple[str, str, str]


def ntriples(
    triples: Iterable[tuple[NamedTriple, float | None]],
    statement: str = "plain",
    base: str = "urn:kblrn:",
) -> Iterator[str]:
    r"""Returns the lines of an N-Triples file.

    Names that are IRIs stay; others are percent-encoded and appended to :obj:`base`
    and :obj:`entity:`, or :obj:`relation:`.

    Args:
        triples (iterable): The names of each triple, and its probability.
        statement (str, optional): :obj:`"plain"` writes only triples; :obj:`"star"`
            states the probability of a triple term, without asserting the triple;
            :obj:`"reified"` uses an :obj:`rdf:Statement` for this.
            (default: :obj:`"plain"`)
        base (str, optional): The prefix of names that are not IRIs.
            (default: :obj:`"urn:kblrn:"`)

    Example:
        >>> list(ntriples([(("Ada", "http://x/knows", "Ben B."), 0.5)]))
        ['<urn:kblrn:entity:Ada> <http://x/knows> <urn:kblrn:entity:Ben%20B.> .\n']
    """
    if statement not in STATEMENTS:
        names = ", ".join(STATEMENTS)
        raise ValueError(f"'statement' must be one of {names} (got {statement!r})")
    for i, ((head, relation, tail), probability) in enumerate(triples):
        ends = (_node(name, f"{base}entity:") for name in (head, tail))
        subject, object_ = ends
        predicate = _node(relation, f"{base}relation:")
        if statement == "plain":
            yield f"{subject} {predicate} {object_} .\n"
            continue
        node = f"_:s{i}"
        if statement == "star":
            yield f"{node} <{_RDF}reifies> <<( {subject} {predicate} {object_} )>> .\n"
        else:
            yield f"{node} <{_RDF}type> <{_RDF}Statement> .\n"
            parts = zip(
                ("subject", "predicate", "object"), (subject, predicate, object_)
            )
            yield from (f"{node} <{_RDF}{name}> {one} .\n" for name, one in parts)
        if probability is not None:
            value = f'"{probability!r}"^^<{_DOUBLE}>'
            yield f"{node} <{base}probability> {value} .\n"


def _node(name: str, base: str) -> str:
    """Returns a name as an IRI in brackets, or as the blank node that it is."""
    if _BLANK.fullmatch(name):
        return name
    if name.startswith("<") and name.endswith(">") and _IRI.fullmatch(name[1:-1]):
        return name
    if _IRI.fullmatch(name):
        return f"<{name}>"
    return f"<{base}{quote(name, safe='', errors='surrogatepass')}>"
