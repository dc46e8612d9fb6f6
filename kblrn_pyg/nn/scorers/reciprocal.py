"""Reciprocal relations: asking for heads by a relation of its own."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch_geometric.nn.kge import KGEModel

from kblrn_pyg.nn.scorers.scorer import Scorer


class ReciprocalScorer(Scorer):
    r"""Asks :math:`(?, r, t)` as :math:`(t, r^{-1}, ?)`, with embeddings of
    :math:`r^{-1}`, from the `"Canonical Tensor Decomposition for Knowledge Base
    Completion" <https://arxiv.org/abs/1806.07297>`_ paper.

    A triple then has two scores, one as an answer to each of its queries.

    Args:
        scorer (Scorer): A scorer over twice as many relations, those to ask for
            heads behind the others.
    """

    def __init__(self, scorer: Scorer) -> None:
        if scorer.num_relations % 2:
            raise ValueError(
                "'scorer' must have two relations for each relation (got "
                f"{scorer.num_relations})"
            )
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
        """The number of relations, those to ask for heads not counted."""
        return self.scorer.num_relations // 2

    @property
    def has_vectors(self) -> bool:
        """Whether those of the scorer are."""
        return self.scorer.has_vectors

    @property
    def is_direct(self) -> bool:
        """Whether those of the scorer are."""
        return self.scorer.is_direct

    @property
    def has_light_queries(self) -> bool:  # type: ignore[override]
        """Whether those of the scorer are."""
        return self.scorer.has_light_queries

    @property
    def title(self) -> str:
        """What explanations call the scorer."""
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
        return self.scorer.tail_query(tail, rel_type + self.num_relations)

    def compare(self, query: Tensor, rows: Tensor) -> Tensor:
        return self.scorer.compare(query, rows)

    def drop_entries(self, query: Tensor, drop: Callable[[Tensor], Tensor]) -> Tensor:
        return self.scorer.drop_entries(query, drop)

    def norm(
        self, power: int, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        to_tail = self.scorer.norm(power, head_index, rel_type, tail_index)
        inverse = rel_type + self.num_relations
        to_head = self.scorer.norm(power, tail_index, inverse, head_index)
        return (to_tail + to_head) / 2

    def fingerprint(self) -> str:
        return f"reciprocal {self.scorer.fingerprint()}"
