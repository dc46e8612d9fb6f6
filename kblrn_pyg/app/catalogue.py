"""Conversion between the names in requests and answers and their ids."""

import threading
from collections.abc import Iterable

import numpy as np

from kblrn_pyg.app.schema import Entity, Question, Thing, Word
from kblrn_pyg.app.search import NameIndex
from kblrn_pyg.app.slots import Slots
from kblrn_pyg.data import Names
from kblrn_pyg.data.words import in_words, short_names
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.part import Ref

# Longer names do not go into links.
_LONGEST_KEY = 300
_BY_ID = "id:"
_NUM_EXAMPLES = 6


class UnknownNameError(ValueError):
    """Raised if no entity or relation has a name, or if several have it."""

    def __init__(self, message: str, nearest: list[Entity]) -> None:
        super().__init__(message)
        self.nearest = nearest


class Catalogue:
    r"""The names of a knowledge base for requests and answers.

    Entities and relations are named by their identifier, by a label that only one
    has, or by their id as :obj:`id:7`.

    Args:
        model (KBLRN): The model.
        slots (Slots): The relations of each entity.
    """

    def __init__(self, model: KBLRN, slots: Slots) -> None:
        names = model.vocabulary
        # The look-up of names is built when it is first needed, by one thread.
        self.lock = threading.Lock()
        self.entities, self.relations = names.entities, names.relations
        self.attributes = names.attributes
        self._num_facts = slots.num_facts
        self._short = [in_words(one) for one in short_names(self.relations.identifiers)]
        per_relation = slots.num_owners.reshape(-1, 2).sum(axis=1)
        self._entity_index = NameIndex(self.entities.labels, self._num_facts)
        self._identifiers: NameIndex | None = None
        if self.entities.labels is not self.entities.identifiers:
            identifiers = self.entities.identifiers
            self._identifiers = NameIndex(identifiers, self._num_facts)
        self._relation_index = NameIndex(self.relations.identifiers, per_relation)

    def entity(self, i: int) -> Thing:
        """Names an entity."""
        with self.lock:
            return _thing(i, self.entities.unique(i), self.entities)

    def listed(self, i: int) -> Entity:
        """Names an entity in a list to choose from."""
        number = int(self._num_facts[i])
        return Entity(**self.entity(i).model_dump(), num_facts=number)

    def relation(self, i: int) -> Thing:
        """Names a relation, as short as possible."""
        with self.lock:
            return _thing(i, self._short[i], self.relations)

    def find_entity(self, given: str) -> int:
        """Returns the entity that a request names."""
        with self.lock:
            found = _find(self.entities, given)
        if len(found) == 1:
            return found[0]
        nearest = found[:10] or self.complete(given, 5)
        message = "several entities have" if found else "no entity has"
        raise UnknownNameError(
            f"{message} this name", [self.listed(i) for i in nearest]
        )

    def find_relation(self, given: str) -> int:
        """Returns the relation that a request names."""
        with self.lock:
            found = _find(self.relations, given)
        if len(found) != 1:
            message = "several relations have" if found else "no relation has"
            raise UnknownNameError(f"{message} this name", [])
        return found[0]

    def complete(self, letters: str, number: int) -> list[int]:
        """Returns entities whose name, or else identifier, contains some
        letters."""
        found = dict.fromkeys(self._entity_index.find(letters, number))
        if self._identifiers is not None and len(found) < number:
            found |= dict.fromkeys(self._identifiers.find(letters, number))
        return list(found)[:number]

    def complete_relation(self, letters: str, number: int) -> list[int]:
        """Returns relations whose name contains some letters; without letters,
        any."""
        if not letters.strip():
            return list(range(min(number, len(self.relations))))
        return self._relation_index.find(letters, number)

    def words(self, words: Iterable[str | Ref]) -> list[Word]:
        """Fills in the names of a sentence."""
        return [
            Word(text=word) if isinstance(word, str) else self._word(word)
            for word in words
        ]

    def _word(self, ref: Ref) -> Word:
        kind: str = ref.kind
        if kind == "attribute":
            return Word(text=in_words(self.attributes[ref.id]), kind="attribute")
        thing = self.entity(ref.id) if kind == "entity" else self.relation(ref.id)
        return Word(text=thing.name, kind=kind, key=thing.key)  # type: ignore[arg-type]


def examples(catalogue: Catalogue, slots: Slots) -> list[Question]:
    r"""Returns some example queries.

    They use the relations that most entities have, each with an entity that has an
    average number of facts.

    Args:
        catalogue (Catalogue): The names.
        slots (Slots): The relations of each entity.
    """
    sizes, found = slots.num_owners[0::2], []
    seen: set[int] = set()
    for relation in np.argsort(-sizes, kind="stable")[:_NUM_EXAMPLES].tolist():
        owners = slots.owners(relation, "tail")
        owners = owners[~np.isin(owners, list(seen))]
        if len(owners) == 0:
            continue
        order = np.argsort(slots.num_facts[owners], kind="stable")
        entity = int(owners[order[(3 * len(order)) // 4]])
        seen.add(entity)
        found.append(
            Question(
                entity=catalogue.entity(entity),
                relation=catalogue.relation(relation),
                side="tail",
            )
        )
    return found


def _thing(i: int, name: str, names: Names) -> Thing:
    identifier = names.identifiers[i]
    is_good = 0 < len(identifier) <= _LONGEST_KEY and _find(names, identifier) == [i]
    key = identifier if is_good else f"{_BY_ID}{i}"
    return Thing(id=i, key=key, name=name, identifier=identifier)


def _find(names: Names, given: str) -> list[int]:
    if not given.startswith(_BY_ID):
        return names.exact(given)
    digits = given.removeprefix(_BY_ID)
    is_id = digits.isascii() and digits.isdigit() and len(digits) < 16
    return [int(digits)] if is_id and int(digits) < len(names) else []
