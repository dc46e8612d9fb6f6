"""Compares the answers to a query with a complete list of correct answers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.ids import as_ids, check_ids, check_shape
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.model import (
    ScoringModel,
    device_of,
    evaluating,
    kb_for,
    score_rows,
)
from kblrn_pyg.evaluation.ranks import Ids
from kblrn_pyg.kernels.ranking import Standings, rank_answers


@dataclass(frozen=True)
class QueryResult:
    r"""The quality of a model's answers to one query.

    Args:
        auc_pr (float): The area under the precision-recall curve over all
            entities.
        metrics (Metrics): The metrics of the ranks of the answers, each with
            the other answers removed.
    """

    auc_pr: float
    metrics: Metrics


def query_auc(
    model: ScoringModel,
    data: HeteroData | Data,
    relation: int | str,
    head: int | str | None = None,
    tail: int | str | None = None,
    answers: Sequence[int | str] = (),
) -> QueryResult:
    r"""Compares the answers to one query with a complete list of them.

    All answers count, including those known from training. These are scored as in
    training, where no fact is evidence for itself; otherwise, a self-loop of the
    head could make it so.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): The knowledge base.
        relation (int or str): The relation, by id or name.
        head (int or str, optional): The head, if tails are asked for.
            (default: :obj:`None`)
        tail (int or str, optional): The tail, if heads are asked for.
            (default: :obj:`None`)
        answers (sequence): All entities that complete the query.
    """
    if (head is None) == (tail is None):
        raise ValueError(
            f"exactly one of 'head' and 'tail' must be given (got {head} and {tail})"
        )
    names = Vocabulary.of(kb_for(model, data))
    true = np.unique([names.entities.find(one) for one in answers]).astype(np.int64)
    if len(true) == 0:
        raise ValueError("'answers' must name at least one entity (got none)")
    side, given = ("tail", head) if tail is None else ("head", tail)
    query = Queries(
        torch.tensor([names.entities.find(given)]),
        torch.tensor([names.relations.find(relation)]),
        side,
    )
    with evaluating(model):
        scores = score_rows(model, query, list(names.relations.identifiers))
        scores[0, true] -= _own_evidence(model, query, true)
    found = rank_one_query(scores, true, true)
    is_answer = np.zeros(model.num_nodes, np.bool_)
    is_answer[true] = True
    return QueryResult(
        auc_pr(scores[0], is_answer), Metrics.of(found.rank, found.num_candidates)
    )


def rank_one_query(scores: np.ndarray, answers: Ids, known: Ids) -> Standings:
    r"""Ranks answers to one query.

    Args:
        scores (numpy.ndarray): The scores of the query, :obj:`[1, num_nodes]`.
        answers (numpy.ndarray): The answers to rank.
        known (numpy.ndarray): The known answers, which do not compete.
    """
    scores = np.asarray(scores)
    if scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    if scores.dtype not in (np.float32, np.float64) or np.isnan(scores).any():
        raise ValueError(
            f"'scores' must be numbers, and not NaN (got an array of {scores.dtype})"
        )
    number = scores.shape[-1]
    check_shape("scores", scores, (1, number))
    answers, known = as_ids(answers, "answers"), as_ids(known, "known answers")
    check_ids({"answers": (answers, number)})
    check_ids({"known answers": (known, number)})
    known = np.unique(known)  # each of them is left out once
    row, known_ptr = np.zeros(len(answers), np.int64), np.array([0, len(known)])
    return rank_answers(scores, row, answers, known_ptr, known)


def _own_evidence(
    model: ScoringModel, query: Queries, answers: Ids
) -> np.ndarray | float:
    """Returns the contribution of each answer to its own score."""
    own_evidence = getattr(model, "own_evidence", None)
    if own_evidence is None:
        return 0.0
    device = device_of(model)
    triples = query.to(device).triples(torch.from_numpy(answers).to(device))
    return own_evidence(*triples).cpu().numpy()
