"""Computes the reasons for the score of a triple."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.known import KnownFacts
from kblrn_pyg.data.names import shorten
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.evaluation import evaluating, listed, rank_one_query, score_rows
from kblrn_pyg.explain.reasons import Named, NamedFact, Reason, Reasons, Standing, Words
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.part import Fact, Part, Ref


def explain(
    model: KBLRN,
    head: int | str,
    relation: int | str,
    tail: int | str,
    max_middles: int | None = 5,
    known: Iterable[HeteroData | Data] = (),
) -> Reasons:
    r"""Explains the score of a triple, exactly.

    The score is a sum, and this function returns its terms: the parts of each
    expert, such as the score of a latent scorer, the weight of a body that holds,
    with its middle entities, and the contribution of a numerical attribute. It also
    returns the probability and the rank of the tail in :math:`(h, r, ?)` and of the
    head in :math:`(?, r, t)`, and the ranks that they would have without one of the
    experts.

    Args:
        model (KBLRN): The model.
        head (int or str): The head, by id, name or identifier.
        relation (int or str): The relation.
        tail (int or str): The tail.
        max_middles (int, optional): The maximum number of paths with middle
            entities to name for each part. If :obj:`None`, all are named.
            (default: :obj:`5`)
        known (iterable, optional): Knowledge bases over the same entities and
            relations whose :obj:`edge_index` and :obj:`edge_label_index` are known,
            such as other splits: ranks leave out other known answers, as in
            evaluation. The :obj:`edge_index` of the knowledge base that the model
            was created from, and :obj:`model.known`, are always known.
            (default: :obj:`()`)

    Example:
        >>> import torch
        >>> from kblrn_pyg.datasets import Families
        >>> model = KBLRN.from_data(Families()[0], experts="r")
        >>> weight = torch.nn.init.ones_(model.experts["relational"].weight)
        >>> reasons = explain(
        ...     model, "Adea Hazelwright", "grandparent_of", "Selen Frostshaw"
        ... )
        >>> for part in reasons.parts["relational"]:
        ...     print(part.contribution, part.text, "with", part.middles[0].name)
        1.0 lives_in(h, x) ∧ born_in(t, x) with Bryvik
        1.0 parent_of(h, x) ∧ parent_of(x, t) with Hedon Frostshaw
        1.0 grandparent_of(h, x) ∧ sibling_of(x, t) with Falück Frostshaw
        >>> reasons.score, reasons.known, reasons.tail_query.rank
        (3.0, False, 2.5)
    """
    kb, names = model.require_kb(), model.vocabulary
    if max_middles is not None and max_middles < 0:
        raise ValueError(f"'max_middles' must not be negative (got {max_middles})")
    triple = (
        names.entities.find(head),
        names.relations.find(relation),
        names.entities.find(tail),
    )
    facts = model.known_facts.including(listed(known, "known"))
    reader = _Reader(names, triple, max_middles)
    experts: dict[str, Any] = dict(model.experts.items())
    with evaluating(model):
        parts = {
            name: reader.reasons(expert.parts(*triple))
            for name, expert in experts.items()
        }
        head_query, tail_query = (
            _standing(model, triple, side, facts) for side in SIDES
        )
    query = Queries(torch.tensor(triple[:1]), torch.tensor(triple[1:2]), "tail")
    return Reasons(
        **vars(reader.fact(triple)),
        known=triple[2] in KnownFacts(kb).answers(query).entity,
        parts=parts,
        tail_query=tail_query,
        head_query=head_query,
    )


def _standing(model: KBLRN, triple: Fact, side: str, known: KnownFacts) -> Standing:
    """Ranks the head of a triple among all heads, or the tail among all tails."""
    head, rel, tail = torch.tensor(triple).split(1)
    query = Queries.of_triples(head, rel, tail, side)
    answer = np.array([triple[0] if side == "head" else triple[2]])
    names = list(model.vocabulary.relations.identifiers)
    models = {"": model}
    if len(model.experts) > 1:
        models |= {name: model.without(name) for name in model.experts}
    rows = {name: score_rows(one, query, names) for name, one in models.items()}
    others = known.answers(query).entity
    found = {
        name: rank_one_query(scores, answer, others) for name, scores in rows.items()
    }
    ranks = {name: float(one.rank[0]) for name, one in found.items()}
    row = torch.from_numpy(rows[""][0]).double()
    return Standing(
        float(row.softmax(dim=0)[answer[0]]),
        ranks.pop(""),
        ranks,
        int(found[""].num_candidates[0]),
    )


class _Reader:
    """Adds names to the parts of a triple's score."""

    def __init__(self, names: Vocabulary, triple: Fact, max_middles: int | None):
        self.names, self.max_middles = names, max_middles
        self.short = shorten(names.relations.identifiers)
        self.ends = (triple[0], triple[2])
        self.named: dict[str, Callable[[int], Named]] = {
            "entity": self.entity,
            "relation": self.relation,
            "attribute": self.attribute,
        }

    def entity(self, i: int) -> Named:
        names = self.names.entities
        return Named(i, names.unique(i), names.identifiers[i])

    def relation(self, i: int) -> Named:
        return Named(i, self.short[i], self.names.relations.identifiers[i])

    def attribute(self, i: int) -> Named:
        names = self.names.attributes
        return Named(i, names[i], names.identifiers[i])

    def fact(self, fact: Fact) -> NamedFact:
        head, rel, tail = fact
        return NamedFact(self.entity(head), self.relation(rel), self.entity(tail))

    def reasons(self, parts: list[Part]) -> tuple[Reason, ...]:
        """Names the parts of an expert, the strongest first."""
        order = sorted(parts, key=lambda part: -abs(part.contribution))
        return tuple(map(self.reason, order))

    def reason(self, part: Part) -> Reason:
        middles = [_middles(path, *self.ends) for path in part.paths]
        with_middle = (i for i, some in enumerate(middles) if some)
        named = set(islice(with_middle, self.max_middles))
        kept = [i for i, some in enumerate(middles) if i in named or not some]
        return Reason(
            part.contribution,
            self.words(part.words),
            self.words(part.note),
            tuple(tuple(map(self.fact, part.paths[i])) for i in kept),
            len(part.paths),
            part.own,
            part.details,
            tuple(map(self.entity, dict.fromkeys(e for i in kept for e in middles[i]))),
        )

    def words(self, words: tuple[str | Ref, ...]) -> Words:
        return tuple(
            word if isinstance(word, str) else self.named[word.kind](word.id)
            for word in words
        )


def _middles(path: tuple[Fact, ...], head: int, tail: int) -> list[int]:
    """Returns the entities that a path passes between head and tail."""
    entities = dict.fromkeys(e for h, _, t in path for e in (h, t))
    found = [entity for entity in entities if entity not in (head, tail)]
    if found or head == tail or len(path) == 1:
        return found
    # With a self-loop, the head or the tail itself is the middle.
    return [h for h, _, t in path if h == t]
