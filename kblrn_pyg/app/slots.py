"""The plausible relations of an entity, and those of similar entities."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples

Ids = NDArray[np.int64]

# How many entities of the same kind are looked at for each relation.
_MAX_ALIKE = 1000
# How many relations of an entity, the rarest, tell its kind.
_MAX_SLOTS = 16
# The least fraction of entities of the kind that must have a relation.
_LIKELY = 0.1


class Slot(NamedTuple):
    """A relation, seen from one of its sides, for an entity."""

    relation: int
    side: str  # the side that is asked for
    num_known: int  # how many answers are known
    likely: float  # the fraction of entities of the same kind that have any


@dataclass(frozen=True)
class _Groups:
    """Values by the key that they belong to."""

    ptr: Ids
    value: Ids

    @classmethod
    def of(cls, key: Ids, value: Ids, num_keys: int) -> "_Groups":
        order = np.argsort(key, kind="stable")
        ptr = np.searchsorted(key[order], np.arange(num_keys + 1))
        return cls(ptr, value[order])

    def __getitem__(self, key: int) -> Ids:
        return self.value[self.ptr[key] : self.ptr[key + 1]]

    def sizes(self) -> Ids:
        return np.diff(self.ptr)


class Slots:
    r"""The relations that each entity has, as their head and as their tail.

    A slot is a relation with the side of the answer: an entity with the slot
    :obj:`(born_in, tail)` was born somewhere. Entities that share a slot are of the
    same kind, so relations that most of them have are plausible for all of them.

    Args:
        data (HeteroData): The knowledge base.
    """

    def __init__(self, data: HeteroData) -> None:
        head, rel, tail = (column.cpu().numpy() for column in flat_triples(data))
        num_nodes = int(data["entity"].num_nodes)
        self._num_slots = 2 * len(data.edge_types)
        # Even slots ask for tails, odd ones for heads.
        entity = np.concatenate([head, tail])
        slot = np.concatenate([2 * rel, 2 * rel + 1])
        self._facts = _Groups.of(entity, np.arange(len(entity)), num_nodes)
        self._slot, self._other = slot, np.concatenate([tail, head])
        pairs = np.unique(entity * self._num_slots + slot)
        owner, having = np.divmod(pairs, max(self._num_slots, 1))
        self._slots_of = _Groups.of(owner, having, num_nodes)
        self._owners = _Groups.of(having, owner, self._num_slots)

    @property
    def num_facts(self) -> Ids:
        """The number of known facts of each entity."""
        return self._facts.sizes()

    @property
    def num_owners(self) -> Ids:
        """For each slot, the number of entities that have it."""
        return self._owners.sizes()

    def owners(self, relation: int, side: str) -> Ids:
        """Returns the entities that have an answer to a relation."""
        return self._owners[_slot(relation, side)]

    def of(self, entity: int) -> list[Slot]:
        """Returns the known relations of an entity, followed by likely ones."""
        slots, counts = np.unique(self._slot[self._facts[entity]], return_counts=True)
        likely = self._likely(slots)
        known = sorted(zip(slots, counts), key=lambda pair: (-pair[1], pair[0]))
        found = [_named(int(slot), int(count), 1.0) for slot, count in known]
        others = np.setdiff1d(np.flatnonzero(likely >= _LIKELY), slots)
        order = others[np.argsort(-likely[others], kind="stable")]
        return found + [_named(int(slot), 0, float(likely[slot])) for slot in order]

    def neighbours(self, entity: int, relation: int, side: str) -> Ids:
        """Returns the known answers to a relation of an entity."""
        facts = self._facts[entity]
        return self._other[facts[self._slot[facts] == _slot(relation, side)]]

    def _likely(self, slots: Ids) -> NDArray[np.float64]:
        """Returns which fraction of entities that share a slot has each slot."""
        likely = np.zeros(self._num_slots)
        sizes = self.num_owners
        for slot in sorted(slots.tolist(), key=lambda one: sizes[one])[:_MAX_SLOTS]:
            alike = self._owners[slot]
            step = max(1, len(alike) // _MAX_ALIKE)
            some = alike[::step].tolist()
            having = np.concatenate([self._slots_of[one] for one in some])
            counts = np.bincount(having, minlength=self._num_slots)
            # The rarest slot says most, but a handful of entities says little.
            likely = np.maximum(likely, counts / (len(some) + 3))
        return likely


def _slot(relation: int, side: str) -> int:
    return 2 * relation + (side == "head")


def _named(slot: int, num_known: int, likely: float) -> Slot:
    return Slot(slot // 2, "head" if slot % 2 else "tail", num_known, likely)
