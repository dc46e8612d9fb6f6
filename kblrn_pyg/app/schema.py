"""The response models of the JSON interface; they define its OpenAPI description."""

from typing import Any, Literal

from pydantic import BaseModel, Field

Side = Literal["tail", "head"]


class Thing(BaseModel):
    """An entity or a relation."""

    id: int
    key: str = Field(description="what the interface takes for it, in links, too")
    name: str = Field(description="a name to read")
    identifier: str = Field(description="its whole name")


class Entity(Thing):
    """An entity in a list to choose from."""

    num_facts: int = Field(description="how many known facts it is part of")


class Question(BaseModel):
    """An entity, a relation, and the side of the answer."""

    entity: Thing
    relation: Thing
    side: Side


class ExpertInfo(BaseModel):
    """An expert of the model."""

    name: str
    description: str


class ModelInfo(BaseModel):
    """The model."""

    title: str
    version: str
    num_entities: int
    num_relations: int
    num_facts: int
    experts: list[ExpertInfo]
    examples: list[Question]


class Number(BaseModel):
    """A number of an entity."""

    attribute: str
    value: float
    text: str


class RelationOfEntity(BaseModel):
    """A plausible relation of an entity."""

    relation: Thing
    side: Side
    num_known: int = Field(description="how many answers are known")
    likely: float = Field(
        description="the fraction of entities of the same kind that have answers"
    )
    neighbours: list[Thing] = Field(description="some of the known answers")


class EntityPage(BaseModel):
    """The known facts of an entity, and its plausible relations."""

    entity: Entity
    numbers: list[Number]
    relations: list[RelationOfEntity]


class AnswerRow(BaseModel):
    """An answer with the contribution of each expert."""

    rank: int
    rank_of_all: int = Field(description="its rank if all experts are asked")
    entity: Thing
    probability: float = Field(description="the share of the softmax over all entities")
    calibrated: float | None = Field(
        description="the probability that the triple is true, if the model is "
        "calibrated and all experts are asked"
    )
    score: float
    known: bool
    parts: dict[str, float] = Field(description="the score of each expert")
    lifts: dict[str, float] = Field(
        description="the same, above the average of all entities"
    )


class AnswerList(BaseModel):
    """The best answers to a query."""

    question: Question
    experts: list[str] = Field(description="the experts that were asked")
    measure: str = Field(description="what the bars of the page are")
    num_candidates: int
    num_known: int
    answers: list[AnswerRow]


class Alone(BaseModel):
    """The answers of one expert alone."""

    expert: str
    speaks: bool = Field(description="whether it knows anything of the relation")
    answers: list[AnswerRow]


class Word(BaseModel):
    """A piece of a sentence, possibly a name."""

    text: str
    kind: Literal["entity", "relation", "attribute"] | None = None
    key: str | None = None


class Fact(BaseModel):
    """A known fact."""

    head: Thing
    relation: Thing
    tail: Thing


class ReasonRow(BaseModel):
    """One of the terms of an expert's score."""

    contribution: float
    words: list[Word]
    note: list[Word]
    paths: list[list[Fact]]
    num_paths: int
    own: bool = Field(description="whether it holds by the asked fact itself")
    details: dict[str, Any]


class NumberHistogram(BaseModel):
    """A number of the triple compared with those of all training triples."""

    attribute: str
    compared: str
    is_log: bool
    edges: list[float]
    counts: list[int]
    num_triples: int
    num_outside: int
    curve_x: list[float]
    curve_y: list[float]
    value: float | None
    contribution: float


class ExpertReasons(BaseModel):
    """The contribution of an expert to a score, and its reasons."""

    name: str
    asked: bool
    score: float
    lift: float
    rank_alone: float
    rank_without: float | None
    reasons: list[ReasonRow]
    num_reasons: int
    rest: float = Field(description="the sum of the reasons that are not listed")
    histograms: list[NumberHistogram]


class Explanation(BaseModel):
    """The explanation of an answer's score."""

    question: Question
    answer: Thing
    head: Thing
    tail: Thing
    known: bool
    score: float
    probability: float
    calibrated: float | None
    rank: float
    num_candidates: int
    experts: list[ExpertReasons]


class Problem(BaseModel):
    """The reason why a request was refused."""

    detail: str
    nearest: list[Entity] = []
