"""The facts behind an explanation as a graph."""

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.explain import Explanation

if TYPE_CHECKING:
    import networkx as nx

    from kblrn_pyg.explain.reasons import Named, NamedFact, Reason, Reasons


def to_pyg(reasons: "Reasons") -> Explanation:
    """Returns the graph for PyG; see :meth:`Reasons.to_pyg`."""
    place = {entity.id: i for i, entity in enumerate(_entities(reasons))}
    weights, strengths = _edge_weights(reasons)
    edges = [(place[fact.head.id], place[fact.tail.id]) for fact in weights]
    strength = _node_strengths(reasons)
    return Explanation(
        num_nodes=len(place),
        n_id=torch.tensor(list(place)),
        edge_index=torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous(),
        edge_type=torch.tensor([f.relation.id for f in weights], dtype=torch.long),
        edge_weight=torch.tensor(list(weights.values()), dtype=torch.float),
        edge_mask=_mask(list(strengths.values())),
        node_mask=_mask([strength[i] for i in place])[:, None],
        # Dictionaries: PyG would try to cut lists to the size of a subgraph.
        entity_names={e.id: e.name for e in _entities(reasons)},
        relation_names={f.relation.id: f.relation.identifier for f in weights},
    )


def to_networkx(reasons: "Reasons") -> "nx.MultiDiGraph[str]":
    """Returns the graph for networkx; see :meth:`Reasons.to_networkx`."""
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    strength = _node_strengths(reasons)
    # A user's graph may have no identifiers, and repeat names.
    owners = Counter(entity.identifier for entity in _entities(reasons))
    node = {
        entity.id: entity.identifier
        if owners[entity.identifier] == 1
        else f"{entity.identifier} (id {entity.id})"
        for entity in _entities(reasons)
    }
    for entity in _entities(reasons):
        graph.add_node(node[entity.id], name=entity.name, strength=strength[entity.id])
    weights, strengths = _edge_weights(reasons)
    for fact, weight in weights.items():
        graph.add_edge(
            node[fact.head.id],
            node[fact.tail.id],
            key=fact.relation.identifier,
            name=fact.relation.name,
            weight=weight,
            strength=strengths[fact],
        )
    return graph


def _mask(strengths: list[float]) -> Tensor:
    """Brings strengths into the range that PyG's thresholds are for."""
    largest = max(strengths, default=0.0) or 1.0
    return torch.tensor([s / largest for s in strengths], dtype=torch.float)


def _all_parts(reasons: "Reasons") -> list["Reason"]:
    return [part for parts in reasons.parts.values() for part in parts]


def _facts(part: "Reason") -> list["NamedFact"]:
    """Returns the distinct facts that a part is based on."""
    return list(dict.fromkeys(fact for path in part.paths for fact in path))


def _entities(reasons: "Reasons") -> list["Named"]:
    found = [reasons.head, reasons.tail]
    for part in _all_parts(reasons):
        found += [end for fact in _facts(part) for end in (fact.head, fact.tail)]
    return list(dict.fromkeys(found))


def _edge_weights(
    reasons: "Reasons",
) -> tuple[dict["NamedFact", float], dict["NamedFact", float]]:
    """Sums up the contributions of the parts with each fact, and their sizes."""
    weights: dict[NamedFact, float] = defaultdict(float)
    strengths: dict[NamedFact, float] = defaultdict(float)
    for part in _all_parts(reasons):
        for fact in _facts(part):
            weights[fact] += part.contribution
            strengths[fact] += abs(part.contribution)
    return weights, strengths


def _node_strengths(reasons: "Reasons") -> dict[int, float]:
    """Sums up the sizes of the parts that each entity belongs to."""
    strength: dict[int, float] = defaultdict(float)
    for part in _all_parts(reasons):
        ends = {end.id for fact in _facts(part) for end in (fact.head, fact.tail)}
        for entity in ends | {reasons.head.id, reasons.tail.id}:
            strength[entity] += abs(part.contribution)
    return strength
