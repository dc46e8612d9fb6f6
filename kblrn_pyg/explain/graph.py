"""The facts behind an explanation as a graph."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.explain import Explanation

if TYPE_CHECKING:
    from kblrn_pyg.explain.reasons import BodyReason, Named, Reasons


class Fact(NamedTuple):
    r"""A known triple that bodies step over.

    Args:
        head (Named): The head.
        relation (Named): The relation.
        tail (Named): The tail.
    """

    head: "Named"
    relation: "Named"
    tail: "Named"


def body_facts(reasons: "Reasons", body: "BodyReason") -> list[Fact]:
    r"""Returns the facts that a body steps over, each once.

    Args:
        reasons (Reasons): The explanation.
        body (BodyReason): One of its bodies.
    """
    if body.num_middles == 0:
        stops = [{"h": reasons.head, "t": reasons.tail}]
    else:
        ends = {"h": reasons.head, "t": reasons.tail}
        stops = [ends | {"x": middle} for middle in body.middles]
    found = (
        Fact(stop[atom.start], atom.relation, stop[atom.end])
        for stop in stops
        for atom in body.atoms
    )
    return list(dict.fromkeys(found))


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
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    strength = _node_strengths(reasons)
    # Graphs of users may have no identifiers, and repeat names.
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


def _entities(reasons: "Reasons") -> list["Named"]:
    found = [reasons.head, reasons.tail]
    for body in reasons.relational or ():
        found += body.middles
    return list(dict.fromkeys(found))


def _edge_weights(
    reasons: "Reasons",
) -> tuple[dict[Fact, float], dict[Fact, float]]:
    """Sums up the weights of the bodies over each fact, and their sizes."""
    weights: dict[Fact, float] = defaultdict(float)
    strengths: dict[Fact, float] = defaultdict(float)
    for body in reasons.relational or ():
        for fact in body_facts(reasons, body):
            weights[fact] += body.weight
            strengths[fact] += abs(body.weight)
    return weights, strengths


def _node_strengths(reasons: "Reasons") -> dict[int, float]:
    strength: dict[int, float] = defaultdict(float)
    for entities, size in _sizes(reasons):
        for entity in entities:
            strength[entity] += size
    return strength


def _sizes(reasons: "Reasons") -> Iterator[tuple[set[int], float]]:
    """Returns the entities that have a part in each reason, and its size."""
    ends = {reasons.head.id, reasons.tail.id}
    for scorer in reasons.latent or ():
        yield ends, abs(scorer.contribution)
    for body in reasons.relational or ():
        yield ends | {middle.id for middle in body.middles}, abs(body.weight)
    for number in reasons.numerical or ():
        yield ends, abs(number.contribution)
