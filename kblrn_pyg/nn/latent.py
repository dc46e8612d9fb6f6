"""The latent expert: embeddings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import ModuleList, Parameter
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.nn.comparing import VisitScores
from kblrn_pyg.nn.dropout import drop_entries
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.part import Part
from kblrn_pyg.nn.penalties import RulePenalty
from kblrn_pyg.nn.penalties.penalty import is_reciprocal
from kblrn_pyg.nn.rows import TakeRows
from kblrn_pyg.nn.scorers import Scorer, make_scorer
from kblrn_pyg.nn.softmax import Factors
from kblrn_pyg.shard import Shard, num_processes, process_rank

# Up to this number of candidates, their rows are looked up for each query.
_FEW = 8

# Of a batch of more triples, only this number is drawn for penalties.
_MAX_PENALISED = 4096

# What queries and entities may be multiplied in.
PRECISIONS = ("float32", "bfloat16")

AnyScorer: TypeAlias = str | KGEModel | Scorer


def as_list(scorer: AnyScorer | Sequence[AnyScorer]) -> list[AnyScorer]:
    """Returns one scorer, or several, as a list."""
    if isinstance(scorer, str | KGEModel | Scorer):
        return [scorer]
    return list(scorer)


class LatentExpert(Expert):
    r"""Scores a triple by embeddings of its entities and its relation, by
    default as DistMult does:

    .. math::
        \log f_{(r, L)}(h, r, t) = (\mathbf{e}_h * \mathbf{e}_t) \cdot
        \mathbf{w}^r

    Several scorers at once add up, each with embeddings of its own.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        hidden_channels (int): The embedding size.
        scorer (str or KGEModel or Scorer or list, optional): :obj:`"distmult"`,
            :obj:`"complex"` or :obj:`"rotate"` of PyG, :obj:`"transe"`
            (:class:`FreeTransE`), :obj:`"unit-transe"` (PyG's, whose
            embeddings have length one), :obj:`"rescal"` (:class:`RESCAL`),
            :obj:`"transh"` (:class:`TransH`), :obj:`"transr"`
            (:class:`TransR`), :obj:`"tucker"` (:class:`TuckER`) or
            :obj:`"conve"` (:class:`ConvE`, which needs :obj:`reciprocal`),
            :obj:`"pykeen:NAME"` (:class:`PyKEENModel`, which is slow), any
            :class:`~torch_geometric.nn.kge.KGEModel` (one that is not of these
            classes is slow), a :class:`Scorer`, or several of them.
            (default: :obj:`"distmult"`)
        reciprocal (bool, optional): See :class:`ReciprocalScorer`.
            (default: :obj:`False`)
        dropout (float, optional): The fraction of a query's entries that
            training sets to zero. (default: :obj:`0.0`)
        n3 (float, optional): The weight of the nuclear 3-norm penalty.
            (default: :obj:`0.0`)
        l2 (float, optional): The weight of the squared 2-norm penalty.
            (default: :obj:`0.0`)
        entity_dropout (float, optional): The fraction of an entity's entries
            that training sets to zero, be it the known one or a candidate.
            (default: :obj:`0.0`)
        latent_dropout (float, optional): The fraction of queries that training
            answers without this expert, so that the others learn to do it
            alone. Needs scorers that multiply: DistMult, ComplEx, RESCAL.
            (default: :obj:`0.0`)
        rule_penalty (RulePenalty, optional): Rules in the loss.
            (default: :obj:`None`)
        sparse (bool, optional): Whether gradients of embeddings hold only the
            rows of a batch, so that its cost does not grow with the number of
            entities. Needs a loss over sampled entities, and an optimiser for
            sparse gradients. (default: :obj:`False`)
        dura (float, optional): The weight of the duality-induced penalty, from
            the `"Duality-Induced Regularizer for Tensor Factorization Based
            Knowledge Graph Completion" <https://arxiv.org/abs/2011.05816>`_
            paper. Needs scorers that multiply. (default: :obj:`0.0`)
        relation_prediction (float, optional): The weight of a further loss, the
            cross-entropy of the relation of a triple given its entities, from
            the `"Relation Prediction as an Auxiliary Training Objective for
            Improving Multi-Relational Graph Representations"
            <https://arxiv.org/abs/2110.02834>`_ paper. (default: :obj:`0.0`)
        precision (str, optional): :obj:`"bfloat16"` multiplies queries and
            entities in half the precision where losses are over all entities or
            over shared ones, which is several times faster on processors that
            have instructions for it. (default: :obj:`"float32"`)
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
        several = as_list(scorer)
        if not several:
            raise ValueError("'scorer' must name at least one scorer (got none)")
        sizes = num_nodes, num_relations, hidden_channels
        self.scorers = ModuleList(
            make_scorer(one, *sizes, reciprocal, sparse) for one in several
        )
        if latent_dropout > 0 and any(s.metric != "dot" for s in self._scorers()):
            raise ValueError(
                "'latent_dropout' must be 0 for scorers that do not multiply "
                f"(got {latent_dropout})"
            )
        for name, value in (("dropout", dropout), ("entity_dropout", entity_dropout)):
            if value > 0 and not all(s.has_vectors for s in self._scorers()):
                raise ValueError(
                    f"'{name}' must be 0 for scorers without vectors (got {value})"
                )
        self.dropout, self.entity_dropout = dropout, entity_dropout
        self.latent_dropout, self.sparse = latent_dropout, sparse
        self.n3, self.l2, self.dura = n3, l2, dura
        if dura > 0 and any(s.metric != "dot" for s in self._scorers()):
            raise ValueError(
                f"'dura' must be 0 for scorers that do not multiply (got {dura})"
            )
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
        self._encoded: list[Any] | None = None
        # The queries that were asked last, as long as entities are encoded.
        self._last: tuple[Queries, list[tuple[Any, Any, Tensor]]] | None = None
        # The tables of each scorer, as long as all of their rows get gradients.
        self._whole: dict[int, list[Tensor]] = {}
        # Each scorer, tensors of entities, and their rows, which are at hand.
        self._fetched: list[tuple[Any, Tensor, Tensor]] = []

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples as answers to the queries for their tails."""
        queries = Queries(head_index, rel_type, "tail")
        return self.score_candidates(queries, tail_index[:, None]).squeeze(1)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        scores = [
            self._compare(scorer, encoded, query, candidates)
            for scorer, encoded, query in self._asked(queries)
        ]
        return sum(scores[1:], start=scores[0])

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        """Scores an answer to each query; see :class:`Expert`."""
        scores = [
            scorer.compare(query, self._table(scorer, encoded, answer).unsqueeze(1))
            for scorer, encoded, query in self._asked(queries)
        ]
        return sum(scores[1:], start=scores[0]).squeeze(1)

    def score_all(
        self, queries: Queries, num_nodes: int, entities: Tensor | None = None
    ) -> Tensor:
        """Scores all entities; see :class:`Expert`."""
        scores = [
            scorer.compare(query, self._table(scorer, encoded, entities))
            for scorer, encoded, query in self._asked(queries)
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
        several, tables = [], []
        for scorer, encoded, query in self._asked(queries):
            several.append(query)
            tables += self._side_by_side(scorer, encoded, entities)
        query = several[0] if len(several) == 1 else torch.cat(several, dim=1)
        return Factors(query, tuple(tables), self._product_type)

    @property
    def _product_type(self) -> torch.dtype | None:
        return torch.bfloat16 if self.precision == "bfloat16" else None

    def _side_by_side(
        self, scorer: Any, encoded: Any, entities: Tensor | None
    ) -> list[Tensor]:
        """Returns tables that hold the rows of candidates, without copying them."""
        is_all = entities is None or entities is self._own_entities
        is_dropped = self.training and self.entity_dropout > 0
        if is_all and not is_dropped and id(scorer) in self._whole:
            return self._whole[id(scorer)]
        return [self._table(scorer, encoded, entities)]

    def penalty(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the penalties of the embeddings of a batch, per triple.

        If a batch of queries has very many answers, some of the triples are drawn.
        """
        total: Tensor | float = 0.0
        if head_index.numel() == 0 or not self._has_penalties:
            return total
        triples = head_index, rel_type, tail_index
        if head_index.numel() > _MAX_PENALISED:
            drawn = torch.randperm(head_index.numel(), device=head_index.device)
            head_index, rel_type, tail_index = (
                column[drawn[:_MAX_PENALISED]] for column in triples
            )
            triples = head_index, rel_type, tail_index
        for i, scorer in enumerate(self._scorers()):
            total = total + self._norms(scorer, *triples)
            if self.dura > 0 or self.relation_prediction > 0:
                encoded = self._encoded[i] if self._encoded else scorer.encode()
                # Every process computes these, and each counts a share of them.
                found = self._triple_penalty(scorer, encoded, *triples)
                total = total + found / num_processes()
            if self.rule_penalty is not None:
                found = self.rule_penalty(scorer, head_index.numel())
                total = total + found / num_processes()
        if self.shard is not None and isinstance(total, Tensor):
            total = self.shard.sum(total)
        return total

    @property
    def _has_penalties(self) -> bool:
        weights = self.n3, self.l2, self.dura, self.relation_prediction
        return any(weights) or self.rule_penalty is not None

    def _norms(
        self, scorer: Any, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the penalties of single embeddings."""
        weights = {3: self.n3, 2: self.l2}
        if not any(weights.values()):
            return 0.0
        size, ends = head_index.numel(), [head_index, tail_index]
        if self.shard is not None:  # each number is added up by one process
            ends = [self.shard.local(i[self.shard.is_mine(i)]) for i in ends]
            rel_type = rel_type if process_rank() == 0 else rel_type[:0]
        head, tail = self._embedded(scorer, torch.cat(ends)).split(
            [index.numel() for index in ends]
        )
        norms = (
            weight * scorer.norm(power, head, rel_type, tail)
            for power, weight in weights.items()
            if weight > 0
        )
        return sum(norms) / size

    def _triple_penalty(
        self, scorer: Any, encoded: Any, *triples: Tensor
    ) -> Tensor | float:
        """Returns the penalties that need the rows of both entities of a triple."""
        head_index, rel_type, tail_index = triples
        both = torch.cat([head_index, tail_index])
        head, tail = self._rows(scorer, encoded, both).chunk(2)
        total: Tensor | float = 0.0
        if self.dura > 0:
            norm = scorer.dura(head, rel_type, tail)
            total = total + self.dura * norm / head_index.numel()
        if self.relation_prediction > 0:
            loss = scorer.relation_loss(head, rel_type, tail, self._product_type)
            total = total + self.relation_prediction * loss
        return total

    def _rows(self, scorer: Any, encoded: Any, index: Tensor) -> Tensor:
        """Returns the rows of entities, whichever process has them."""
        local = index if self.shard is None else self.shard.local(index)
        if id(scorer) in self._whole:
            rows = self._embedded(scorer, local)
        else:
            rows = scorer.table(encoded, local)
        return rows if self.shard is None else self.shard.rows(rows, index)

    def _embedded(self, scorer: Any, local: Tensor) -> Tensor:
        """Returns the embeddings of entities of this process, side by side."""
        if id(scorer) in self._whole:
            rows, *tables = TakeRows.apply(local, *self._whole[id(scorer)])
            self._whole[id(scorer)] = tables
            return rows
        return torch.cat([one(local) for one in scorer.embeddings], dim=-1)

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
        tables = self._tables()
        for table in tables:
            table.data = table.data[shard.low : shard.high].clone()
        return tables

    def join_entities(self) -> None:
        """Reverses :meth:`split_entities`."""
        assert self.shard is not None
        for table in self._tables():
            table.data = self.shard.gather(table.data)
        self.shard = self._own_entities = None

    def _tables(self) -> list[Parameter]:
        return [one.weight for scorer in self._scorers() for one in scorer.embeddings]

    def entity_tables(self) -> list[Parameter]:
        """Returns the embeddings of entities; see :class:`Expert`."""
        return self._tables()

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
                float(self._compare(scorer, encoded, query, answer[:, None])),
                (scorer.title,),
            )
            for scorer, encoded, query in self._asked(queries)
        ]

    def fingerprint(self) -> bytes:
        """Returns which scorers the embeddings are for."""
        scorers = [scorer.fingerprint() for scorer in self._scorers()]
        return b" ".join([super().fingerprint(), str(scorers).encode()])

    @contextmanager
    def encoded(self, entities: Sequence[Tensor] | None = ()) -> Iterator[None]:
        """Encodes entities once for all queries of a step; see :class:`Expert`."""
        if self._encoded is not None:
            yield
            return
        self._encoded = [scorer.encode() for scorer in self._scorers()]
        if entities is None:
            self._whole = {
                id(scorer): [one.weight for one in scorer.embeddings]
                for scorer in self._scorers()
                if scorer.is_plain
            }
        if entities and self.shard is None:
            self._fetched = list(self._fetch(entities))
        try:
            yield
        finally:
            self._encoded = self._last = None
            self._fetched, self._whole = [], {}

    def _fetch(
        self, entities: Sequence[Tensor]
    ) -> Iterator[tuple[Any, Tensor, Tensor]]:
        """Looks up the rows of a step at once: each look-up has its own gradient,
        and adding up row-sparse ones takes long."""
        assert self._encoded is not None
        sizes = [index.numel() for index in entities]
        for scorer, encoded in zip(self._scorers(), self._encoded):
            rows = scorer.table(encoded, torch.cat(list(entities))).split(sizes)
            yield from ((scorer, *pair) for pair in zip(entities, rows))

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

    def _asked(self, queries: Queries) -> list[tuple[Any, Any, Tensor]]:
        """Returns each scorer, what it encoded, and its queries.

        Those of one loss are made once, so that all of their candidates see what
        was dropped alike.
        """
        last = self._last  # which another thread may change
        if last is not None and last[0] is queries:
            return last[1]
        asked = list(self._ask(queries))
        if self._encoded is not None and torch.is_grad_enabled():
            self._last = queries, asked
        return asked

    def _ask(self, queries: Queries) -> Iterator[tuple[Any, Any, Tensor]]:
        scorers = self._scorers()
        encodings = self._encoded or [scorer.encode() for scorer in scorers]
        kept = self._kept(queries)
        for scorer, encoded in zip(scorers, encodings):
            known = self._known(scorer, encoded, queries.entity)
            if queries.side == "head":
                query = scorer.head_query(queries.rel_type, known)
            else:
                query = scorer.tail_query(known, queries.rel_type)
            query = scorer.drop_entries(
                query, partial(self._drop, fraction=self.dropout)
            )
            yield scorer, encoded, query if kept is None else query * kept

    def _kept(self, queries: Queries) -> Tensor | None:
        """Draws which queries this expert answers; that by zeros is no answer."""
        if not self.training or self.latent_dropout == 0:
            return None
        drawn = torch.rand(len(queries), 1, device=queries.entity.device)
        return drawn >= self.latent_dropout

    def _known(self, scorer: Any, encoded: Any, index: Tensor) -> Tensor:
        """Returns the rows of entities of queries."""
        if self.shard is None and id(scorer) not in self._whole:
            return self._table(scorer, encoded, index)
        rows = self._rows(scorer, encoded, index)
        return self._drop(rows, self.entity_dropout)

    def _table(self, scorer: Any, encoded: Any, index: Tensor | None = None) -> Tensor:
        """Returns the rows of candidates, all of which this process has."""
        if self.shard is not None and index is not None:
            is_all = index is self._own_entities
            index = None if is_all else self.shard.local(index)
        rows = next(
            (rows for s, i, rows in self._fetched if s is scorer and i is index), None
        )
        if index is None and id(scorer) in self._whole:
            tables = self._whole[id(scorer)]
            rows = tables[0] if len(tables) == 1 else torch.cat(tables, dim=-1)
        elif rows is None:
            rows = scorer.table(encoded, index)
        return self._drop(rows, self.entity_dropout)

    def _drop(self, values: Tensor, fraction: float) -> Tensor:
        if not self.training or fraction == 0:
            return values
        return drop_entries(values, fraction)

    def _compare(
        self, scorer: Any, encoded: Any, query: Tensor, candidates: Tensor
    ) -> Tensor:
        is_fast = scorer.metric is not None and query.dtype in (
            torch.float,
            torch.double,
        )
        if candidates.size(1) <= _FEW or not (is_fast and uses_kernels(query)):
            return scorer.compare(query, self._table(scorer, encoded, candidates))
        touched = None
        if self.sparse:  # only the rows of candidates are touched
            touched, candidates = torch.unique(candidates, return_inverse=True)
        table = self._table(scorer, encoded, touched)
        return VisitScores.apply(query, table, candidates, scorer.metric == "l1")
