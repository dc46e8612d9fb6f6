"""The latent expert: embeddings."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.nn import scorers
from kblrn_pyg.nn.dropout import drop_entries


class LatentExpert(Module):
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
        scorer (str or KGEModel or list, optional): :obj:`"distmult"`,
            :obj:`"complex"` or :obj:`"rotate"` of PyG, :obj:`"transe"`
            (:class:`FreeTransE`), :obj:`"unit-transe"` (PyG's, whose
            embeddings have length one) or :obj:`"rescal"` (:class:`RESCAL`),
            an object of one of these classes, or several of them.
            (default: :obj:`"distmult"`)
        dropout (float, optional): The part of a query's entries that training
            sets to zero. (default: :obj:`0.0`)
        entity_dropout (float, optional): The part of an entity's entries that
            training sets to zero, be it the known one or a candidate.
            (default: :obj:`0.0`)
        latent_dropout (float, optional): The part of queries that training
            answers without this expert, so that the others learn to do it
            alone. Needs scorers that multiply: DistMult, ComplEx, RESCAL.
            (default: :obj:`0.0`)
        n3 (float, optional): The weight of the nuclear 3-norm penalty.
            (default: :obj:`0.0`)
        l2 (float, optional): The weight of the squared 2-norm penalty.
            (default: :obj:`0.0`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        hidden_channels: int,
        scorer: str | KGEModel | Sequence[str | KGEModel] = "distmult",
        dropout: float = 0.0,
        n3: float = 0.0,
        l2: float = 0.0,
        entity_dropout: float = 0.0,
        latent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        several = [scorer] if isinstance(scorer, str | KGEModel) else list(scorer)
        if not several:
            raise ValueError("'scorer' must name at least one scorer (got none)")
        self.scorers = ModuleList(
            scorers.make_scorer(one, num_nodes, num_relations, hidden_channels)
            for one in several
        )
        parts = {
            "dropout": dropout,
            "entity_dropout": entity_dropout,
            "latent_dropout": latent_dropout,
        }
        for name, part in parts.items():
            if not 0 <= part < 1:
                raise ValueError(
                    f"'{name}' must be at least 0 and less than 1 (got {part})"
                )
        for name, weight in {"n3": n3, "l2": l2}.items():
            if not 0 <= weight < math.inf:
                raise ValueError(f"'{name}' must not be negative (got {weight})")
        if latent_dropout > 0 and not self.is_dot:
            raise ValueError(
                "'latent_dropout' must be 0 for scorers that measure distances "
                f"(got {latent_dropout})"
            )
        self.dropout, self.entity_dropout = dropout, entity_dropout
        self.latent_dropout = latent_dropout
        self.n3, self.l2 = n3, l2

    def reset_parameters(self) -> None:
        """Draws all embeddings anew."""
        for scorer in self._kges():
            scorer.reset_parameters()

    @property
    def is_dot(self) -> bool:
        """Whether all scorers multiply a query with a table of candidates."""
        return all(scorers.is_dot(scorer) for scorer in self.scorers)

    @property
    def is_l1(self) -> bool:
        """Whether there is one scorer, which measures distances in the L1 norm."""
        return len(self.scorers) == 1 and scorers.is_l1(self.scorers[0])

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples; a tail index of two dimensions gives as many scores."""
        queries = self.tail_queries(head_index, rel_type)
        if tail_index.dim() > head_index.dim():
            return self.score_candidates(queries, tail_index)
        return self.score_candidates(queries, tail_index.unsqueeze(-1)).squeeze(-1)

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        """Scores all tails of each query."""
        return self._score_all(self.tail_queries(head_index, rel_type))

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Scores all heads of each query."""
        return self._score_all(self.head_queries(rel_type, tail_index))

    def tail_queries(self, head_index: Tensor, rel_type: Tensor) -> list[Tensor]:
        """Returns what tails are compared with, for each scorer."""
        return self._drop(
            scorers.tail_query(scorer, head_index, rel_type, self._drop_entity)
            for scorer in self._kges()
        )

    def head_queries(self, rel_type: Tensor, tail_index: Tensor) -> list[Tensor]:
        """Returns what heads are compared with, for each scorer."""
        return self._drop(
            scorers.head_query(scorer, rel_type, tail_index, self._drop_entity)
            for scorer in self._kges()
        )

    def tables(self) -> list[Tensor]:
        """Returns a row for every candidate, for each scorer."""
        return [scorers.table(scorer, self._drop_entity) for scorer in self._kges()]

    def score_candidates(self, queries: list[Tensor], candidates: Tensor) -> Tensor:
        """Scores some candidates of each query."""
        total = torch.zeros((), device=self.device)
        for scorer, query, rows in zip(self.scorers, queries, self.tables()):
            some = rows[candidates]
            total = total + scorers.compare(scorer, query.unsqueeze(-2), some)
        return total

    def penalty(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the penalties of the embeddings of a batch, per triple."""
        total = torch.zeros((), device=self.device)
        for power, weight in ((3, self.n3), (2, self.l2)):
            if weight == 0:
                continue
            for scorer in self._kges():
                parts = scorers.embeddings(scorer, head_index, rel_type, tail_index)
                norms = sum(part.abs().pow(power).sum() for part in parts)
                total = total + weight * norms / max(head_index.numel(), 1)
        return total

    @property
    def device(self) -> torch.device:
        """Where the embeddings are."""
        return self._kges()[0].node_emb.weight.device

    def _kges(self) -> list[Any]:
        return list(self.scorers)

    def _score_all(self, queries: list[Tensor]) -> Tensor:
        parts = [
            scorers.compare_all(scorer, query, rows)
            for scorer, query, rows in zip(self.scorers, queries, self.tables())
        ]
        return sum(parts[1:], start=parts[0])

    def _drop_entity(self, embedding: Tensor) -> Tensor:
        return self._drop_entries(embedding, self.entity_dropout)

    def _drop_entries(self, values: Tensor, part: float) -> Tensor:
        return drop_entries(values, part) if self.training and part > 0 else values

    def _drop(self, queries: Iterable[Tensor]) -> list[Tensor]:
        dropped = [self._drop_entries(query, self.dropout) for query in queries]
        if self.training and self.latent_dropout > 0:
            # The product with a query of zeros is no score at all.
            drawn = torch.rand(dropped[0].shape[:-1], device=self.device)
            kept = (drawn >= self.latent_dropout).unsqueeze(-1)
            dropped = [query * kept for query in dropped]
        return dropped
