"""Triples and numbers from RDF files, read as a stream."""

import math
from array import array
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from kblrn_pyg.data.dates import decimal_year
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike, ending, open_source
from kblrn_pyg.data.triples import Index, NamedTriples, distinct_triples
from kblrn_pyg.data.values import NamedValues, average_repeated
from kblrn_pyg.data.xml_entities import without_nested_entities

_XSD = "http://www.w3.org/2001/XMLSchema#"
_FREEBASE = "http://rdf.freebase.com/ns/type."
_NUMBERS = (
    "integer decimal double float int long short byte nonNegativeInteger "
    "positiveInteger nonPositiveInteger negativeInteger unsignedInt unsignedLong "
    "unsignedShort unsignedByte"
).split()
_DATES = ("gYear", "gYearMonth", "date", "dateTime")

_TICK = 1 << 16

# The formats of pyoxigraph by the endings of files, with what errors call them.
FORMATS = {
    ".nt": ("N_TRIPLES", "N-Triples"),
    ".nq": ("N_QUADS", "N-Quads"),
    ".ttl": ("TURTLE", "Turtle"),
    ".rdf": ("RDF_XML", "RDF/XML"),
    ".owl": ("RDF_XML", "RDF/XML"),
    ".xml": ("RDF_XML", "RDF/XML"),
}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


# How to turn a literal of each numerical type into a number.
CONVERTERS = {
    **{_XSD + name: _number for name in _NUMBERS},
    **{_XSD + name: decimal_year for name in _DATES},
    _FREEBASE + "int": _number,
    _FREEBASE + "float": _number,
    _FREEBASE + "datetime": decimal_year,
}


@dataclass(frozen=True)
class RDFContent:
    r"""The content of an RDF file.

    Args:
        triples (NamedTriples): The statements whose object is an entity.
        values (NamedValues): The statements whose object is a number or date.
        num_other_literals (int): The number of skipped statements, whose object is
            another literal, a number that is not finite, or a triple.
    """

    triples: NamedTriples
    values: NamedValues
    num_other_literals: int


def is_rdf(path: PathLike) -> bool:
    """Returns whether a file is RDF, by its ending."""
    return ending(path) in FORMATS


def read_rdf(
    path: PathLike,
    entities: Container[str] | None = None,
    progress: bool = False,
    average: bool = True,
) -> RDFContent:
    r"""Reads an RDF file as a stream: N-Triples (:obj:`.nt`), N-Quads (:obj:`.nq`,
    whose graphs are joined), Turtle (:obj:`.ttl`) or RDF/XML (:obj:`.rdf`,
    :obj:`.owl`, :obj:`.xml`), each optionally :obj:`.gz`. Files with other endings
    are read as N-Triples.

    Literals of the numeric and date types of XML Schema, and of Freebase's own
    :obj:`type.int`, :obj:`type.float` and :obj:`type.datetime`, become numerical
    values, dates as decimal years (see :meth:`decimal_year`). Other literals are
    counted and skipped. Memory grows with the amount of data that is kept; pass
    :obj:`entities` to keep only a subset of a large dump, as the paper did with 1.9
    billion triples of Freebase.

    IRIs are not checked beyond the grammar, because public dumps contain many that
    a strict check refuses.

    Args:
        path (str): The file.
        entities (container, optional): The IRIs of the entities to keep: a
            statement stays if its subject, and its object if that is not a
            literal, are among them. (default: :obj:`None`, all)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        average (bool, optional): If set to :obj:`False`, several values of an
            entity and an attribute are not averaged yet.
            (default: :obj:`True`)
    """
    num_statements = 0
    with open_statements(path, progress) as (rdf, quads, tick):
        collector = _Collector(rdf, entities)
        while count := collector.take(quads, _TICK):
            num_statements += count
            tick()
    if num_statements == 0:
        message = f"the file is empty, expected {_format(path)[1]}"
        raise DataError(message, path, 1)
    return collector.result(average)


