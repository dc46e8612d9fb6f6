"""The way from a model and a triple to its reasons."""

from collections.abc import Iterable

from torch_geometric.data import HeteroData

from kblrn_pyg.evaluation import evaluating
from kblrn_pyg.explain.parts import (
    Reader,
    body_reasons,
    number_reasons,
    scorer_reasons,
)
from kblrn_pyg.explain.reasons import Reasons
from kblrn_pyg.explain.standing import known_facts, standings
from kblrn_pyg.nn import KBLRN


def explain(
    model: KBLRN,
    head: int | str,
    relation: int | str,
    tail: int | str,
    max_middles: int | None = 5,
    known: Iterable[HeteroData] = (),
) -> Reasons:
    r"""Explains the score of a triple, exactly.

    The score is a sum, and this returns what it is the sum of: the score of
    each latent scorer, the weight of each body that holds, with the entities
    in its middle, and what each numerical attribute gives. It also tells the
    probability and the rank of the tail in :math:`(h, r, ?)` and of the head in
    :math:`(?, r, t)`, and the ranks that they had without one of the experts.

    Args:
        model (KBLRN): The model.
        head (int or str): The head, by id, name or identifier.
        relation (int or str): The relation.
        tail (int or str): The tail.
        max_middles (int, optional): How many of the entities in the middle of
            a body are named. If :obj:`None`, all are. (default: :obj:`5`)
        known (iterable, optional): Knowledge bases over the same entities and
            relations whose :obj:`edge_index` and :obj:`edge_label_index` are
            known, such as other splits: ranks leave other known answers out, as
            evaluation does. The :obj:`edge_index` of the knowledge base that
            the model was made of always is known. (default: :obj:`()`)

    Example:
        >>> import torch
        >>> from kblrn_pyg.datasets import Families
        >>> model = KBLRN.from_data(Families()[0], experts="r")
        >>> weight = torch.nn.init.ones_(model.relational.weight)
        >>> reasons = explain(
        ...     model, "Adea Hazelwright", "grandparent_of", "Selen Frostshaw"
        ... )
        >>> for body in reasons.relational:
        ...     print(body.weight, body.text, "with", body.middles[0].name)
        1.0 lives_in(h, x) ∧ born_in(t, x) with Bryvik
        1.0 parent_of(h, x) ∧ parent_of(x, t) with Hedon Frostshaw
        1.0 grandparent_of(h, x) ∧ sibling_of(x, t) with Falück Frostshaw
        >>> reasons.score, reasons.known, reasons.tail_query.rank
        (3.0, False, 2.5)
    """
    reader = Reader(model)
    if max_middles is not None and max_middles < 0:
        raise ValueError(f"'max_middles' must not be negative (got {max_middles})")
    names = reader.names
    triple = (
        names.entities.find(head),
        names.relations.find(relation),
        names.entities.find(tail),
    )
    answers = known_facts(reader.kb, triple[1], known)
    latent = relational = numerical = None
    with evaluating(model):
        if model.latent is not None:
            latent = scorer_reasons(model.latent, triple)
        if model.relational is not None:
            relational = body_reasons(model.relational, triple, reader, max_middles)
        if model.numerical is not None:
            numerical = number_reasons(model.numerical, triple, reader)
        tail_query, head_query = standings(model, triple, answers)
    facts = known_facts(reader.kb, triple[1])
    return Reasons(
        reader.entity(triple[0]),
        reader.relation(triple[1]),
        reader.entity(triple[2]),
        bool(((facts[0] == triple[0]) & (facts[1] == triple[2])).any()),
        latent,
        relational,
        numerical,
        tail_query,
        head_query,
    )
