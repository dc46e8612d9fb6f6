"""Builds the knowledge base of every split from the output of the readers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.kb import FlatTriples, ask, make_kb
from kblrn_pyg.data.labels import labelled
from kblrn_pyg.data.names import shorten
from kblrn_pyg.data.table import NameTable
from kblrn_pyg.data.triples import Ids, Index, NamedTriples, first_occurrences
from kblrn_pyg.data.values import NamedValues


@dataclass
class BuildReport:
    r"""The observations made while a knowledge base was built.

    Args:
        num_triples (dict): The number of triples in each split.
        num_duplicates (dict): Repeated triples that were dropped.
        num_in_training (dict): Triples that are also training triples.
        num_unseen (dict): Triples with an entity or a relation that does not occur
            in training; they are kept.
        num_averaged (int): Values merged into a mean.
        num_foreign_values (int): Values of entities without triples.
        rare_attributes (list): Attributes left out, because too few entities
            have a value.
        num_other_literals (int): Skipped literals that are not numerical.
        num_unknown_values (int): Cells that mark a number as unknown.
        wide_columns (list): The attributes that wide tables have.
        text_columns (list): Columns of wide tables without numbers, left out.
        num_labels (int): The number of identifiers that got a name.
        num_foreign_labels (int): Labels of identifiers that do not occur.
    """

    num_triples: dict[str, int] = field(default_factory=dict)
    num_duplicates: dict[str, int] = field(default_factory=dict)
    num_in_training: dict[str, int] = field(default_factory=dict)
    num_unseen: dict[str, int] = field(default_factory=dict)
    num_averaged: int = 0
    num_foreign_values: int = 0
    rare_attributes: list[str] = field(default_factory=list)
    num_other_literals: int = 0
    num_unknown_values: int = 0
    wide_columns: list[str] = field(default_factory=list)
    text_columns: list[str] = field(default_factory=list)
    num_labels: int = 0
    num_foreign_labels: int = 0

    def lines(self) -> list[str]:
        """Returns one line per observation."""
        by_split = [
            (self.num_duplicates, "repeated triples dropped"),
            (self.num_in_training, "triples are also training triples"),
            (self.num_unseen, "triples have an entity or relation unseen in training"),
        ]
        lines = [
            f"{split}: {count:,} {text}"
            for counts, text in by_split
            for split, count in counts.items()
            if count
        ]
        totals = [
            (self.num_averaged, "values averaged into another of the same pair"),
            (self.num_foreign_values, "values of entities without triples left out"),
            (len(self.rare_attributes), "attributes with too few values left out"),
            (self.num_other_literals, "literals that are not numbers skipped"),
            (self.num_unknown_values, "numbers are unknown, as their cells say"),
            (self.num_labels, "identifiers have labels"),
            (self.num_foreign_labels, "labels of unknown identifiers left out"),
        ]
        lines += [f"{count:,} {text}" for count, text in totals if count]
        columns = [
            ("a wide table of numbers, with the columns", self.wide_columns),
            ("columns without numbers left out:", self.text_columns),
        ]
        return lines + [
            f"{text} {', '.join(names)}" for text, names in columns if names
        ]


def build_kb(
    splits: Mapping[str, NamedTriples],
    values: NamedValues | None = None,
    labels: Mapping[str, str] | None = None,
    min_entities: int = 5,
    shorten_attributes: bool = True,
) -> tuple[dict[str, HeteroData], BuildReport]:
    r"""Builds one :class:`~torch_geometric.data.HeteroData` for each split.

    All splits share the training graph, the entities, the relations and the
    numerical values; they differ in :obj:`edge_label_index`.

    Args:
        splits (dict): The triples of each split, with :obj:`"train"` first.
        values (NamedValues, optional): The numerical values.
            (default: :obj:`None`)
        labels (dict, optional): A readable name for some identifiers of entities,
            relations and attributes. (default: :obj:`None`)
        min_entities (int, optional): The minimum number of entities of the
            knowledge base that must have a value of an attribute to keep it.
            (default: :obj:`5`)
        shorten_attributes (bool, optional): If set to :obj:`True`, names of
            attributes that are paths become their shortest endings.
            (default: :obj:`True`)
    """
    if next(iter(splits), None) != "train":
        raise DataError("the training split is missing")
    entity_id = _new_index(triples.entities for triples in splits.values())
    relation_id = Index()
    ids = {}
    for split, triples in splits.items():
        entity = entity_id.ids(triples.entities)
        rel = relation_id.ids(triples.relations)
        ids[split] = (
            _renumber(triples.head, entity),
            _renumber(triples.rel, rel),
            _renumber(triples.tail, entity),
        )
    report = _report_splits(splits, ids, len(entity_id))
    attribute_names, x = _numbers(values, entity_id, min_entities, report)

    if shorten_attributes:
        attribute_names = shorten(attribute_names)

    identifiers, relations = entity_id.tolist(), relation_id.tolist()
    del entity_id
    names = identifiers
    if labels is not None:
        known = {*identifiers, *relations, *attribute_names}
        report.num_labels = sum(name in labels for name in known)
        report.num_foreign_labels = len(labels) - report.num_labels
        names = [labels.get(name, name) for name in identifiers]
        relations = labelled(relations, labels)
        attribute_names = labelled(attribute_names, labels)
    train = make_kb(
        names,
        relations,
        _as_tensors(ids.pop("train")),
        x,
        attribute_names,
        None if labels is None else identifiers,
    )
    kbs = {split: ask(train, _as_tensors(asked)) for split, asked in ids.items()}
    return {"train": train, **kbs}, report


def _new_index(names: Iterable[Sequence[str]]) -> Index | NameTable:
    """Returns an index for names; those of large files come in tables."""
    has_tables = any(isinstance(one, NameTable) for one in names)
    return NameTable() if has_tables else Index()


def _renumber(ids: Ids, new: Ids) -> Ids:
    """Returns new ids, without a copy if they are the old ones."""
    return ids if (new == np.arange(len(new))).all() else new[ids]


def _report_splits(
    splits: Mapping[str, NamedTriples],
    ids: Mapping[str, tuple[Ids, Ids, Ids]],
    num_entities: int,
) -> BuildReport:
    report = BuildReport()
    known_entity = np.zeros(num_entities, dtype=bool)
    known_entity[ids["train"][0]] = known_entity[ids["train"][2]] = True
    known_relations = np.flatnonzero(np.bincount(ids["train"][1]))
    for split, (head, rel, tail) in ids.items():
        report.num_triples[split] = len(head)
        report.num_duplicates[split] = splits[split].num_duplicates
        if split == "train":
            continue
        seen = known_entity[head] & known_entity[tail] & np.isin(rel, known_relations)
        report.num_unseen[split] = int((~seen).sum())
        # Each of them is distinct: what repeats in both together is in both.
        is_asked = np.zeros(num_entities, dtype=bool)
        is_asked[head] = is_asked[tail] = True
        near = np.flatnonzero(is_asked[ids["train"][0]] & is_asked[ids["train"][2]])
        others = (column[near] for column in ids["train"])
        both = [np.concatenate(pair) for pair in zip(others, (head, rel, tail))]
        distinct = first_occurrences(both[0] * num_entities + both[2], both[1])
        report.num_in_training[split] = len(both[0]) - len(distinct)
    return report


def _numbers(
    values: NamedValues | None,
    entity_id: Index | NameTable,
    min_entities: int,
    report: BuildReport,
) -> tuple[list[str], Tensor | None]:
    if values is None:
        return [], None
    entity = _renumber(values.entity, entity_id.find(values.entities))
    is_ours = entity >= 0
    counts = np.bincount(values.attribute[is_ours], minlength=len(values.attributes))
    kept = np.flatnonzero(counts >= min_entities)
    column = np.full(len(values.attributes), -1)
    column[kept] = np.arange(len(kept))
    keep = is_ours & (column[values.attribute] >= 0)

    report.num_averaged = values.num_averaged
    report.num_unknown_values = values.notes.num_unknown
    report.wide_columns = list(values.notes.wide_columns)
    report.text_columns = list(values.notes.text_columns)
    report.num_foreign_values = int((~is_ours).sum())
    report.rare_attributes = [
        values.attributes[i]
        for i in np.flatnonzero(counts < min_entities).tolist()
        if values.attributes[i] not in report.text_columns
    ]
    x = np.full((len(entity_id), len(kept)), np.nan)
    x[entity[keep], column[values.attribute[keep]]] = values.value[keep]
    return [values.attributes[i] for i in kept.tolist()], torch.from_numpy(x)


def _as_tensors(triples: tuple[Ids, Ids, Ids]) -> FlatTriples:
    head, rel, tail = (torch.from_numpy(ids) for ids in triples)
    return head, rel, tail
