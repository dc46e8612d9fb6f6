"""The scores of single queries by each expert, computed once and cached."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kblrn_pyg.app.probability import calibrated, shares
from kblrn_pyg.data.ids import IdRanges, check_id
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation import device_of, rank_one_query
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.one_thread import one_torch_thread
from kblrn_pyg.nn.part import Part
from kblrn_pyg.predict.answers import largest

Ids = NDArray[np.int64]
Scores = NDArray[np.floating]

# How many bytes of scores are remembered.
_MAX_BYTES = 1 << 26


class Query(NamedTuple):
    r"""A query: an entity, a relation, and the side of the answer.

    Args:
        entity (int): The entity that is given.
        relation (int): The relation.
        side (str): :obj:`"tail"` for :math:`(h, r, ?)`, :obj:`"head"` for
            :math:`(?, r, t)`.
    """

    entity: int
    relation: int
    side: str

    def triple(self, answer: int) -> tuple[int, int, int]:
        """Returns the triple that an answer makes of the query."""
        if self.side == "head":
            return answer, self.relation, self.entity
        return self.entity, self.relation, answer


class Answer(NamedTuple):
    """An entity that answers a query, with the contribution of each expert."""

    entity: int
    rank: int  # the place in the list, from 1
    rank_of_all: int  # the place in the list of all experts together
    score: float
    probability: float
    calibrated: float | None  # how probable it is that the triple is true
    known: bool
    parts: dict[str, float]  # the score of each expert
    lifts: dict[str, float]  # the same, above the average of all entities


class Standing(NamedTuple):
    """The rank of an answer, filtered as in evaluation, also by each expert."""

    score: float
    probability: float
    calibrated: float | None
    rank: float
    num_candidates: int
    alone: dict[str, float]  # by each expert alone
    without: dict[str, float]  # by the chosen experts without one of them
    parts: dict[str, float]
    lifts: dict[str, float]


class Engine:
    r"""Answers single queries of many users, with any choice of experts.

    The scores of all entities are computed once for each query and expert; for a
    choice of experts, their rows are added. Several threads may call the methods;
    only one of them computes at a time.

    Args:
        model (KBLRN): The model, which is switched to evaluation mode.
    """

    def __init__(self, model: KBLRN) -> None:
        self.model = model
        self.experts = list(model.experts)
        self.lock = threading.RLock()
        self.known = model.known_facts
        self._rows: OrderedDict[Query, NDArray[np.float64]] = OrderedDict()
        self._device = device_of(model)
        self._ids = IdRanges(model.num_nodes, model.num_relations)
        self._stack = ExitStack()
        model.eval()
        with torch.no_grad():  # what is the same for all queries is computed once
            self._stack.enter_context(model.encoded(None))

    def close(self) -> None:
        """Clears the cached results of all queries."""
        self._stack.close()

    def choice(self, names: Sequence[str] | None) -> list[int]:
        r"""Returns the places of experts.

        Args:
            names (sequence, optional): Their names. (default: :obj:`None`, all)
        """
        if names is None:
            return list(range(len(self.experts)))
        unknown = [name for name in names if name not in self.experts]
        if unknown or not names:
            got = ", ".join(unknown) or "none"
            raise ValueError(
                f"'experts' must be among {', '.join(self.experts)} (got {got})"
            )
        return sorted({self.experts.index(name) for name in names})

    def answers(
        self, query: Query, k: int, novel: bool = False, experts: Any = None
    ) -> list[Answer]:
        r"""Returns the best answers to a query.

        Args:
            query (Query): The query.
            k (int): The maximum number of answers.
            novel (bool, optional): Whether known answers are left out.
                (default: :obj:`False`)
            experts (sequence, optional): The names of the experts to use.
                (default: :obj:`None`, all)
        """
        if k < 0:
            raise ValueError(f"'k' must not be negative (got {k})")
        chosen = self.choice(experts)
        with self.lock:
            rows, known = self.rows(query), self.known_answers(query)
            scores = rows[chosen].sum(axis=0)
            values = shares(scores)
            candidates = np.arange(len(scores))
            if novel:
                candidates = np.delete(candidates, known)
            best = candidates[largest(scores[candidates], k)]
            is_known = np.isin(best, known)
            sure = self._calibrated(query, best, chosen)
        by_all, means = rows.sum(axis=0), rows.mean(axis=1)
        ranks = [1 + int((by_all[candidates] > by_all[i]).sum()) for i in best]
        return [
            Answer(
                int(entity),
                place,
                rank,
                float(scores[entity]),
                float(values[entity]),
                true,
                bool(one),
                self._named(rows[:, entity]),
                self._named(rows[:, entity] - means),
            )
            for place, (entity, rank, one, true) in enumerate(
                zip(best, ranks, is_known, sure), start=1
            )
        ]

    def standing(self, query: Query, answer: int, experts: Any = None) -> Standing:
        r"""Returns the rank of an answer, and its rank by each expert.

        Args:
            query (Query): The query.
            answer (int): The entity.
            experts (sequence, optional): See :meth:`answers`.
                (default: :obj:`None`, all)
        """
        chosen = self.choice(experts)
        answer = check_id(answer, "entity", self.model.num_nodes)
        with self.lock:
            rows, known = self.rows(query), self.known_answers(query)
            scores = rows[chosen].sum(axis=0)
            values = shares(scores)
            sure = self._calibrated(query, np.array([answer]), chosen)

        def rank(row: NDArray[np.float64]) -> Any:
            return rank_one_query(row[None], np.array([answer]), known)

        found = rank(scores)
        without = {
            self.experts[i]: float(rank(scores - rows[i]).rank[0])
            for i in chosen
            if len(chosen) > 1
        }
        return Standing(
            float(scores[answer]),
            float(values[answer]),
            sure[0],
            float(found.rank[0]),
            int(found.num_candidates[0]),
            {name: float(rank(row).rank[0]) for name, row in zip(self.experts, rows)},
            without,
            self._named(rows[:, answer]),
            self._named(rows[:, answer] - rows.mean(axis=1)),
        )

    def parts(self, query: Query, answer: int) -> dict[str, list[Part]]:
        r"""Returns the reasons of each expert, the strongest first.

        Args:
            query (Query): The query.
            answer (int): The entity.
        """
        self._queries(query)  # which refuses other ids
        answer = check_id(answer, "entity", self.model.num_nodes)
        triple, experts = query.triple(answer), self.model.experts
        with self.lock, torch.no_grad():
            found = {
                name: list(expert.parts(*triple, side=query.side))  # type: ignore[operator]
                for name, expert in experts.items()
            }
        return {
            name: sorted(parts, key=lambda part: -abs(part.contribution))
            for name, parts in found.items()
        }

    def known_answers(self, query: Query) -> Ids:
        """Returns the known answers to a query."""
        return self.known.answers(self._queries(query)).entity

    def rows(self, query: Query) -> NDArray[np.float64]:
        """Returns a row of the scores of all entities for each expert."""
        with self.lock:
            found = self._rows.get(query)
            if found is None:
                found = self._score(query)
                self._rows[query] = found
                size = sum(row.nbytes for row in self._rows.values())
                while size > _MAX_BYTES and len(self._rows) > 1:
                    size -= self._rows.popitem(last=False)[1].nbytes
            self._rows.move_to_end(query)
        return found

    def _score(self, query: Query) -> NDArray[np.float64]:
        queries = self._queries(query).to(self._device)
        with torch.no_grad(), one_torch_thread():  # one query is too little for more
            rows = [self._one(one, queries) for one in self.model.experts.values()]
        scores = torch.cat(rows).double().cpu().numpy()
        if not np.isfinite(scores).all():
            raise ValueError("the scores of the model must be finite")
        return scores

    def _one(self, expert: Any, queries: Queries) -> Tensor:
        factors = expert.factors(queries)
        if factors is None:
            return expert.score_all(queries, self.model.num_nodes)
        # One query is not worth a copy of all tables side by side.
        parts = factors.query.split([one.size(1) for one in factors.tables], dim=1)
        products = [one @ table.t() for one, table in zip(parts, factors.tables)]
        return sum(products[1:], start=products[0])

    def _calibrated(self, query: Query, answers: Ids, chosen: list[int]) -> list[Any]:
        asks_all = len(chosen) == len(self.experts)
        return calibrated(self.model, self._queries(query), answers, asks_all)

    def _queries(self, query: Query) -> Queries:
        entity = check_id(query.entity, "entity", self._ids.num_nodes)
        relation = check_id(query.relation, "relation", self._ids.num_relations)
        return Queries(torch.tensor([entity]), torch.tensor([relation]), query.side)

    def _named(self, values: Scores) -> dict[str, float]:
        return dict(zip(self.experts, values.tolist()))
