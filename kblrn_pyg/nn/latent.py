"""The latent expert: embeddings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import ModuleList, Parameter

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.nn.comparing import VisitScores
from kblrn_pyg.nn.dropout import drop_entries
from kblrn_pyg.nn.entity_rows import EntityRows
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.part import Part
from kblrn_pyg.nn.penalties import RulePenalty
from kblrn_pyg.nn.penalties.embeddings import EmbeddingPenalties
from kblrn_pyg.nn.penalties.penalty import is_reciprocal
from kblrn_pyg.nn.scorers import AnyScorer, make_scorer, scorer_list
from kblrn_pyg.nn.softmax import Factors
from kblrn_pyg.shard import Shard

# Up to this number of candidates, their rows are looked up for each query.
_FEW = 8

# What queries and entities may be multiplied in.
PRECISIONS = ("float32", "bfloat16")


class LatentExpert(Expert):
    r"""Scores a triple by embeddings of its entities and its relation, by
    default as DistMult does:

    .. math::
        \log f_{(r, L)}(h, r, t) = (\mathbf{e}_h * \mathbf{e}_t) \cdot
        \mathbf{w}^r

    The scores of several scorers are added; each has its own embeddings.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        hidden_channels (int): The embedding size.
        scorer (str or KGEModel or Scorer or list, optional): :obj:`"distmult"`,
            :obj:`"complex"` or :obj:`"rotate"` of PyG, :obj:`"transe"`
            (:class:`FreeTransE`), :obj:`"unit-transe"` (PyG's, whose embeddings
            have length one), :obj:`"rescal"` (:class:`RESCAL`), :obj:`"transh"`
            (:class:`TransH`), :obj:`"transr"` (:class:`TransR`), :obj:`"tucker"`
            (:class:`TuckER`) or :obj:`"conve"` (:class:`ConvE`, which needs
            :obj:`reciprocal`), :obj:`"pykeen:NAME"` (:class:`PyKEENModel`, which is
            slow), any :class:`~torch_geometric.nn.kge.KGEModel` (other classes are
            slow), a :class:`Scorer`, or several of them.
            (default: :obj:`"distmult"`)
        reciprocal (bool, optional): See :class:`ReciprocalScorer`.
            (default: :obj:`False`)
        dropout (float, optional): The fraction of a query's entries that
            training sets to zero. (default: :obj:`0.0`)
        n3 (float, optional): The weight of the nuclear 3-norm penalty.
            (default: :obj:`0.0`)
        l2 (float, optional): The weight of the squared 2-norm penalty.
            (default: :obj:`0.0`)
        entity_dropout (float, optional): The fraction of an entity's entries that
            training sets to zero, both of the known entity and of candidates.
            (default: :obj:`0.0`)
        latent_dropout (float, optional): The fraction of queries that training
            answers without this expert, so that the others learn to answer alone.
            Needs scorers that multiply: DistMult, ComplEx, RESCAL.
            (default: :obj:`0.0`)
        rule_penalty (RulePenalty, optional): Rules in the loss.
            (default: :obj:`None`)
        sparse (bool, optional): Whether gradients of embeddings contain only the
            rows of a batch, so that its cost does not grow with the number of
            entities. Needs a loss over sampled entities, and an optimiser for
            sparse gradients. (default: :obj:`False`)
        dura (float, optional): The weight of the duality-induced penalty, from
            the `"Duality-Induced Regularizer for Tensor Factorization Based
            Knowledge Graph Completion" <https://arxiv.org/abs/2011.05816>`_
            paper. Needs scorers that multiply. (default: :obj:`0.0`)
        relation_prediction (float, optional): The weight of an additional loss, the
            cross-entropy of the relation of a triple given its entities, from the
            `"Relation Prediction as an Auxiliary Training Objective for Improving
            Multi-Relational Graph Representations"
            <https://arxiv.org/abs/2110.02834>`_ paper. (default: :obj:`0.0`)
        precision (str, optional): :obj:`"bfloat16"` multiplies queries and entities
            in half precision in losses over all entities or over shared ones, which
            is several times faster on processors that have instructions for it.
            (default: :obj:`"float32"`)
    """

    name = "latent"

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        hidden_channels: int,
        scorer: AnyScorer | Sequence[AnyScorer] = "distmult",
        reciprocal: bool = False,
        dropout: float = 0.0,
        n3: float = 0.0,
        l2: float = 0.0,
        entity_dropout: float = 0.0,
        latent_dropout: float = 0.0,
        sparse: bool = False,
        dura: float = 0.0,
        relation_prediction: float = 0.0,
        precision: str = "float32",
        rule_penalty: RulePenalty | None = None,
    ) -> None:
        super().__init__()
        several = scorer_list(scorer)
        if not several:
            raise ValueError("'scorer' must name at least one scorer (got none)")
        sizes = num_nodes, num_relations, hidden_channels
        self.scorers = ModuleList(
            make_scorer(one, *sizes, reciprocal, sparse) for one in several
        )
        multiply = all(one.metric == "dot" for one in self._scorers())
        have_vectors = all(one.has_vectors for one in self._scorers())
        for name, value, is_possible, others in (
            ("latent_dropout", latent_dropout, multiply, "that do not multiply"),
            ("dropout", dropout, have_vectors, "without vectors"),
            ("entity_dropout", entity_dropout, have_vectors, "without vectors"),
            ("dura", dura, multiply, "that do not multiply"),
        ):
            if value > 0 and not is_possible:
                raise ValueError(
                    f"'{name}' must be 0 for scorers {others} (got {value})"
                )
        self.dropout, self.entity_dropout = dropout, entity_dropout
        self.latent_dropout, self.sparse = latent_dropout, sparse
        self.n3, self.l2, self.dura = n3, l2, dura
        self.relation_prediction = relation_prediction
        if precision not in PRECISIONS:
            raise ValueError(
                f"'precision' must be one of {', '.join(PRECISIONS)} (got "
                f"{precision!r})"
            )
        self.precision = precision
        self.rule_penalty = rule_penalty
        if rule_penalty is not None:
            for one in self._scorers():
                rule_penalty.check(one)
        self.shard: Shard | None = None
        self._own_entities: Tensor | None = None  # of the shard
        # The rows of each scorer, as long as entities are encoded, and the queries
        # that were asked last.
        self._step: list[EntityRows] | None = None
        self._last: tuple[Queries, list[tuple[EntityRows, Tensor]]] | None = None

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples as answers to the queries for their tails."""
        queries = Queries(head_index, rel_type, "tail")
        return self.score_candidates(queries, tail_index[:, None]).squeeze(1)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        scores = [
            self._compare(rows, query, candidates)
            for rows, query in self._asked(queries)
        ]
        return sum(scores[1:], start=scores[0])

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        """Scores an answer to each query; see :class:`Expert`."""
        scores = [
            rows.scorer.compare(query, self._candidates(rows, answer).unsqueeze(1))
            for rows, query in self._asked(queries)
        ]
        return sum(scores[1:], start=scores[0]).squeeze(1)

    def score_all(
        self, queries: Queries, num_nodes: int, entities: Tensor | None = None
    ) -> Tensor:
        """Scores all entities; see :class:`Expert`."""
        scores = [
            rows.scorer.compare(query, self._candidates(rows, entities))
            for rows, query in self._asked(queries)
        ]
        return sum(scores[1:], start=scores[0])

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        return scores + self.score_all(queries, scores.size(1), entities)

    def factors(
        self, queries: Queries, entities: Tensor | None = None
    ) -> Factors | None:
        """Returns the factors of scorers that multiply; see :class:`Expert`."""
        if any(scorer.metric != "dot" for scorer in self._scorers()):
            return None
        is_dropped = self.training and self.entity_dropout > 0
        several: list[Tensor] = []
        tables: list[Tensor] = []
        for rows, query in self._asked(queries):
            several.append(query)
            if is_dropped:
                tables.append(self._candidates(rows, entities))
            else:
                tables += rows.tables(entities)
        query = several[0] if len(several) == 1 else torch.cat(several, dim=1)
        return Factors(query, tuple(tables), self._product_type)

    @property
    def _product_type(self) -> torch.dtype | None:
        return torch.bfloat16 if self.precision == "bfloat16" else None

    def penalty(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the penalties of the embeddings of a batch, per triple."""
        weights = self.n3, self.l2, self.dura, self.relation_prediction
        others = self.rule_penalty, self._product_type
        penalties = EmbeddingPenalties(*weights, *others)
        return penalties.of_batch(self._rows(), (head_index, rel_type, tail_index))

    def split_entities(self, shard: Shard, entities: Tensor) -> list[Parameter]:
        r"""Keeps the rows of some entities only, and returns what was split.

        Args:
            shard (Shard): The entities.
            entities (torch.Tensor): The same as a tensor, by which all rows that
                were kept are asked for.
        """
        if not all(s.has_vectors and s.is_direct for s in self._scorers()):
            raise ValueError(
                "'scorer' must compare rows of embeddings to be split among processes"
            )
        if self.rule_penalty is not None:
            for one in self._scorers():
                self.rule_penalty.check(one, is_split=True)
        self.shard, self._own_entities = shard, entities
        tables = self.entity_tables()
        for table in tables:
            table.data = table.data[shard.low : shard.high].clone()
        return tables

    def join_entities(self) -> None:
        """Reverses :meth:`split_entities`."""
        assert self.shard is not None
        for table in self.entity_tables():
            table.data = self.shard.gather(table.data)
        self.shard = self._own_entities = None

    def entity_tables(self) -> list[Parameter]:
        """Returns the embeddings of entities; see :class:`Expert`."""
        return [one.weight for scorer in self._scorers() for one in scorer.embeddings]

    @contextmanager
    def with_sparse_gradients(self) -> Iterator[None]:
        """Has them where rows are embeddings; see :class:`Expert`."""
        tables = [one for scorer in self._scorers() for one in scorer.embeddings]
        if self.sparse or not all(scorer.is_direct for scorer in self._scorers()):
            yield
            return
        try:
            self.sparse = True
            for one in tables:
                one.sparse = True
            yield
        finally:
            self.sparse = False
            for one in tables:
                one.sparse = False

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns what each scorer gives; see :class:`Expert`."""
        device = self._scorers()[0].device
        index = torch.tensor([[head], [rel], [tail]], device=device)
        queries = Queries.of_triples(index[0], index[1], index[2], side)
        answer = index[0] if side == "head" else index[2]
        return [
            Part(
                float(self._compare(rows, query, answer[:, None])),
                (rows.scorer.title,),
            )
            for rows, query in self._asked(queries)
        ]

    def fingerprint(self) -> bytes:
        """Returns which scorers the embeddings are for."""
        scorers = [scorer.fingerprint() for scorer in self._scorers()]
        return b" ".join([super().fingerprint(), str(scorers).encode()])

    @contextmanager
    def encoded(self, entities: Sequence[Tensor] | None = ()) -> Iterator[None]:
        """Encodes entities once for all queries of a step; see :class:`Expert`."""
        if self._step is not None:
            yield
            return
        self._step = self._encoded_rows()
        try:
            for rows in self._step:
                rows.prepare(entities)
            yield
        finally:
            self._step = self._last = None

    @property
    def uses_own_threads(self) -> bool:  # type: ignore[override]
        """Whether all scorers multiply, and little is computed before."""
        return all(
            s.metric == "dot" and s.is_direct and s.has_light_queries
            for s in self._scorers()
        )

    @property
    def has_two_scores(self) -> bool:  # type: ignore[override]
        """Whether any scorer has reciprocal relations."""
        return any(is_reciprocal(scorer) for scorer in self._scorers())

    @property
    def hidden_channels(self) -> int:
        """The embedding size."""
        return self._scorers()[0].hidden_channels

    def extra_repr(self) -> str:
        """Returns the embedding size."""
        return f"embeddings of size {self.hidden_channels}"

    def _scorers(self) -> list[Any]:
        return list(self.scorers)

    def _rows(self) -> list[EntityRows]:
        """Returns where the rows of each scorer come from."""
        given = self.shard, self._own_entities
        return self._step or [EntityRows(one, *given) for one in self._scorers()]

    def _encoded_rows(self) -> list[EntityRows]:
        """Does the same as :meth:`_rows`, and encodes before anything else is drawn."""
        several = self._rows()
        for rows in several:
            _ = rows.encoded
        return several

    def _asked(self, queries: Queries) -> list[tuple[EntityRows, Tensor]]:
        """Returns the rows of each scorer, and its queries.

        The queries of a loss are created once, so that all of their candidates use
        the same dropout.
        """
        last = self._last  # which another thread may change
        if last is not None and last[0] is queries:
            return last[1]
        asked = list(self._ask(queries))
        if self._step is not None and torch.is_grad_enabled():
            self._last = queries, asked
        return asked

    def _ask(self, queries: Queries) -> Iterator[tuple[EntityRows, Tensor]]:
        several = self._encoded_rows()
        kept, drop = self._kept(queries), partial(self._drop, fraction=self.dropout)
        for rows in several:
            scorer = rows.scorer
            known = self._drop(rows.anywhere(queries.entity), self.entity_dropout)
            if queries.side == "head":
                query = scorer.head_query(queries.rel_type, known)
            else:
                query = scorer.tail_query(known, queries.rel_type)
            query = scorer.drop_entries(query, drop)
            yield rows, query if kept is None else query * kept

    def _kept(self, queries: Queries) -> Tensor | None:
        """Draws the queries that this expert answers; the others get zeros."""
        if not self.training or self.latent_dropout == 0:
            return None
        drawn = torch.rand(len(queries), 1, device=queries.entity.device)
        return drawn >= self.latent_dropout

    def _candidates(self, rows: EntityRows, index: Tensor | None = None) -> Tensor:
        """Returns the rows of candidates, of which training drops entries."""
        return self._drop(rows.candidates(index), self.entity_dropout)

    def _drop(self, values: Tensor, fraction: float) -> Tensor:
        if not self.training or fraction == 0:
            return values
        return drop_entries(values, fraction)

    def _compare(self, rows: EntityRows, query: Tensor, candidates: Tensor) -> Tensor:
        scorer = rows.scorer
        is_known = query.dtype in (torch.float, torch.double)
        is_fast = scorer.metric is not None and is_known
        if candidates.size(1) <= _FEW or not (is_fast and uses_kernels(query)):
            return scorer.compare(query, self._candidates(rows, candidates))
        touched = None
        if self.sparse:  # only the rows of candidates are touched
            touched, candidates = torch.unique(candidates, return_inverse=True)
        table = self._candidates(rows, touched)
        return VisitScores.apply(query, table, candidates, scorer.metric == "l1")
