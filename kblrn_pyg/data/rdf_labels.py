"""Names to display, from the labels in RDF files."""

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rdf import node_text, open_statements
from kblrn_pyg.data.rows import PathLike

# The predicates that name things.
PREDICATES = (
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://schema.org/name",
    "https://schema.org/name",
    "http://xmlns.com/foaf/0.1/name",
)


def read_rdf_labels(path: PathLike, progress: bool = False) -> dict[str, str]:
    r"""Reads the labels of an RDF file: :obj:`rdfs:label`, :obj:`skos:prefLabel`,
    and :obj:`name` of schema.org and FOAF.

    Labels in English or without a language come before those in other languages;
    of several ones, the first is used.

    Args:
        path (str): The file, see :meth:`read_rdf`.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    labels: dict[str, str] = {}
    others: dict[str, str] = {}  # in other languages
    with open_statements(path, progress) as (rdf, quads, _):
        for quad in quads:
            label = quad.object
            if quad.predicate.value not in PREDICATES or type(label) is not rdf.Literal:
                continue
            if label.value.strip():
                is_ours = (label.language or "en").lower().startswith("en")
                found = labels if is_ours else others
                found.setdefault(node_text(quad.subject), label.value)
    if not labels and not others:
        raise DataError("has no labels, expected rdfs:label or the like", path)
    return others | labels
