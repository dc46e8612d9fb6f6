"""Batches of triples, of queries, and PyG's own link loaders."""

from kblrn_pyg.loader.link import KBSampler, batch_triples
from kblrn_pyg.loader.triples import QueryLoader, TripleLoader

__all__ = ["KBSampler", "QueryLoader", "TripleLoader", "batch_triples"]
