"""The relational expert: which paths connect two entities."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.utils import segment

from kblrn_pyg.nn.expert import FeatureExpert, at_least_single
from kblrn_pyg.rules import PathFeatures


class RelationalExpert(FeatureExpert):
    r"""Scores a triple by the bodies of its relation's rules that hold:

    .. math::
        \log f_{(r, R)}(h, r, t) = \mathbf{r}_{(h, t)} \cdot
        \mathbf{w}^r_{\textrm{rel}}

    with one weight for every (relation, body).

    Args:
        features (PathFeatures): The rules, and the facts to evaluate them on.
    """

    def __init__(self, features: PathFeatures) -> None:
        super().__init__(features.num_entities, len(features.rules))
        self.features = features
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the weights as Glorot and Bengio do, relation by relation."""
        self.draw_weights(torch.from_numpy(np.diff(self.features.rules.ptr)))

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        found = self.features.pairs(_ids(head_index), _ids(rel_type), _ids(tail_index))
        return self._sum(found.ptr, found.rule)

    def add_to(
        self, scores: Tensor, from_tail: bool, entity: Tensor, rel_type: Tensor
    ) -> Tensor:
        """Adds the scores of all candidates; see :class:`FeatureExpert`."""
        scores = at_least_single(scores)
        weight = self.weight.to(scores.dtype)
        if scores.device.type == "cpu":
            return _AddPaths.apply(
                scores, weight, self.features, from_tail, entity, rel_type
            )
        known, rel = _ids(entity), _ids(rel_type)
        walk = self.features.heads if from_tail else self.features.tails
        found = walk(rel, known) if from_tail else walk(known, rel)
        rows = np.repeat(np.arange(len(known)), np.diff(found.ptr))
        row, candidate, rule = (
            torch.from_numpy(ids).to(scores.device)
            for ids in (rows, found.candidate, found.rule)
        )
        return scores.index_put((row, candidate), weight[rule], accumulate=True)

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