@contextmanager
def open_statements(
    path: PathLike, progress: bool = False
) -> Iterator[tuple[Any, Any, Callable[[], None]]]:
    """Opens an RDF file: yields pyoxigraph, the statements, and a function that
    updates the progress bar. Errors of the syntax name the line.
    """
    try:
        import pyoxigraph
    except ImportError:
        raise ImportError(
            "reading RDF needs pyoxigraph: pip install 'kblrn_pyg[rdf]'"
        ) from None
    path = Path(path)
    form, title = _format(path)
    try:
        with open_source(path, progress) as (file, tick):
            if form == "RDF_XML":
                file = without_nested_entities(path, file)
            quads = pyoxigraph.parse(
                input=file, format=getattr(pyoxigraph.RdfFormat, form), lenient=True
            )
            yield pyoxigraph, quads, tick
    except SyntaxError as error:
        message = f"{error.msg.rpartition(': ')[2]}, expected {title}"
        raise DataError(message, path, error.lineno) from None


def _format(path: PathLike) -> tuple[str, str]:
    return FORMATS.get(ending(path), FORMATS[".nt"])


class _Collector:
    """Collects statements as ids, in a single pass, with as little work as
    possible.

    The parser's node objects hash faster than their texts can be made, so
    they are the keys; texts are made once for each entity, at the end.
    """

    def __init__(self, rdf: Any, entities: Container[str] | None) -> None:
        self.literal, self.triple = rdf.Literal, rdf.Triple
        self.entities = entities
        self.entity_id, self.relation_id, self.attribute_id = Index(), Index(), Index()
        self.triple_ids = [np.empty(0, np.int64)]
        self.value_ids = array("q")
        self.values = array("d")
        self.num_other_literals = 0

    def take(self, quads: Any, limit: int) -> int:
        """Reads up to :obj:`limit` statements and returns how many there were."""
        literal, triple, entities = self.literal, self.triple, self.entities
        entity_id, relation_id = self.entity_id, self.relation_id
        ids: list[int] = []
        count = 0
        for quad in islice(quads, limit):
            count += 1
            subject, object = quad.subject, quad.object
            is_literal = type(object) is literal
            if type(object) is triple or type(subject) is triple:
                self.num_other_literals += 1
                continue
            if entities is not None and not (
                node_text(subject) in entities
                and (is_literal or node_text(object) in entities)
            ):
                continue
            if is_literal:
                self._take_literal(subject, quad.predicate, object)
            else:
                ids += (
                    entity_id[subject],
                    relation_id[quad.predicate],
                    entity_id[object],
                )
        self.triple_ids.append(np.array(ids, np.int64))
        return count

    def _take_literal(self, subject: Any, predicate: Any, literal: Any) -> None:
        convert = CONVERTERS.get(literal.datatype.value)
        value = math.nan if convert is None else convert(literal.value)
        if not math.isfinite(value):
            self.num_other_literals += 1
            return
        self.value_ids.extend((self.entity_id[subject], self.attribute_id[predicate]))
        self.values.append(value)

    def result(self, average: bool) -> RDFContent:
        names = [node_text(node) for node in self.entity_id]
        head, rel, tail = np.concatenate(self.triple_ids).reshape(-1, 3).T
        # Entities that have triples are numbered anew; others have numbers only.
        is_used = np.zeros(len(names), dtype=bool)
        is_used[head] = is_used[tail] = True
        new_id = np.cumsum(is_used) - 1
        entities = list(compress(names, is_used))
        relations = [node.value for node in self.relation_id]
        attributes = [node.value for node in self.attribute_id]
        entity, attribute = np.array(self.value_ids, np.int64).reshape(-1, 2).T
        values = NamedValues(
            names, attributes, entity, attribute, np.array(self.values, np.float64)
        )
        return RDFContent(
            distinct_triples(entities, relations, new_id[head], rel, new_id[tail]),
            average_repeated(values) if average else values,
            self.num_other_literals,
        )


read_ntriples = read_rdf


def node_text(node: Any) -> str:
    """The IRI of a named node, and ``_:id`` for a blank one."""
    text = str(node)
    return text[1:-1] if text[0] == "<" else text
