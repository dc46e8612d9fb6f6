"""The plausible queries of a relation, and the best triples that they give."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.candidates import Candidates, single_valued
from kblrn_pyg.data.known import KnownFacts
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.predict.answers import Ids, Scores, judged, largest, score_queries
from kblrn_pyg.predict.predictions import Predictions

# In place of the probability of what is not to be proposed.
_OUT = -1.0
_OTHER = dict(zip(SIDES, reversed(SIDES)))


class SensibleQueries(NamedTuple):
    r"""The plausible queries of a relation, for one side.

    Args:
        queries (Queries): The queries.
        answers (numpy.ndarray): The entities that may answer them.
        is_single (bool): Whether they have one answer.
        has_loops (bool): Whether an entity may be its own answer.
    """

    queries: Queries
    answers: Ids
    is_single: bool
    has_loops: bool


def sensible_queries(
    kb: HeteroData, relations: Iterable[int], candidates: str
) -> Iterator[list[SensibleQueries]]:
    r"""Returns the plausible queries of each relation; see :meth:`complete`.

    Args:
        kb (HeteroData): The knowledge base.
        relations (iterable): The relations.
        candidates (str): See :meth:`complete`.
    """
    num_nodes, allowed = kb["entity"].num_nodes, Candidates(kb, candidates)
    single = single_valued(kb)
    head, rel, tail = (index.cpu().numpy() for index in flat_triples(kb))
    # Role 2r is to be a head of relation r, role 2r + 1 to be a tail of it.
    codes = np.concatenate(
        [2 * rel * num_nodes + head, (2 * rel + 1) * num_nodes + tail]
    )
    role, entity = np.divmod(np.unique(codes), num_nodes)
    has_loops = np.zeros(len(kb.edge_types), bool)
    has_loops[rel[head == tail]] = True
    for relation in relations:
        sides = []
        for side in reversed(SIDES):
            if candidates == "observed":
                asked = 2 * relation + SIDES.index(_OTHER[side])
                given = _of_a_kind(role, entity, asked, num_nodes)
            else:
                given = allowed.of(relation, _OTHER[side])
            ids = torch.from_numpy(given)
            queries = Queries(ids, torch.full_like(ids, relation), side)
            choices = bool(single[side][relation]), bool(has_loops[relation])
            answers = allowed.of(relation, side)
            sides.append(SensibleQueries(queries, answers, *choices))
        yield sides


def _of_a_kind(role: Ids, entity: Ids, asked: int, num_nodes: int) -> Ids:
    """Returns the entities in a role, and those in roles that half share it."""
    has_role = np.zeros(num_nodes, np.bool_)
    has_role[entity[role == asked]] = True
    size = np.bincount(role)
    shared = np.bincount(role[has_role[entity]], minlength=len(size))
    return np.unique(entity[2 * shared[role] >= size[role]])


class BestTriples:
    r"""The most probable triples so far, without duplicates.

    Args:
        k (int): The maximum number of triples.
        num_nodes (int): The number of entities.
    """

    def __init__(self, k: int, num_nodes: int) -> None:
        self._k, self._num_nodes = k, num_nodes
        # The code, the score and the probability of each.
        self.columns = [np.empty(0, np.int64), np.empty(0), np.empty(0)]

    def offer(
        self, queries: Queries, answers: Ids, scores: Scores, probability: Scores
    ) -> None:
        r"""Adds those triples that are among the best.

        Args:
            queries (Queries): The queries.
            answers (numpy.ndarray): The entities that may answer them.
            scores (numpy.ndarray): The scores of all entities.
            probability (numpy.ndarray): Their probabilities, negative for entities
                that must not be proposed.
        """
        offered = probability[:, answers]
        # What is below the last of the best cannot win any more.
        least = self.columns[2][self._k - 1 :]
        row, column = np.nonzero(offered >= (least[0] if len(least) else 0))
        first = largest(offered[row, column], self._k)
        row, answer = row[first], answers[column[first]]
        asked = queries[torch.from_numpy(row)]
        self.offer_answers(asked, answer, scores[row, answer], probability[row, answer])

    def offer_answers(
        self, queries: Queries, answer: Ids, scores: Scores, probability: Scores
    ) -> None:
        r"""Adds those triples that are among the best, with one answer to each
        query.

        Args:
            queries (Queries): The queries.
            answer (numpy.ndarray): The answers.
            scores (numpy.ndarray): Their scores.
            probability (numpy.ndarray): Their probabilities.
        """
        triples = queries.triples(torch.from_numpy(answer))
        h, r, t = (index.numpy() for index in triples)
        code = (r * self._num_nodes + h) * self._num_nodes + t
        self.take([code, scores, probability])

    def take(self, new: list[Any]) -> None:
        r"""Adds triples by their codes, scores and probabilities.

        Args:
            new (list): These three columns.
        """
        columns = [np.concatenate(both) for both in zip(self.columns, new)]
        order = np.lexsort((columns[0], -columns[2]))
        # The better one of a triple's two probabilities comes first.
        _, first = np.unique(columns[0][order], return_index=True)
        order = order[np.sort(first)[: self._k]]
        self.columns = [column[order] for column in columns]

    def named(self, model: KBLRN, min_probability: float | None = None) -> Predictions:
        r"""Returns them with their names, the best first.

        Args:
            model (KBLRN): The model, in evaluation mode.
            min_probability (float, optional): See :meth:`complete`.
                (default: :obj:`None`)
        """
        code, score, probability = self.columns
        rest, tail = np.divmod(code, self._num_nodes)
        rel, head = np.divmod(rest, self._num_nodes)
        queries = Queries(torch.from_numpy(head), torch.from_numpy(rel), "tail")
        experts, sure = judged(model, queries, torch.from_numpy(tail))
        keep = np.arange(len(code))
        if min_probability is not None:
            keep = np.flatnonzero(np.array(sure) >= min_probability)
        ids = (column[keep].tolist() for column in (head, rel, tail))
        columns = score[keep].tolist(), probability[keep].tolist(), [False] * len(keep)
        return Predictions.of(
            model.vocabulary,
            list(zip(*ids)),
            *columns,
            [experts[i] for i in keep],
            None if sure is None else [sure[i] for i in keep],
        )


def propose(
    model: KBLRN,
    facts: KnownFacts,
    sides: Sequence[SensibleQueries],
    best: BestTriples,
    done: Callable[[int], object],
) -> None:
    r"""Offers the triples of a relation.

    Args:
        model (KBLRN): The model, in evaluation mode.
        facts (KnownFacts): The known facts, which are not proposed.
        sides (sequence): The queries of the relation.
        best (BestTriples): The collection of the best triples.
        done (callable): Called with the number of queries that are done.
    """
    single = [side for side in sides if side.is_single]
    # Of each entity, the one answer that it may get, on the sides with a single one.
    only = {side.queries.side: np.full(model.num_nodes, -1) for side in single}
    found = []
    for side in single:
        tops = list(_best_answers(model, facts, side))
        for queries, answer, _, _ in tops:
            only[side.queries.side][queries.entity.numpy()] = answer
        found.append(tops)
        done(len(side.queries))
    for tops in found:
        for queries, answer, scores, probability in tops:
            keep = np.ones(len(answer), bool)
            if (other := _OTHER[queries.side]) in only:
                keep = only[other][answer] == queries.entity.numpy()
            rows = queries[torch.from_numpy(np.flatnonzero(keep))]
            best.offer_answers(rows, answer[keep], scores[keep], probability[keep])
    for side in sides:
        if side.is_single:
            continue
        for queries, scores, probability in score_queries(model, side.queries):
            _leave_out(queries, facts, side.has_loops, probability)
            given = queries.entity.numpy()[:, None]
            if (other := _OTHER[queries.side]) in only:
                probability[only[other][None, :] != given] = _OUT
            best.offer(queries, side.answers, scores, probability)
            done(len(queries))


def _best_answers(
    model: KBLRN, facts: KnownFacts, side: SensibleQueries
) -> Iterator[tuple[Queries, Ids, Scores, Scores]]:
    """Answers the queries that have no known answer by the most probable entity."""
    is_open = np.diff(facts.answers(side.queries).ptr) == 0
    asked = side.queries[torch.from_numpy(np.flatnonzero(is_open))]
    if len(side.answers) == 0:
        return
    for queries, scores, probability in score_queries(model, asked):
        _leave_out(queries, facts, side.has_loops, probability)
        answer = side.answers[probability[:, side.answers].argmax(axis=1)]
        row = np.arange(len(answer))
        keep = np.flatnonzero(probability[row, answer] >= 0)
        at = row[keep], answer[keep]
        rows = queries[torch.from_numpy(keep)]
        yield rows, at[1], scores[at], probability[at]


def _leave_out(
    queries: Queries, facts: KnownFacts, has_loops: bool, probability: Scores
) -> None:
    """Marks known answers, and entities that may not answer for themselves."""
    row, found = np.arange(len(queries)), facts.answers(queries)
    probability[np.repeat(row, np.diff(found.ptr)), found.entity] = _OUT
    if not has_loops:
        probability[row, queries.entity.numpy()] = _OUT
