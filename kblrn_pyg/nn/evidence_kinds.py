"""Sums evidence of different kinds, with a weight for each of them."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from kblrn_pyg.rules.evidence_kinds import KindFeatures, QueryKinds, TripleKinds


def weigh_triples(found: TripleKinds, weight: Tensor) -> Tensor:
    r"""Returns the sum of the weighted evidence of each triple.

    Args:
        found (TripleKinds): The evidence.
        weight (torch.Tensor): The weight of each pair of a code and a kind.
    """
    number = torch.from_numpy(np.diff(found.ptr))
    row = torch.repeat_interleave(torch.arange(len(number)), number)
    pair, strength = (torch.from_numpy(one) for one in (found.pair, found.strength))
    value = weight.index_select(0, pair.to(weight.device)) * strength.to(weight)
    sums = weight.new_zeros(len(number))
    return sums.index_add(0, row.to(weight.device), value)


class AddKinds(torch.autograd.Function):
    """Adds the weighted evidence of queries to rows of scores, in place."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, weight: Tensor, asked: QueryKinds) -> Tensor:
        ctx.mark_dirty(scores)
        rows, weights = scores.detach().numpy(), weight.detach().numpy()
        asked.add_to(rows, weights, keep=ctx.needs_input_grad[1])
        ctx.asked, ctx.size = asked, len(weight)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        by_weight = None
        if ctx.needs_input_grad[1]:
            found = ctx.asked.gradient(grad.contiguous().numpy(), ctx.size)
            by_weight = torch.from_numpy(found).to(grad.dtype)
        return grad, by_weight, None


@torch.no_grad()
def take_kind_weights(
    weight: Tensor, kinds: KindFeatures, old_weight: Tensor, old: KindFeatures
) -> None:
    r"""Copies the weights of pairs of a code and a kind that others have, too.

    Args:
        weight (torch.Tensor): The weight of each pair; that of a new one stays.
        kinds (KindFeatures): The pairs.
        old_weight (torch.Tensor): The weight of each of the other pairs.
        old (KindFeatures): The other pairs.
    """
    ours, theirs = kinds.keys(), old.keys()
    place = np.searchsorted(theirs, ours).clip(max=max(len(theirs) - 1, 0))
    is_there = (
        np.flatnonzero(theirs[place] == ours) if len(theirs) else np.empty(0, int)
    )
    weight[torch.from_numpy(is_there)] = old_weight[torch.from_numpy(place[is_there])]
