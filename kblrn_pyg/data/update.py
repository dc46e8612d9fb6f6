"""A knowledge base with added facts, entities and numbers, or removed facts."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.kb import FlatTriples, ask, flat_triples, make_kb
from kblrn_pyg.data.names import Names, Vocabulary, path_endings, relation_names
from kblrn_pyg.data.triples import Ids, NamedTriples, first_occurrences
from kblrn_pyg.data.validate import validate_kb
from kblrn_pyg.data.values import NamedValues, ValueNotes


@dataclass(frozen=True)
class KBUpdate:
    r"""The update of a knowledge base.

    Entities keep their ids, and new ones follow them.

    Args:
        before (HeteroData): The knowledge base as it was.
        kb (HeteroData): The knowledge base as it is.
        added (tuple): The facts that are new.
        retracted (tuple): The facts that are gone.
        num_known (int): The number of facts to add that were already known.
        num_values (int): The number of numbers that are new, or that replace
            others.
        notes (ValueNotes): The observations made while numbers were read.
    """

    before: HeteroData
    kb: HeteroData
    added: FlatTriples
    retracted: FlatTriples
    num_known: int = 0
    num_values: int = 0
    notes: ValueNotes = ValueNotes()

    @property
    def num_before(self) -> int:
        """The number of entities before, which is the id of the first new one."""
        return int(self.before["entity"].num_nodes)

    @property
    def num_new(self) -> int:
        """The number of new entities."""
        return int(self.kb["entity"].num_nodes) - self.num_before

    def lines(self) -> list[str]:
        """Returns one line per change, and per kind of input that is left out."""
        counts = [
            (self.num_new, "new entity", "new entities"),
            (self.added[0].numel(), "new fact", "new facts"),
            (self.num_known, "fact was known before", "facts were known before"),
            (self.retracted[0].numel(), "fact retracted", "facts retracted"),
            (self.num_values, "number", "numbers"),
            (self.notes.num_unknown, "number is unknown", "numbers are unknown"),
        ]
        lines = [
            f"{count:,} {one if count == 1 else several}"
            for count, one, several in counts
            if count
        ]
        if text := self.notes.text_columns:
            lines.append(f"columns without numbers left out: {', '.join(text)}")
        return lines


def update_kb(
    kb: HeteroData,
    triples: NamedTriples | None = None,
    values: NamedValues | None = None,
    retracted: NamedTriples | None = None,
) -> KBUpdate:
    r"""Adds facts, entities and numbers to a knowledge base, and removes facts.

    Names that are neither identifiers nor labels are treated as new entities.
    Relations and attributes must be known, because nothing has been learned about
    others. A number replaces the previous one.

    Args:
        kb (HeteroData): The knowledge base, which is not changed.
        triples (NamedTriples, optional): The facts to add.
            (default: :obj:`None`)
        values (NamedValues, optional): The numbers to add.
            (default: :obj:`None`)
        retracted (NamedTriples, optional): The facts to remove, all of which must
            be known. (default: :obj:`None`)

    Example:
        >>> from kblrn_pyg.data import read_kb, read_triples
        >>> kb = read_kb([("Ada", "spouse", "Ben")])[0]["train"]
        >>> update = update_kb(kb, read_triples([("Cleo", "spouse", "Dan")]))
        >>> update.kb["entity"].name, update.num_new
        (['Ada', 'Ben', 'Cleo', 'Dan'], 2)
    """
    names = Vocabulary.of(kb)
    new = _NewNames(names.entities)
    nothing = np.empty((3, 0), np.int64)
    add = nothing if triples is None else _ids(triples, names, new)
    table = None if values is None else _values(values, names, new)
    gone = nothing if retracted is None else _ids(retracted, names, None)
    _refuse_both(add, gone, names)
    before = np.stack([column.numpy() for column in flat_triples(kb)])
    whole, is_new = _joined(before, add)
    keep = _kept(before, gone, names)
    whole = whole[:, np.concatenate([keep, np.ones(is_new.sum(), bool)])]
    updated = _build(kb, new.names, whole, table)
    return KBUpdate(
        kb,
        updated,
        _flat(add[:, is_new]),
        _flat(gone),
        int((~is_new).sum()),
        0 if table is None else len(table[2]),
        ValueNotes() if values is None else values.notes,
    )


def grown_split(split: HeteroData, update: KBUpdate) -> HeteroData:
    r"""Returns a split over the entities of an updated knowledge base, without
    retracted facts.

    Args:
        split (HeteroData): A split of the knowledge base before.
        update (KBUpdate): Its update.
    """
    asked = np.stack(
        [column.numpy() for column in flat_triples(split, "edge_label_index")]
    )
    size = int(update.kb["entity"].num_nodes)
    gone = np.stack([column.numpy() for column in update.retracted])
    keep = ~np.isin(_keys(asked, size), _keys(gone, size))
    return ask(update.kb, _flat(asked[:, keep]))


class _NewNames:
    """The names of new entities, with their ids."""

    def __init__(self, entities: Names) -> None:
        self._entities = entities
        self._ids: dict[str, int] = {}

    @property
    def names(self) -> list[str]:
        return list(self._ids)

    def ids(self, names: Sequence[str]) -> Ids:
        return np.array([self._id(name) for name in names], np.int64)

    def _id(self, name: str) -> int:
        if name in self._ids:
            return self._ids[name]
        if self._entities.exact(name):
            return self._entities.resolve(name)  # which refuses an ambiguous label
        return self._ids.setdefault(name, len(self._entities) + len(self._ids))


def _ids(triples: NamedTriples, names: Vocabulary, new: _NewNames | None) -> Ids:
    """Returns columns of ids; entities must be known unless new ones are taken."""
    relations = np.array([names.relations.resolve(r) for r in triples.relations], int)
    if new is not None:
        entities = new.ids(triples.entities)
    else:
        entities = np.array([_known(names.entities, e) for e in triples.entities], int)
    columns = entities[triples.head], relations[triples.rel], entities[triples.tail]
    return np.stack(columns).astype(np.int64)


def _known(entities: Names, name: str) -> int:
    if not entities.exact(name):
        raise DataError(f"unknown entity {name!r}, facts to retract must be known")
    return entities.resolve(name)


def _values(
    values: NamedValues, names: Vocabulary, new: _NewNames
) -> tuple[Ids, Ids, np.ndarray]:
    """Returns the row, the column and the number of each value."""
    # Names without a number do not matter, such as columns of text.
    used, entity = np.unique(values.entity, return_inverse=True)
    ids = new.ids([values.entities[i] for i in used.tolist()])
    used, attribute = np.unique(values.attribute, return_inverse=True)
    given = [values.attributes[i] for i in used.tolist()]
    columns = [_attribute(names.attributes, one) for one in given]
    return ids[entity], np.array(columns, np.int64)[attribute], values.value


def _attribute(attributes: Names, name: str) -> int:
    """Finds an attribute by its name, or by the path that it was the end of."""
    for one in path_endings(name):
        if found := attributes.exact(one):
            return found[0]
    return attributes.resolve(name)


def _refuse_both(add: Ids, gone: Ids, names: Vocabulary) -> None:
    size = int(max(add.max(initial=0), gone.max(initial=0))) + 1
    both = np.isin(_keys(gone, size), _keys(add, size))
    if both.any():
        text = _text(gone[:, both.argmax()], names)
        raise DataError(f"{text} is both to be added and to be retracted")


def _kept(before: Ids, gone: Ids, names: Vocabulary) -> np.ndarray:
    """Returns which facts stay, and refuses to take away what is not there."""
    size = len(names.entities)
    keys, wanted = _keys(before, size), _keys(gone, size)
    missing = ~np.isin(wanted, keys)
    if missing.any():
        text = _text(gone[:, missing.argmax()], names)
        raise DataError(f"{text} is not a fact of the knowledge base, expected one")
    return ~np.isin(keys, wanted)


def _joined(before: Ids, add: Ids) -> tuple[Ids, np.ndarray]:
    """Appends new facts, and returns which ones are new."""
    size = int(max(before.max(initial=0), add.max(initial=0))) + 1
    both = np.concatenate([before, add], axis=1)
    first = first_occurrences(both[0] * size + both[2], both[1])
    number = before.shape[1]
    is_new = np.zeros(add.shape[1], bool)
    is_new[first[first >= number] - number] = True
    return np.concatenate([before, add[:, is_new]], axis=1), is_new


def _keys(triples: Ids, size: int) -> Ids:
    head, rel, tail = triples
    return (rel * size + head) * size + tail


def _text(triple: Ids, names: Vocabulary) -> str:
    head, rel, tail = triple.tolist()
    ends = names.entities.unique(head), names.entities.unique(tail)
    return f"{names.relations[rel]}({ends[0]}, {ends[1]})"


def _flat(triples: Ids) -> FlatTriples:
    head, rel, tail = (torch.from_numpy(column.copy()) for column in triples)
    return head, rel, tail


def _build(
    kb: HeteroData,
    new: list[str],
    triples: Ids,
    values: tuple[Ids, Ids, np.ndarray] | None,
) -> HeteroData:
    """Builds the knowledge base, with all other data of the old one."""
    entity, number = kb["entity"], len(new)
    unknown = entity.x.new_full((number, entity.x.size(1)), torch.nan)
    x = torch.cat([entity.x.detach(), unknown])
    if values is not None:
        row, column, numbers = values
        x[torch.from_numpy(row), torch.from_numpy(column)] = torch.from_numpy(
            numbers
        ).to(x.dtype)
    identifiers = entity.get("identifier")
    updated = make_kb(
        [*entity.name, *new],
        relation_names(kb),
        _flat(triples),
        x,
        kb.attribute_names,
        None if identifiers is None else [*identifiers, *new],
    )
    content = kb.to_dict()["_global_store"]
    for key in ("derived", "type_names", "typed_relations"):
        if key in content:
            updated[key] = copy.copy(content[key])
    if "type" in entity:
        updated["entity"].type = _types(kb, updated, triples)
    validate_kb(updated)
    return updated


def _types(kb: HeteroData, updated: HeteroData, triples: Ids) -> Tensor:
    """Finds the node types of new entities by the relations that they have."""
    before, total = kb["entity"].type, updated["entity"].num_nodes
    kinds = {name: i for i, name in enumerate(kb.type_names)}
    names = relation_names(kb)
    found = np.concatenate([before.numpy(), np.full(total - len(before), -1)])
    for end, column in ((0, triples[0]), (2, triples[2])):
        wanted = np.array([kinds[kb.typed_relations[name][end]] for name in names])
        kind = wanted[triples[1]]
        is_new = found[column] < 0
        found[column[is_new]] = kind[is_new]
        if (found[column] != kind).any():
            at = int((found[column] != kind).argmax())
            name, wrong = updated["entity"].name[column[at]], names[triples[1][at]]
            raise DataError(
                f"{name!r} is a {kb.type_names[found[column[at]]]}, and "
                f"{wrong!r} needs a {kb.type_names[kind[at]]} there"
            )
    if (found < 0).any():
        name = updated["entity"].name[int((found < 0).argmax())]
        raise DataError(f"the node type of {name!r} is unknown, expected a fact of it")
    return torch.from_numpy(found)
