"""The answers to one query beside a complete list of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.queries import Queries, relation_names, score_all
from kblrn_pyg.evaluation.ranks import HEAD, TAIL, Ids, relation_ids
from kblrn_pyg.evaluation.scorer import Scorer, device_of, evaluating, kb_for
from kblrn_pyg.kernels.ranking import rank_answers


@dataclass(frozen=True)
class QueryResult:
    r"""How well a model answers one query.

    Args:
        auc_pr (float): The area under the precision-recall curve over all
            entities.
        metrics (Metrics): What the ranks of the answers sum up to, each with
            the other answers removed.
    """

    auc_pr: float
    metrics: Metrics


def query_auc(
    model: Scorer,
    data: HeteroData,
    relation: int | str,
    head: int | str | None = None,
    tail: int | str | None = None,
    answers: Sequence[int | str] = (),
) -> QueryResult:
    r"""Compares the answers to one query with a complete list of them.

    All answers count, those that are known from training, too. These are scored
    as in training, where no fact is evidence for itself: by a self-loop of the
    head it could be.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The knowledge base.
        relation (int or str): The relation, by id or name.
        head (int or str, optional): The head, if tails are asked for.
            (default: :obj:`None`)
        tail (int or str, optional): The tail, if heads are asked for.
            (default: :obj:`None`)
        answers (sequence): All entities that complete the query.
    """
    if head is not None and tail is None:
        side, given = TAIL, head
    elif tail is not None and head is None:
        side, given = HEAD, tail
    else:
        raise ValueError(
            f"exactly one of 'head' and 'tail' must be given (got {head} and {tail})"
        )
    data = kb_for(model, data)
    names = relation_names(data)
    true = np.unique(_entity_ids(data, answers))
    if len(true) == 0:
        raise ValueError("'answers' must name at least one entity (got none)")
    queries = Queries(
        relations=names,
        side=side,
        given=_entity_ids(data, [given]),
        rel=np.array(relation_ids([relation], names)),
        known_ptr=np.array([0, len(true)]),
        known=true,
    )
    with evaluating(model):
        scores = score_all(model, queries, slice(0, 1))
        scores[0, true] -= _own_evidence(model, queries)
    row = np.zeros(len(true), np.int64)
    found = rank_answers(scores, row, true, queries.known_ptr, queries.known)
    is_answer = np.zeros(model.num_nodes, np.bool_)
    is_answer[true] = True
    return QueryResult(
        auc_pr(scores[0], is_answer),
        Metrics.of(1 + found.better + found.ties / 2, found.num_candidates),
    )


def _own_evidence(model: Scorer, queries: Queries) -> np.ndarray | float:
    """Returns the part of its score that each answer gives itself."""
    own_evidence = getattr(model, "own_evidence", None)
    if own_evidence is None:
        return 0.0
    answers = torch.from_numpy(queries.known).to(device_of(model))
    given, rel = (
        torch.from_numpy(column).to(answers.device).expand_as(answers)
        for column in (queries.given, queries.rel)
    )
    ends = (answers, given) if queries.side == HEAD else (given, answers)
    return own_evidence(ends[0], rel, ends[1]).cpu().numpy()


def _entity_ids(data: HeteroData, entities: Sequence[int | str]) -> Ids:
    names, num_nodes = Vocabulary.of(data).entities, data["entity"].num_nodes
    ids = np.array(
        [names.resolve(e) if isinstance(e, str) else e for e in entities], np.int64
    )
    outside = ids[(ids < 0) | (ids >= num_nodes)]
    if len(outside) > 0:
        raise ValueError(
            f"entities must lie in 0 to {num_nodes - 1} (got {outside[0]})"
        )
    return ids
