"""The terms of a score, and the ranks of the triple without each expert."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from torch_geometric.explain import Explanation

from kblrn_pyg.explain import graph, text

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Named:
    r"""An entity, a relation or an attribute.

    Args:
        id (int): Its id.
        name (str): A readable name; that of a relation is as short as possible
            without being that of another one.
        identifier (str): The name that no other one has.
    """

    id: int
    name: str
    identifier: str


@dataclass(frozen=True)
class NamedFact:
    r"""A known triple.

    Args:
        head (Named): The head.
        relation (Named): The relation.
        tail (Named): The tail.
    """

    head: Named
    relation: Named
    tail: Named


Words = tuple[str | Named, ...]


@dataclass(frozen=True)
class Reason:
    r"""One of the terms of an expert's score, with names.

    Args:
        contribution (float): What it adds to the score.
        words (tuple): Its description: strings, and :class:`Named` for names.
        note (tuple, optional): How it comes about. (default: :obj:`()`)
        paths (tuple, optional): The known facts that it is based on, as paths:
            tuples of :class:`NamedFact`; possibly not all of them.
            (default: :obj:`()`)
        num_paths (int, optional): The number of all paths.
            (default: :obj:`0`)
        own (bool, optional): Whether it holds only because the explained triple is
            a known fact. Training leaves such evidence out, while scores include
            it. (default: :obj:`False`)
        details (dict, optional): Additional plain values by name.
            (default: :obj:`{}`)
        middles (tuple, optional): The entities that the paths pass between
            head and tail. (default: :obj:`()`)
    """

    contribution: float
    words: Words
    note: Words = ()
    paths: tuple[tuple[NamedFact, ...], ...] = ()
    num_paths: int = 0
    own: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)
    middles: tuple[Named, ...] = ()

    @property
    def text(self) -> str:
        """The description, as one string."""
        return _joined(self.words)

    @property
    def note_text(self) -> str:
        """The note, as one string."""
        return _joined(self.note)

    def to_json(self) -> dict[str, Any]:
        """Returns plain dictionaries, lists and numbers."""
        return {
            "contribution": self.contribution,
            "text": self.text,
            "note": self.note_text,
            "own": self.own,
            "paths": [[asdict(fact) for fact in path] for path in self.paths],
            "num_paths": self.num_paths,
            **self.details,
        }


@dataclass(frozen=True)
class Standing:
    r"""The rank of the true answer among all answers to one query.

    Args:
        probability (float): Its softmax probability over all entities.
        rank (float): Its filtered, realistic rank: 1, plus the candidates with
            a higher score, plus half of the ties.
        without (dict): The rank that it would have without one expert, by the
            name of the expert; empty if there is only one.
        num_candidates (int): The number of entities that are not other known
            answers, including the true answer.
    """

    probability: float
    rank: float
    without: Mapping[str, float]
    num_candidates: int


@dataclass(frozen=True)
class Reasons:
    r"""The reasons for a model's score of a triple; see :meth:`explain`.

    Args:
        head (Named): The head.
        relation (Named): The relation.
        tail (Named): The tail.
        known (bool): Whether the triple is a fact of the model's knowledge
            base.
        parts (dict): By the name of each expert, the :class:`Reason` objects whose
            contributions add up to its score, the strongest first.
        tail_query (Standing): Where the tail ranks in :math:`(h, r, ?)`.
        head_query (Standing): Where the head ranks in :math:`(?, r, t)`.
    """

    head: Named
    relation: Named
    tail: Named
    known: bool
    parts: Mapping[str, tuple[Reason, ...]]
    tail_query: Standing
    head_query: Standing

    @property
    def experts(self) -> dict[str, float]:
        """The score of each expert, the strongest first."""
        scores = {
            name: math.fsum(part.contribution for part in parts)
            for name, parts in self.parts.items()
        }
        return dict(sorted(scores.items(), key=lambda item: -abs(item[1])))

    @property
    def score(self) -> float:
        """The score of the triple, equal to that of the model up to rounding."""
        return math.fsum(self.experts.values())

    @property
    def own_evidence(self) -> float:
        """The contribution of the triple, if it is a known fact, to its own
        score."""
        parts = (part for parts in self.parts.values() for part in parts)
        return math.fsum(part.contribution for part in parts if part.own)

    def to_text(self, max_parts: int = 10) -> str:
        r"""Returns the reasons as text.

        Args:
            max_parts (int, optional): The maximum number of parts of each expert to
                list; the others are summed up. (default: :obj:`10`)
        """
        return text.to_text(self, max_parts)

    def _repr_html_(self) -> str:
        return text.to_html(self)

    def __str__(self) -> str:
        return self.to_text()

    def to_json(self) -> dict[str, Any]:
        """Returns plain dictionaries, lists and numbers, :obj:`None` for NaN."""
        content = {
            "head": asdict(self.head),
            "relation": asdict(self.relation),
            "tail": asdict(self.tail),
            "known": self.known,
            "score": self.score,
            "own_evidence": self.own_evidence,
            "experts": self.experts,
            "parts": {
                name: [part.to_json() for part in parts]
                for name, parts in self.parts.items()
            },
            "tail_query": asdict(self.tail_query),
            "head_query": asdict(self.head_query),
        }
        return {name: _finite(value) for name, value in content.items()}

    def to_pyg(self) -> Explanation:
        r"""Returns the paths of all parts as PyG's explanation.

        Its nodes are the head (0), the tail (1, or 0 if it is the head) and
        the other entities of the paths; its edges are their facts.

        * :obj:`n_id` are the entities and :obj:`edge_type` the relations, by
          id; :obj:`entity_names` and :obj:`relation_names` have their names.
        * :obj:`edge_weight` is the sum of the contributions of the parts whose
          paths contain an edge, and :obj:`edge_mask` the sum of their absolute
          values, divided by the largest one.
        * :obj:`node_mask` is the sum of the absolute contributions of all parts
          that a node belongs to, divided by that of head and tail, to which all
          parts belong.
        """
        return graph.to_pyg(self)

    def to_networkx(self) -> "nx.MultiDiGraph[str]":
        """Returns the same graph for networkx, with identifiers as nodes."""
        return graph.to_networkx(self)


def _joined(words: Words) -> str:
    return "".join(word if isinstance(word, str) else word.name for word in words)


def _finite(value: Any) -> Any:
    """Replaces floats that JSON does not know, at any depth."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    is_bad = isinstance(value, float) and not math.isfinite(value)
    return None if is_bad else value
