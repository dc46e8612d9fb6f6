"""Penalties on the embeddings that a batch looks up."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from kblrn_pyg.nn.entity_rows import EntityRows
from kblrn_pyg.nn.penalties.penalty import RulePenalty
from kblrn_pyg.shard import num_processes, process_rank

# Of a batch of more triples, only this number is drawn for penalties.
_MAX_PENALISED = 4096


class EmbeddingPenalties(NamedTuple):
    r"""The terms that a latent expert adds to the loss; see :class:`LatentExpert`.

    Args:
        n3 (float): The weight of the nuclear 3-norm penalty.
        l2 (float): The weight of the squared 2-norm penalty.
        dura (float): The weight of the duality-induced penalty.
        relation_prediction (float): The weight of the cross-entropy of relations.
        rule_penalty (RulePenalty, optional): Rules in the loss.
        precision (torch.dtype, optional): The type of the numbers that may be
            multiplied.
    """

    n3: float
    l2: float
    dura: float
    relation_prediction: float
    rule_penalty: RulePenalty | None
    precision: torch.dtype | None

    def of_batch(
        self, several: Sequence[EntityRows], triples: tuple[Tensor, Tensor, Tensor]
    ) -> Tensor | float:
        r"""Returns the penalties of a batch, per triple.

        If a batch of queries has very many answers, some of the triples are drawn.

        Args:
            several (sequence): The rows of each scorer.
            triples (tuple): The heads, relations and tails.
        """
        weights = self.n3, self.l2, self.dura, self.relation_prediction
        size = triples[0].numel()
        if size == 0 or not (any(weights) or self.rule_penalty is not None):
            return 0.0
        if size > _MAX_PENALISED:
            drawn = torch.randperm(size, device=triples[0].device)[:_MAX_PENALISED]
            head_index, rel_type, tail_index = triples
            triples = head_index[drawn], rel_type[drawn], tail_index[drawn]
        total: Tensor | float = 0.0
        for rows in several:
            total = total + self._norms(rows, *triples)
            # Every process computes the others, and each counts a share of them.
            if self.dura > 0 or self.relation_prediction > 0:
                total = total + self._of_pairs(rows, *triples) / num_processes()
            if self.rule_penalty is not None:
                found = self.rule_penalty(rows.scorer, triples[0].numel())
                total = total + found / num_processes()
        shard = several[0].shard
        if shard is not None and isinstance(total, Tensor):
            total = shard.sum(total)
        return total

    def _norms(
        self, rows: EntityRows, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the penalties of single embeddings."""
        weights = {3: self.n3, 2: self.l2}
        if not any(weights.values()):
            return 0.0
        size, ends, shard = head_index.numel(), [head_index, tail_index], rows.shard
        if shard is not None:  # each number is added up by one process
            ends = [shard.local(i[shard.is_mine(i)]) for i in ends]
            rel_type = rel_type if process_rank() == 0 else rel_type[:0]
        head, tail = rows.embeddings(torch.cat(ends)).split(
            [index.numel() for index in ends]
        )
        norms = (
            weight * rows.scorer.norm(power, head, rel_type, tail)
            for power, weight in weights.items()
            if weight > 0
        )
        return sum(norms) / size

    def _of_pairs(
        self, rows: EntityRows, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the penalties that need the rows of both entities of a triple."""
        head, tail = rows.anywhere(torch.cat([head_index, tail_index])).chunk(2)
        total: Tensor | float = 0.0
        if self.dura > 0:
            norm = rows.scorer.dura(head, rel_type, tail)
            total = total + self.dura * norm / head_index.numel()
        if self.relation_prediction > 0:
            given = head, rel_type, tail, self.precision
            total = total + self.relation_prediction * rows.scorer.relation_loss(*given)
        return total
