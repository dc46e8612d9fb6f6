"""Answers to requests: what the JSON interface returns for each question."""

import math
from collections.abc import Sequence
from typing import Any

import torch

from kblrn_pyg import __version__
from kblrn_pyg.app import schema
from kblrn_pyg.app.catalogue import Catalogue, examples
from kblrn_pyg.app.engine import Answer, Engine, Query
from kblrn_pyg.app.histograms import histograms
from kblrn_pyg.app.probability import measure_of
from kblrn_pyg.app.slots import Slots
from kblrn_pyg.data.words import in_words, value_text
from kblrn_pyg.nn.build import instance_of
from kblrn_pyg.nn.part import Part
from kblrn_pyg.predict import Predictions

_MAX_NEIGHBOURS = 5
_MAX_SLOTS = 60
_MAX_REASONS = 12
_MAX_PATHS = 6


class Asking:
    r"""All queries about a model, by name.

    Args:
        engine (Engine): The engine that scores queries.
        title (str): The title of the page.
    """

    def __init__(self, engine: Engine, title: str) -> None:
        self.engine, self.title = engine, title
        self.kb = engine.model.require_kb()
        self.slots = Slots(self.kb)
        self.names = Catalogue(engine.model, self.slots)
        self._info = self._describe()

    def warm_up(self) -> None:
        """Runs a query, so that the first user does not wait for kernels to
        compile."""
        for one in self._info.examples[:1]:
            query = Query(one.entity.id, one.relation.id, one.side)
            found = self.answers(query, 1, novel=False, experts=None)
            self.explanation(query, found.answers[0].entity.key, None)

    def model(self) -> schema.ModelInfo:
        """Describes the model."""
        return self._info

    def entities(self, letters: str, number: int) -> list[schema.Entity]:
        """Completes the name of an entity."""
        found = self.names.complete(letters, number)
        return [self.names.listed(i) for i in found]

    def relations(self, letters: str, number: int) -> list[schema.Thing]:
        """Completes the name of a relation."""
        found = self.names.complete_relation(letters, number)
        return [self.names.relation(i) for i in found]

    def entity(self, name: str) -> schema.EntityPage:
        """Returns the known facts of an entity, and its plausible relations."""
        i = self.names.find_entity(name)
        rows = [self._slot(i, *one) for one in self.slots.of(i)[:_MAX_SLOTS]]
        return schema.EntityPage(
            entity=self.names.listed(i), numbers=self._numbers(i), relations=rows
        )

    def query(self, entity: str, relation: str, side: str) -> Query:
        """Returns the query that a request names."""
        given = self.names.find_entity(entity)
        return Query(given, self.names.find_relation(relation), side)

    def answers(
        self, query: Query, k: int, novel: bool, experts: Sequence[str] | None
    ) -> schema.AnswerList:
        """Returns the best answers to a query."""
        engine = self.engine
        found = engine.answers(query, k, novel, experts)
        asked = [engine.experts[i] for i in engine.choice(experts)]
        return schema.AnswerList(
            question=self._question(query),
            experts=asked,
            measure=measure_of(engine.model, len(asked) == len(engine.experts)),
            num_candidates=engine.model.num_nodes,
            num_known=len(engine.known_answers(query)),
            answers=[self._row(one) for one in found],
        )

    def csv(
        self, query: Query, k: int, novel: bool, experts: Sequence[str] | None
    ) -> str:
        """Returns the best answers to a query as a table for spreadsheets."""
        found = self.engine.answers(query, k, novel, experts)
        with self.names.lock:
            return Predictions.of(
                self.engine.model.vocabulary,
                [query.triple(one.entity) for one in found],
                [one.score for one in found],
                [one.probability for one in found],
                [one.known for one in found],
                [instance_of(n for n, x in one.parts.items() if x) for one in found],
                [one.calibrated for one in found],  # type: ignore[misc]
            ).to_csv()

    def alone(self, query: Query, k: int, novel: bool) -> list[schema.Alone]:
        """Returns what each expert would answer alone."""
        return [
            schema.Alone(
                expert=name,
                speaks=expert.speaks_of(query.relation),  # type: ignore[operator]
                answers=[
                    self._row(one)
                    for one in self.engine.answers(query, k, novel, [name])
                ],
            )
            for name, expert in self.engine.model.experts.items()
        ]

    def explanation(
        self, query: Query, answer: str, experts: Sequence[str] | None
    ) -> schema.Explanation:
        """Explains the score of an answer."""
        engine, i = self.engine, self.names.find_entity(answer)
        asked = {engine.experts[place] for place in engine.choice(experts)}
        head, _, tail = query.triple(i)
        with engine.lock, torch.no_grad():
            found, parts = engine.standing(query, i, experts), engine.parts(query, i)
            drawn = {
                name: histograms(expert, self.kb, query.triple(i))
                for name, expert in engine.model.experts.items()
            }
        rows = [
            schema.ExpertReasons(
                name=name,
                asked=name in asked,
                score=found.parts[name],
                lift=found.lifts[name],
                rank_alone=found.alone[name],
                rank_without=found.without.get(name),
                reasons=[self._reason(one) for one in parts[name][:_MAX_REASONS]],
                num_reasons=len(parts[name]),
                rest=math.fsum(one.contribution for one in parts[name][_MAX_REASONS:]),
                histograms=[_plain(one._asdict()) for one in drawn[name]],
            )
            for name in engine.experts
        ]
        return schema.Explanation(
            question=self._question(query),
            answer=self.names.entity(i),
            head=self.names.entity(head),
            tail=self.names.entity(tail),
            known=i in engine.known_answers(query),
            score=found.score,
            probability=found.probability,
            calibrated=found.calibrated,
            rank=found.rank,
            num_candidates=found.num_candidates,
            experts=rows,
        )

    def _describe(self) -> schema.ModelInfo:
        model = self.engine.model
        experts = [
            schema.ExpertInfo(name=name, description=expert.extra_repr())
            for name, expert in model.experts.items()
        ]
        return schema.ModelInfo(
            title=self.title,
            version=__version__,
            num_entities=model.num_nodes,
            num_relations=model.num_relations,
            num_facts=int(self.slots.num_facts.sum()) // 2,
            experts=experts,
            examples=examples(self.names, self.slots),
        )

    def _slot(
        self, entity: int, relation: int, side: str, num_known: int, likely: float
    ) -> schema.RelationOfEntity:
        near = self.slots.neighbours(entity, relation, side)[:_MAX_NEIGHBOURS]
        return schema.RelationOfEntity(
            relation=self.names.relation(relation),
            side=side,  # type: ignore[arg-type]
            num_known=num_known,
            likely=likely,
            neighbours=[self.names.entity(i) for i in near.tolist()],
        )

    def _numbers(self, entity: int) -> list[schema.Number]:
        row = self.kb["entity"].x[entity].tolist() if len(self.names.attributes) else []
        return [
            schema.Number(
                attribute=in_words(self.names.attributes[i]),
                value=value,
                text=value_text(self.names.attributes[i], value),
            )
            for i, value in enumerate(row)
            if math.isfinite(value)
        ]

    def _question(self, query: Query) -> schema.Question:
        return schema.Question(
            entity=self.names.entity(query.entity),
            relation=self.names.relation(query.relation),
            side=query.side,  # type: ignore[arg-type]
        )

    def _row(self, one: Answer) -> schema.AnswerRow:
        values = one._asdict() | {"entity": self.names.entity(one.entity)}
        return schema.AnswerRow(**values)

    def _reason(self, part: Part) -> schema.ReasonRow:
        paths = [
            [
                schema.Fact(
                    head=self.names.entity(h),
                    relation=self.names.relation(r),
                    tail=self.names.entity(t),
                )
                for h, r, t in path
            ]
            for path in part.paths[:_MAX_PATHS]
        ]
        return schema.ReasonRow(
            contribution=part.contribution,
            words=self.names.words(part.words),
            note=self.names.words(part.note),
            paths=paths,
            num_paths=len(part.paths),
            own=part.own,
            details=_plain(dict(part.details)),
        )


def _plain(value: Any) -> Any:
    """Replaces numbers that JSON does not know, at any depth."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    is_bad = isinstance(value, float) and not math.isfinite(value)
    return None if is_bad else value
