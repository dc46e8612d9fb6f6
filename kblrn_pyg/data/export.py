"""Conversion of knowledge bases to networkx."""

import networkx as nx
from torch_geometric.data import HeteroData


def to_networkx(data: HeteroData) -> "nx.MultiDiGraph[str]":
    r"""Exports the known triples of a knowledge base, with names and numbers.

    Nodes are identifiers and have a :obj:`name` and their known numbers;
    edges have their relation as key.

    Args:
        data (HeteroData): The knowledge base.

    Example:
        >>> from kblrn_pyg.data import read_kb
        >>> kbs, _ = read_kb([("Ada", "spouse", "Ben")])
        >>> list(to_networkx(kbs["train"]).edges(keys=True))
        [('Ada', 'Ben', 'spouse')]
    """
    entity = data["entity"]
    identifiers = entity.get("identifier", entity.name)
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for key, name, row in zip(identifiers, entity.name, entity.x.tolist()):
        known = {
            attribute: value
            for attribute, value in zip(data.attribute_names, row)
            if value == value  # NaN, the unknown, differs from itself
        }
        graph.add_node(key)
        # An attribute may have the name of an argument of 'add_node'.
        graph.nodes[key].update({**known, "name": name})
    for edge_type in data.edge_types:
        for head, tail in data[edge_type].edge_index.t().tolist():
            graph.add_edge(identifiers[head], identifiers[tail], key=edge_type[1])
    return graph
