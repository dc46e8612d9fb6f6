"""The relational expert: which paths connect two entities."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Module, Parameter
from torch_geometric.utils import segment

from kblrn_pyg.rules import PathFeatures


class RelationalExpert(Module):
    r"""Scores a triple by the bodies of its relation's rules that hold:

    .. math::
        \log f_{(r, R)}(h, r, t) = \mathbf{r}_{(h, t)} \cdot
        \mathbf{w}^r_{\textrm{rel}}

    with one weight for every (relation, body).

    Args:
        features (PathFeatures): The rules, and the facts to evaluate them on.
    """

    def __init__(self, features: PathFeatures) -> None:
        super().__init__()
        self.features = features
        self.weight = Parameter(torch.empty(len(features.rules)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as Glorot and Bengio do, relation by relation."""
        sizes = torch.from_numpy(np.diff(self.features.rules.ptr))
        bound = (6 / (sizes + 1.0)).sqrt().repeat_interleave(sizes)
        with torch.no_grad():
            self.weight.uniform_(-1, 1).mul_(bound)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        found = self.features.pairs(_ids(head_index), _ids(rel_type), _ids(tail_index))
        return self._sum(found.ptr, found.rule)

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        """Scores all tails of each query."""
        return self.add_to(self._zeros(head_index), False, head_index, rel_type)

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Scores all heads of each query."""
        return self.add_to(self._zeros(tail_index), True, tail_index, rel_type)

    def add_to(
        self, scores: Tensor, from_tail: bool, entity: Tensor, rel_type: Tensor
    ) -> Tensor:
        r"""Adds the scores of all candidates to rows of scores, maybe in place.

        Args:
            scores (torch.Tensor): A row for each query.
            from_tail (bool): Whether the known entities are tails.
            entity (torch.Tensor): The known entity of each query.
            rel_type (torch.Tensor): The relation of each query.
        """
        if scores.device.type == "cpu":
            return _AddPaths.apply(
                scores, self.weight, self.features, from_tail, entity, rel_type
            )
        known, rel = _ids(entity), _ids(rel_type)
        walk = self.features.heads if from_tail else self.features.tails
        found = walk(rel, known) if from_tail else walk(known, rel)
        rows = np.repeat(np.arange(len(known)), np.diff(found.ptr))
        row, candidate, rule = (
            torch.from_numpy(ids).to(scores.device)
            for ids in (rows, found.candidate, found.rule)
        )
        return scores.index_put((row, candidate), self.weight[rule], accumulate=True)

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the part of each fact's score that the fact itself gives."""
        found = self.features.own_evidence(
            _ids(head_index), _ids(rel_type), _ids(tail_index)
        )
        return self._sum(found.ptr, found.rule)

    def contributions(self, head: int, rel: int, tail: int) -> list[tuple[int, float]]:
        """Returns the rules that hold for a triple, with their weights."""
        rules = self.features.pairs([head], [rel], [tail]).rule.tolist()
        return [(rule, float(self.weight[rule])) for rule in rules]

    def _sum(self, ptr: np.ndarray, rule: np.ndarray) -> Tensor:
        device = self.weight.device
        values = self.weight[torch.from_numpy(rule).to(device)]
        return segment(values, torch.from_numpy(ptr).to(device))

    def _zeros(self, entity: Tensor) -> Tensor:
        return self.weight.new_zeros(entity.numel(), self.features.num_entities)


class _AddPaths(torch.autograd.Function):
    """Walks the paths forward to add scores, and again to collect gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        features: PathFeatures,
        from_tail: bool,
        entity: Tensor,
        rel_type: Tensor,
    ) -> Tensor:
        ctx.features, ctx.from_tail = features, from_tail
        ctx.save_for_backward(entity, rel_type)
        ctx.mark_dirty(scores)
        features.add_scores(
            from_tail,
            _ids(entity),
            _ids(rel_type),
            weight.detach().numpy(),
            scores.detach().numpy(),
        )
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        entity, rel_type = ctx.saved_tensors
        weight_grad = None
        if ctx.needs_input_grad[1]:
            found = ctx.features.weight_gradient(
                ctx.from_tail,
                _ids(entity),
                _ids(rel_type),
                grad.contiguous().numpy(),
            )
            weight_grad = torch.from_numpy(found).to(grad.dtype)
        return grad, weight_grad, None, None, None, None


def _ids(index: Tensor) -> np.ndarray:
    return index.detach().cpu().contiguous().numpy()
