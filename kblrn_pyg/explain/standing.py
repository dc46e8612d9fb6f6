"""Where an answer ranks, with all experts and without each of them."""

import numpy as np
import torch

from kblrn_pyg.data.known import KnownFacts
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation import rank_one_query, score_rows
from kblrn_pyg.explain.reasons import Standing
from kblrn_pyg.nn import KBLRN


def standing(
    model: KBLRN, triple: tuple[int, int, int], side: str, known: KnownFacts
) -> Standing:
    r"""Ranks the head of a triple among all heads, or the tail among all tails.

    Args:
        model (KBLRN): The model, in evaluation mode.
        triple (tuple): The triple.
        side (str): The side that is asked for.
        known (KnownFacts): The facts whose answers are not candidates.
    """
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
