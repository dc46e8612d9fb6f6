"""What each expert gave to the score of one triple."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.names import shorten
from kblrn_pyg.explain.reasons import (
    Atom,
    BodyReason,
    Named,
    NumberReason,
    ScorerReason,
)
from kblrn_pyg.nn import KBLRN, LatentExpert, NumericalExpert, RelationalExpert
from kblrn_pyg.nn.scorers import compare
from kblrn_pyg.rules import body_text
from kblrn_pyg.rules.text import atoms

Triple = tuple[int, int, int]
Part = TypeVar("Part", ScorerReason, BodyReason, NumberReason)


class Reader:
    r"""Gives ids their names, those of relations shortened.

    Args:
        model (KBLRN): The model, which must know its knowledge base.
    """

    def __init__(self, model: KBLRN) -> None:
        if model.kb is None:
            raise ValueError(
                "'model' must know its knowledge base: make it by 'KBLRN.from_data', "
                "or set 'model.kb'"
            )
        self.kb = model.kb
        self.names = Vocabulary.of(model.kb)
        self.short = shorten(self.names.relations.identifiers)

    def entity(self, i: int) -> Named:
        names = self.names.entities
        return Named(i, names.unique(i), names.identifiers[i])

    def relation(self, i: int) -> Named:
        return Named(i, self.short[i], self.names.relations.identifiers[i])

    def attribute(self, i: int) -> Named:
        names = self.names.attributes
        return Named(i, names[i], names.identifiers[i])


def scorer_reasons(expert: LatentExpert, triple: Triple) -> tuple[ScorerReason, ...]:
    r"""Returns what each scorer of the latent expert gave.

    Args:
        expert (LatentExpert): The expert.
        triple (tuple): The triple.
    """
    head, rel, tail = torch.tensor(triple, device=expert.device).split(1)
    compared = zip(expert.scorers, expert.tail_queries(head, rel), expert.tables())
    return _strongest_first(
        [
            ScorerReason(
                type(scorer).__name__, float(compare(scorer, query, rows[tail]))
            )
            for scorer, query, rows in compared
        ]
    )


def body_reasons(
    expert: RelationalExpert, triple: Triple, reader: Reader, max_middles: int | None
) -> tuple[BodyReason, ...]:
    r"""Returns the bodies that hold, with the entities in their middle.

    Args:
        expert (RelationalExpert): The expert.
        triple (tuple): The triple.
        reader (Reader): Who knows the names.
        max_middles (int or None): How many middle entities are named for each
            body; :obj:`None` for all.
    """
    head, _, tail = triple
    features = expert.features
    words = replace(features.rules, relations=reader.short)
    own = features.own_evidence(*(np.array([i]) for i in triple)).rule.tolist()
    found = []
    for rule, weight in expert.contributions(*triple):
        middles = features.middles(rule, head, tail).tolist()
        found.append(
            BodyReason(
                rule,
                body_text(words, rule),
                tuple(
                    Atom(reader.relation(relation), start, end)
                    for relation, start, end in atoms(words, rule)
                ),
                weight,
                rule in own,
                tuple(reader.entity(i) for i in middles[:max_middles]),
                len(middles),
            )
        )
    return _strongest_first(found)


def number_reasons(
    expert: NumericalExpert, triple: Triple, reader: Reader
) -> tuple[NumberReason, ...]:
    r"""Returns what each attribute of the relation gave, unknown ones last.

    Args:
        expert (NumericalExpert): The expert.
        triple (tuple): The triple.
        reader (Reader): Who knows the names.
    """
    head, rel, tail = triple
    known = {
        feature: (difference, active)
        for feature, difference, active, _ in expert.contributions(*triple)
    }
    found = []
    for i in range(int(expert.ptr[rel]), int(expert.ptr[rel + 1])):
        attribute = int(expert.attribute[i])
        difference, active = known.get(i, (None, 0.0))
        centre = width = None
        if expert.activation == "rbf":
            centre = float(expert.centre[i])
            width = float(expert.log_width[i].double().exp())
        found.append(
            NumberReason(
                reader.attribute(attribute),
                _known(float(expert.x[head, attribute])),
                _known(float(expert.x[tail, attribute])),
                difference,
                centre,
                width,
                active,
                float(expert.weight[i]),
            )
        )
    return _strongest_first(found, lambda number: number.difference is None)


def _strongest_first(
    parts: Sequence[Part], is_unknown: Callable[[Part], bool] = lambda part: False
) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda p: (is_unknown(p), -abs(p.contribution))))


def _known(value: float) -> float | None:
    return value if value == value else None  # NaN, the unknown, differs from itself
