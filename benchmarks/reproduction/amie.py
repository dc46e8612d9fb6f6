"""The rules that AMIE may lose, which the paper may therefore lack."""

import numpy as np
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.rules import RuleSet


def lost_by_amie(data: HeteroData, rules: RuleSet) -> np.ndarray:
    r"""Tells for each rule whether AMIE may lose it.

    AMIE makes a body of two steps by adding the second atom to the first. Its
    check for equal rules takes :obj:`a(x, z) => r(x, y)` for
    :obj:`a(x, y) => r(x, y)` if both have the same support, and drops one of
    them, whichever comes second. What would have grown from it is lost,
    unless it grows from its other atom, :obj:`b(z, y) => r(x, y)`. A relation
    that implies itself is never made, so that nothing is merged with it.

    Args:
        data (HeteroData): The training triples.
        rules (RuleSet): The rules.
    """
    supports = _Supports(data)
    lost = np.zeros(len(rules), bool)
    for i, (head, (parallel, body)) in enumerate(zip(rules.head, rules.bodies())):
        if not parallel and len(body) == 2:
            first, second = body
            lost[i] = supports.is_merged(head, first, True) and supports.is_merged(
                head, second, False
            )
    return lost


class _Supports:
    """How many facts of a relation have what an atom asks for."""

    def __init__(self, data: HeteroData) -> None:
        head, rel, tail = (index.numpy() for index in flat_triples(data))
        num_entities = data["entity"].num_nodes
        num_relations = len(data.edge_types)
        self.facts = [(head[rel == r], tail[rel == r]) for r in range(num_relations)]
        self.keys = [
            key
            for h, t in self.facts
            for key in (h * num_entities + t, t * num_entities + h)
        ]
        self.has_step = np.zeros((2 * num_relations, num_entities), bool)
        self.has_step[2 * rel, head] = True
        self.has_step[2 * rel + 1, tail] = True
        self._merged: dict[tuple[int, int, bool], bool] = {}

    def is_merged(self, rel: int, code: int, from_head: bool) -> bool:
        """Whether an atom that hangs on one end looks like one between both."""
        asked = int(rel), int(code), from_head
        if asked not in self._merged:
            self._merged[asked] = self._is_merged(*asked)
        return self._merged[asked]

    def _is_merged(self, rel: int, code: int, from_head: bool) -> bool:
        if code == 2 * rel:
            return False
        head, tail = self.facts[rel]
        hanging = (
            self.has_step[code, head] if from_head else self.has_step[code ^ 1, tail]
        )
        closed = np.isin(self.keys[2 * rel], self.keys[code])
        return int(hanging.sum()) == int(closed.sum())
