"""The parts that a score is the sum of, and how the triple ranks without them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import networkx as nx
from torch_geometric.explain import Explanation

from kblrn_pyg.explain import graph, text


@dataclass(frozen=True)
class Named:
    r"""An entity, a relation or an attribute.

    Args:
        id (int): Its id.
        name (str): A name to read; that of a relation is as short as it can be
            without being that of another one.
        identifier (str): The name that no other one has.
    """

    id: int
    name: str
    identifier: str


@dataclass(frozen=True)
class ScorerReason:
    r"""What one scorer of the latent expert gave.

    Args:
        scorer (str): Its name.
        contribution (float): Its score.
    """

    scorer: str
    contribution: float


@dataclass(frozen=True)
class Atom:
    r"""One step of a body: :obj:`relation(start, end)`.

    Args:
        relation (Named): The relation.
        start (str): :obj:`"h"`, :obj:`"t"`, or :obj:`"x"` for the middle.
        end (str): The same.
    """

    relation: Named
    start: str
    end: str


@dataclass(frozen=True)
class BodyReason:
    r"""A body of the relation's rules that holds between head and tail.

    Args:
        rule (int): The rule, by its place in the rule set.
        text (str): The body in words.
        atoms (tuple): Its steps.
        weight (float): Its weight, all of which counts, however many entities
            are in the middle.
        own (bool): Whether it holds only because the asked triple is a known
            fact. Training leaves such evidence out, scores do not.
        middles (tuple): Entities in the middle, perhaps not all of them.
        num_middles (int): How many there are; 0 for bodies without a middle.
    """

    rule: int
    text: str
    atoms: tuple[Atom, ...]
    weight: float
    own: bool
    middles: tuple[Named, ...]
    num_middles: int

    @property
    def contribution(self) -> float:
        """What it adds to the score."""
        return self.weight


@dataclass(frozen=True)
class NumberReason:
    r"""What one numerical attribute of the relation gave.

    Args:
        attribute (Named): The attribute.
        head (float or None): The value of the head, :obj:`None` if unknown, as
            in all that follow.
        tail (float or None): The value of the tail.
        difference (float or None): Head minus tail.
        centre (float or None): The centre of the radial basis function;
            :obj:`None` where the sign is looked at.
        width (float or None): Its width.
        activation (float): What becomes of the difference; 0 if it is unknown.
        weight (float): What the activation is multiplied with.
    """

    attribute: Named
    head: float | None
    tail: float | None
    difference: float | None
    centre: float | None
    width: float | None
    activation: float
    weight: float

    @property
    def contribution(self) -> float:
        """What it adds to the score."""
        return self.activation * self.weight


@dataclass(frozen=True)
class Standing:
    r"""Where the true answer stands among all answers to one query.

    Args:
        probability (float): Its part of the softmax over all entities.
        rank (float): Its filtered, realistic rank: 1, plus the candidates with
            a higher score, plus half of the ties.
        without (dict): The rank that it had without one expert, by the name of
            the expert; empty if there is only one.
        num_candidates (int): The entities that are no other known answers, the
            true answer among them.
    """

    probability: float
    rank: float
    without: Mapping[str, float]
    num_candidates: int


@dataclass(frozen=True)
class Reasons:
    r"""Why a model scores a triple as it does; see :meth:`explain`.

    The score is the sum of all parts: scorers, bodies and numbers. The parts
    of an expert are ordered by what they gave, the strongest first.

    Args:
        head (Named): The head.
        relation (Named): The relation.
        tail (Named): The tail.
        known (bool): Whether the triple is a known fact.
        latent (tuple or None): A :class:`ScorerReason` for each scorer, or
            :obj:`None` if the model has no such expert.
        relational (tuple or None): A :class:`BodyReason` for each body that
            holds.
        numerical (tuple or None): A :class:`NumberReason` for each attribute
            of the relation.
        tail_query (Standing): Where the tail stands in :math:`(h, r, ?)`.
        head_query (Standing): Where the head stands in :math:`(?, r, t)`.
    """

    head: Named
    relation: Named
    tail: Named
    known: bool
    latent: tuple[ScorerReason, ...] | None
    relational: tuple[BodyReason, ...] | None
    numerical: tuple[NumberReason, ...] | None
    tail_query: Standing
    head_query: Standing

    @property
    def parts(
        self,
    ) -> dict[str, Sequence[ScorerReason | BodyReason | NumberReason]]:
        """The parts of each expert that the model has, by its name."""
        every = {
            "latent": self.latent,
            "relational": self.relational,
            "numerical": self.numerical,
        }
        return {name: parts for name, parts in every.items() if parts is not None}

    @property
    def experts(self) -> dict[str, float]:
        """What each expert gave, the strongest first."""
        given = {
            name: math.fsum(part.contribution for part in parts)
            for name, parts in self.parts.items()
        }
        return dict(sorted(given.items(), key=lambda item: -abs(item[1])))

    @property
    def score(self) -> float:
        """The score of the triple, that of the model but for rounding."""
        return math.fsum(self.experts.values())

    @property
    def own_evidence(self) -> float:
        """The part of the score that the triple, a known fact, gives itself."""
        return math.fsum(body.weight for body in self.relational or () if body.own)

    def to_text(self, max_bodies: int = 10) -> str:
        r"""Returns the reasons in words.

        Args:
            max_bodies (int, optional): How many bodies are listed; what the
                others give is summed up. (default: :obj:`10`)
        """
        return text.to_text(self, max_bodies)

    def __str__(self) -> str:
        return self.to_text()

    def to_json(self) -> dict[str, Any]:
        """Returns all of it as plain dictionaries, lists and numbers."""
        content: dict[str, Any] = asdict(self)
        content["score"], content["experts"] = self.score, self.experts
        content["own_evidence"] = self.own_evidence
        for name, parts in self.parts.items():
            for entry, part in zip(content[name], parts):
                entry["contribution"] = part.contribution
        return content

    def to_pyg(self) -> Explanation:
        r"""Returns the paths between head and tail as PyG's explanation.

        Its nodes are the head (0), the tail (1, or 0 if it is the head) and
        the :obj:`middles`; its edges are the facts that bodies step over.

        * :obj:`n_id` are the entities and :obj:`edge_type` the relations, by
          id; :obj:`entity_names` and :obj:`relation_names` have their names.
        * :obj:`edge_weight` is the sum of the weights of the bodies that step
          over an edge, and :obj:`edge_mask` the sum of their absolute values,
          divided by the largest one.
        * :obj:`node_mask` is the sum of the absolute values of all parts that
          a node belongs to, divided by that of head and tail, to which all
          parts belong.
        """
        return graph.to_pyg(self)

    def to_networkx(self) -> "nx.MultiDiGraph[str]":
        """Returns the same graph for networkx, with identifiers as nodes."""
        return graph.to_networkx(self)
