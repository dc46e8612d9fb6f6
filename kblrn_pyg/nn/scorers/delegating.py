"""A scorer that wraps another one."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.nn.scorers.scorer import Scorer
from kblrn_pyg.nn.softmax import Factors


class DelegatingScorer(Scorer):
    r"""Delegates to another scorer; subclasses override some methods.

    Args:
        scorer (Scorer): The other scorer.
    """

    def __init__(self, scorer: Scorer) -> None:
        super(Scorer, self).__init__()  # the model belongs to the scorer
        self.scorer = scorer

    @property
    def kge(self) -> KGEModel:
        """The model of the scorer."""
        return self.scorer.kge

    @property
    def metric(self) -> str | None:  # type: ignore[override]
        """That of the scorer."""
        return self.scorer.metric

    @property
    def num_relations(self) -> int:
        """That of the scorer."""
        return self.scorer.num_relations

    @property
    def has_vectors(self) -> bool:
        """Whether those of the scorer are."""
        return self.scorer.has_vectors

    @property
    def is_direct(self) -> bool:
        """Whether those of the scorer are."""
        return self.scorer.is_direct

    @property
    def is_plain(self) -> bool:
        """Whether those of the scorer are."""
        return self.scorer.is_plain

    @property
    def has_light_queries(self) -> bool:  # type: ignore[override]
        """Whether those of the scorer are."""
        return self.scorer.has_light_queries

    @property
    def needs_reciprocal(self) -> bool:  # type: ignore[override]
        """Whether the scorer does."""
        return self.scorer.needs_reciprocal

    @property
    def title(self) -> str:
        """The name of the scorer in explanations."""
        return self.scorer.title

    def reset_parameters(self) -> None:
        self.scorer.reset_parameters()

    def encode(self) -> Any:
        return self.scorer.encode()

    def table(self, encoded: Any, index: Tensor | None = None) -> Tensor:
        return self.scorer.table(encoded, index)

    def tail_query(self, head: Tensor, rel_type: Tensor) -> Tensor:
        return self.scorer.tail_query(head, rel_type)

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.scorer.head_query(rel_type, tail)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return self.scorer.compare(query, rows)

    def drop_entries(self, query: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
        return self.scorer.drop_entries(query, drop)

    def norm(self, power: int, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.scorer.norm(power, head, rel_type, tail)

    def dura(self, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.scorer.dura(head, rel_type, tail)

    def relation_factors(self, head: Tensor, tail: Tensor) -> Factors | None:
        return self.scorer.relation_factors(head, tail)

    def relation_loss(
        self,
        head: Tensor,
        rel_type: Tensor,
        tail: Tensor,
        precision: torch.dtype | None = None,
    ) -> Tensor:
        return self.scorer.relation_loss(head, rel_type, tail, precision)

    def fingerprint(self) -> str:
        return self.scorer.fingerprint()
