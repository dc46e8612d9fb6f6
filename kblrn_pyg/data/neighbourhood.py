"""The neighbourhood of an entity, limited to a size that can be drawn."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.kb import flat_triples
from kblrn_pyg.data.names import Vocabulary
from kblrn_pyg.data.numerical import numerical_features

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Link:
    """The relations that hold from one entity to another, or both ways."""

    head: int
    tail: int
    relations: tuple[int, ...]
    both_ways: bool
    has_numbers: bool  # whether one of the relations has numerical features


@dataclass(frozen=True)
class Neighbourhood:
    """The entities, facts and numbers around an entity."""

    rings: list[list[int]]  # by distance, the first is the entity in the middle
    links: list[Link]
    numbers: dict[int, list[tuple[int, float]]]  # (attribute, value), the best first
    num_around: int  # within reach, drawn or not
    num_links_left_out: int

    @property
    def entities(self) -> list[int]:
        """All entities that are drawn."""
        return [entity for ring in self.rings for entity in ring]


def neighbourhood(
    data: HeteroData,
    entity: str,
    hops: int = 1,
    max_nodes: int = 12,
    max_numbers: int = 2,
) -> Neighbourhood:
    r"""Chooses the neighbourhood of an entity to draw.

    Every relation from or to an entity contributes one neighbour before any of them
    contributes a second one; relations with numerical features come first. Of the
    neighbours by one relation, those with numbers come first, then those with more
    facts.

    Args:
        data (HeteroData): The knowledge base.
        entity (str): The entity in the middle, by name.
        hops (int, optional): The maximum distance to it. (default: :obj:`1`)
        max_nodes (int, optional): The maximum number of other entities.
            (default: :obj:`12`)
        max_numbers (int, optional): The maximum number of numbers per entity.
            (default: :obj:`2`)
    """
    for name, given in (("hops", hops), ("max_nodes", max_nodes)):
        if given < 1:
            raise ValueError(f"'{name}' must be positive (got {given})")
    middle = Vocabulary.of(data).entities.resolve(entity)
    chooser = _Chooser(data)
    around = chooser.distances(middle, hops)
    if not (around > 0).any():
        raise DataError(f"entity {entity!r} has no known facts to draw")
    rings, drawn = [[middle]], {middle: -1}  # with the one that each came from
    for hop in range(hops):
        num_left = max_nodes - (len(drawn) - 1)
        share = -(-num_left // (hops - hop))  # rounded up
        ring = chooser.next_ring(rings[-1], around == hop + 1, share)
        if not ring:
            break
        rings.append(list(ring))
        drawn |= ring
    links, num_left_out = chooser.links(drawn)
    numbers = chooser.numbers(links, list(drawn), max_numbers)
    return Neighbourhood(rings, links, numbers, int((around > 0).sum()), num_left_out)


class _Chooser:
    """Ranks the entities and relations of a knowledge base for drawing."""

    def __init__(self, data: HeteroData) -> None:
        triples = flat_triples(data)
        self.head, self.rel, self.tail = (index.numpy() for index in triples)
        ends = np.concatenate([self.head, self.tail])
        self.degree = np.bincount(ends, minlength=int(data["entity"].num_nodes))
        self.x = data["entity"].x.numpy()
        features = numerical_features(data)
        self.attributes_of = {
            r: features.attribute[features.of(r)].tolist()
            for r in range(len(data.edge_types))
        }

    def distances(self, entity: int, hops: int) -> Ids:
        """The distance of every entity in reach, and -1 of the others."""
        distance = np.full(len(self.degree), -1)
        distance[entity] = 0
        for hop in range(hops):
            reached = distance >= 0
            onward = self.tail[reached[self.head]], self.head[reached[self.tail]]
            ends = np.concatenate(onward)
            distance[ends[distance[ends] < 0]] = hop + 1
        return distance

    def next_ring(
        self, ring: list[int], is_next: NDArray[np.bool_], most: int
    ) -> dict[int, int]:
        """Takes neighbours in turn from every entity, relation and direction."""
        groups: dict[tuple[int, int, bool], set[int]] = defaultdict(set)
        sides = (self.head, self.tail, True), (self.tail, self.head, False)
        for one, (ends, others, is_head) in product(ring, sides):
            for i in np.flatnonzero((ends == one) & is_next[others]).tolist():
                groups[one, int(self.rel[i]), is_head].add(int(others[i]))
        queues = [
            (one, relation, sorted(members, key=lambda e: self._order(e, relation)))
            for (one, relation, _), members in groups.items()
        ]
        queues.sort(key=lambda queue: self._turn(queue[1], queue[2][0]))
        chosen: dict[int, int] = {}
        for turn in range(max((len(queue) for *_, queue in queues), default=0)):
            for one, _, queue in queues:
                if turn < len(queue) and len(chosen) < most:
                    chosen.setdefault(queue[turn], one)
        return chosen

    def _order(self, entity: int, relation: int) -> tuple[int, int, int]:
        """Within a relation: those with numbers first, then the best known."""
        used = self.attributes_of[relation] or slice(None)
        known = int((~np.isnan(self.x[entity, used])).sum())
        return -min(known, 1), -int(self.degree[entity]), entity

    def _turn(self, relation: int, entity: int) -> tuple[bool, bool, int, int]:
        """Among relations: those with numbers first, then the most specific
        ones."""
        is_plain = not self.attributes_of[relation]
        has_none = bool(np.isnan(self.x[entity]).all())
        return is_plain, has_none, int(self.degree[entity]), relation

    def links(self, drawn: Mapping[int, int]) -> tuple[list[Link], int]:
        """The relations between two entities; of links within a ring, only some."""
        is_drawn = np.zeros(len(self.degree), bool)
        is_drawn[list(drawn)] = True
        facts: dict[tuple[int, int], set[int]] = defaultdict(set)
        for i in np.flatnonzero(is_drawn[self.head] & is_drawn[self.tail]).tolist():
            head, tail = int(self.head[i]), int(self.tail[i])
            if head != tail:
                facts[head, tail].add(int(self.rel[i]))
        inwards: list[Link] = []
        others: list[Link] = []
        for (head, tail), relations in facts.items():
            came = head == drawn[tail] or tail == drawn[head]
            links = inwards if came else others
            back = facts.get((tail, head), set())
            if relations - back:
                links.append(self._link(head, tail, relations - back, False))
            if relations & back and head < tail:
                links.append(self._link(head, tail, relations & back, True))
        others.sort(key=lambda link: not link.has_numbers)
        most = len(drawn) // 2
        return inwards + others[:most], max(len(others) - most, 0)

    def _link(self, head: int, tail: int, relations: set[int], both: bool) -> Link:
        # The most informative name comes first.
        order = sorted(relations, key=lambda r: (not self.attributes_of[r], r))
        return Link(head, tail, tuple(order), both, bool(self.attributes_of[order[0]]))

    def numbers(
        self, links: list[Link], drawn: list[int], most: int
    ) -> dict[int, list[tuple[int, float]]]:
        """The numbers that links of an entity use, then any others."""
        wanted: dict[int, list[int]] = defaultdict(list)
        for link in links:
            used = [a for r in link.relations for a in self.attributes_of[r]]
            wanted[link.head] += used
            wanted[link.tail] += used
        found = {}
        for entity in drawn:
            known = np.flatnonzero(~np.isnan(self.x[entity])).tolist()
            used = [a for a in dict.fromkeys(wanted[entity]) if a in known]
            order = used + [a for a in known if a not in used]
            found[entity] = [(a, float(self.x[entity, a])) for a in order[:most]]
        return found
