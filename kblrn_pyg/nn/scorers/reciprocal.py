"""Reciprocal relations: heads are predicted through a separate relation."""

import torch
from torch import Tensor

from kblrn_pyg.nn.scorers.delegating import DelegatingScorer
from kblrn_pyg.nn.scorers.scorer import Scorer


class ReciprocalScorer(DelegatingScorer):
    r"""Asks :math:`(?, r, t)` as :math:`(t, r^{-1}, ?)`, with embeddings of
    :math:`r^{-1}`, from the `"Canonical Tensor Decomposition for Knowledge Base
    Completion" <https://arxiv.org/abs/1806.07297>`_ paper.

    A triple then has two scores, one as an answer to each of its queries.

    Args:
        scorer (Scorer): A scorer over twice as many relations: first the relations,
            then their reciprocals.
    """

    def __init__(self, scorer: Scorer) -> None:
        if scorer.num_relations % 2:
            raise ValueError(
                "'scorer' must have two relations for each relation (got "
                f"{scorer.num_relations})"
            )
        super().__init__(scorer)

    @property
    def num_relations(self) -> int:
        """The number of relations without reciprocal ones."""
        return self.scorer.num_relations // 2

    @property
    def needs_reciprocal(self) -> bool:  # type: ignore[override]
        """It has them."""
        return False

    def head_query(self, rel_type: Tensor, tail: Tensor) -> Tensor:
        return self.scorer.tail_query(tail, rel_type + self.num_relations)

    def norm(self, power: int, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        to_tail = self.scorer.norm(power, head, rel_type, tail)
        inverse = rel_type + self.num_relations
        return (to_tail + self.scorer.norm(power, tail, inverse, head)) / 2

    def dura(self, head: Tensor, rel_type: Tensor, tail: Tensor) -> Tensor:
        to_tail = self.scorer.dura(head, rel_type, tail)
        to_head = self.scorer.dura(tail, rel_type + self.num_relations, head)
        return (to_tail + to_head) / 2

    def relation_loss(
        self,
        head: Tensor,
        rel_type: Tensor,
        tail: Tensor,
        precision: torch.dtype | None = None,
    ) -> Tensor:
        to_tail = self.scorer.relation_loss(head, rel_type, tail, precision)
        inverse = rel_type + self.num_relations
        to_head = self.scorer.relation_loss(tail, inverse, head, precision)
        return (to_tail + to_head) / 2

    def fingerprint(self) -> str:
        return f"reciprocal {self.scorer.fingerprint()}"
