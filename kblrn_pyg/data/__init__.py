"""Readers, names, and the knowledge base as a HeteroData."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.data.bin_numbers import BinNumbers
    from kblrn_pyg.data.build import BuildReport, build_kb
    from kblrn_pyg.data.candidates import Candidates, single_valued
    from kblrn_pyg.data.dates import decimal_year
    from kblrn_pyg.data.derived import add_attribute, derive
    from kblrn_pyg.data.errors import DataError, HeaderError
    from kblrn_pyg.data.everything import with_all_facts
    from kblrn_pyg.data.export import to_networkx
    from kblrn_pyg.data.holdout import hold_out
    from kblrn_pyg.data.intervals import Intervals, quantile_intervals
    from kblrn_pyg.data.kb import ask, flat_triples, make_kb
    from kblrn_pyg.data.known import KnownFacts
    from kblrn_pyg.data.labels import read_labels
    from kblrn_pyg.data.layers import LayerFeatures, layer_features, pair_attributes
    from kblrn_pyg.data.names import Names, Vocabulary
    from kblrn_pyg.data.numerical import (
        NumericalFeatures,
        differences,
        numerical_features,
    )
    from kblrn_pyg.data.pairs import PairAttribute
    from kblrn_pyg.data.queries import Queries
    from kblrn_pyg.data.rdf import read_ntriples, read_rdf
    from kblrn_pyg.data.read import read_kb
    from kblrn_pyg.data.statistics import Statistics, kb_statistics
    from kblrn_pyg.data.store import load_kb, save_kb
    from kblrn_pyg.data.triples import NamedTriples, read_triples
    from kblrn_pyg.data.types import (
        as_kb,
        from_homogeneous,
        split_types,
        unify_types,
    )
    from kblrn_pyg.data.update import KBUpdate, update_kb
    from kblrn_pyg.data.validate import find_problems, validate_kb
    from kblrn_pyg.data.values import NamedValues, read_values
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "BinNumbers",
    "BuildReport",
    "Candidates",
    "DataError",
    "HeaderError",
    "Intervals",
    "KBUpdate",
    "KnownFacts",
    "LayerFeatures",
    "NamedTriples",
    "NamedValues",
    "Names",
    "NumericalFeatures",
    "PairAttribute",
    "Queries",
    "Statistics",
    "Vocabulary",
    "add_attribute",
    "as_kb",
    "ask",
    "build_kb",
    "decimal_year",
    "derive",
    "differences",
    "find_problems",
    "flat_triples",
    "from_homogeneous",
    "hold_out",
    "kb_statistics",
    "layer_features",
    "load_kb",
    "make_kb",
    "numerical_features",
    "pair_attributes",
    "quantile_intervals",
    "read_kb",
    "read_labels",
    "read_ntriples",
    "read_rdf",
    "read_triples",
    "read_values",
    "save_kb",
    "single_valued",
    "split_types",
    "to_networkx",
    "unify_types",
    "update_kb",
    "validate_kb",
    "with_all_facts",
]
