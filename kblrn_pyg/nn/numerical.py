"""The numerical expert: how the numbers of two entities differ."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter

from kblrn_pyg.data import NumericalFeatures
from kblrn_pyg.kernels.scoring import (
    Differences,
    add_differences,
    difference_gradient,
)
from kblrn_pyg.kernels.threads import default_threads, run_all
from kblrn_pyg.nn.expert import FeatureExpert, at_least_single


class NumericalExpert(FeatureExpert):
    r"""Scores a triple by the differences of its entities' numbers:

    .. math::
        \log f_{(r, N)}(h, r, t) = \phi(\mathbf{n}_h - \mathbf{n}_t) \cdot
        \mathbf{w}^r_{\textrm{num}}, \quad
        \phi(d)_i = \exp\left(\frac{-(d_i - c_i)^2}{\sigma_i^2}\right)

    over the attributes of the relation (see
    :meth:`~kblrn_pyg.data.numerical_features`). A number that is unknown on
    either side gives an activation of zero and carries no gradient.

    Args:
        features (NumericalFeatures): The attributes of each relation, with
            centres and widths.
        x (torch.Tensor): The numbers of each entity, NaN where unknown.
        activation (str, optional): :obj:`"rbf"`, or :obj:`"sign"` for the
            sign of the difference. (default: :obj:`"rbf"`)
        learn_rbf (bool, optional): Whether centres and widths are learned; the
            paper keeps them fixed. (default: :obj:`False`)
    """

    ptr: Tensor
    attribute: Tensor
    x: Tensor
    centre: Tensor
    log_width: Tensor

    def __init__(
        self,
        features: NumericalFeatures,
        x: Tensor,
        activation: str = "rbf",
        learn_rbf: bool = False,
    ) -> None:
        super().__init__(x.size(0), len(features))
        if activation not in ("rbf", "sign"):
            raise ValueError(f"'activation' must be rbf or sign (got {activation!r})")
        if learn_rbf and activation == "sign":
            raise ValueError("'learn_rbf' must be False for the activation sign")
        self.activation, self.learn_rbf = activation, learn_rbf
        self.register_buffer("ptr", features.ptr, persistent=False)
        self.register_buffer("attribute", features.attribute, persistent=False)
        self.register_buffer("x", x.double(), persistent=False)
        # As exact as the numbers: a centre may be large and a width small.
        self._start = features.centre.double(), features.width.double().log()
        if learn_rbf:
            self.centre = Parameter(torch.empty(len(features)))
            self.log_width = Parameter(torch.empty(len(features)))
        else:
            self.register_buffer("centre", self._start[0].clone(), persistent=False)
            self.register_buffer("log_width", self._start[1].clone(), persistent=False)
        self._kernel_features = _kernel_features(features, x, activation == "sign")
        self.reset_parameters()

    def _apply(self, fn: Any, recurse: bool = True) -> "NumericalExpert":
        """Moves everything; numbers stay as exact as they are."""
        exact = {
            name: buffer
            for name, buffer in self._buffers.items()
            if buffer is not None and buffer.is_floating_point()
        }
        super()._apply(fn, recurse)
        for name, buffer in exact.items():
            self._buffers[name] = buffer.to(self.ptr.device)
        return self

    def reset_parameters(self) -> None:
        """Draws the weights as Glorot and Bengio do, relation by relation."""
        self.draw_weights(self.ptr.diff())
        with torch.no_grad():
            self.centre.copy_(self._start[0])
            self.log_width.copy_(self._start[1])

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples; a tail index of two dimensions gives as many scores."""
        return self.score_pairs(head_index, rel_type, tail_index)

    def score_pairs(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores pairs whose indices broadcast against each other."""
        shape = torch.broadcast_shapes(
            head_index.shape, rel_type.shape, tail_index.shape
        )
        head, rel, tail = (
            index.expand(shape).flatten()
            for index in (head_index, rel_type, tail_index)
        )
        counts = self.ptr.diff()[rel]
        row = torch.arange(rel.numel(), device=rel.device).repeat_interleave(counts)
        first = self.ptr[rel].repeat_interleave(counts)
        begin = (counts.cumsum(0) - counts).repeat_interleave(counts)
        feature = first + torch.arange(row.numel(), device=rel.device) - begin
        attribute = self.attribute[feature]
        difference = self.x[head[row], attribute] - self.x[tail[row], attribute]
        known = ~difference.isnan()
        # Unknown ones leave here, so that no NaN can ever reach a gradient.
        row, feature, difference = row[known], feature[known], difference[known]
        active = self._activate(difference, feature)
        values = self.weight[feature] * active.to(self.weight.dtype)
        scores = self.weight.new_zeros(rel.numel())
        return scores.index_add(0, row, values).view(shape)

    def add_to(
        self, scores: Tensor, from_tail: bool, entity: Tensor, rel_type: Tensor
    ) -> Tensor:
        """Adds the scores of all candidates; see :class:`FeatureExpert`."""
        scores = at_least_single(scores)
        if scores.device.type == "cpu":
            width = self.log_width.exp()
            return _AddDifferences.apply(
                scores,
                self.weight,
                self.centre,
                width,
                self._kernel_features,
                from_tail,
                entity,
                rel_type,
            )
        candidates = torch.arange(self.x.size(0), device=scores.device)
        ends = (entity[:, None], candidates)
        if from_tail:
            ends = (candidates, entity[:, None])
        return scores + self.score_pairs(ends[0], rel_type[:, None], ends[1])

    def contributions(
        self, head: int, rel: int, tail: int
    ) -> list[tuple[int, float, float, float]]:
        """Returns feature, difference, activation and weight of known numbers."""
        found = []
        for i in range(int(self.ptr[rel]), int(self.ptr[rel + 1])):
            attribute = self.attribute[i]
            difference = self.x[head, attribute] - self.x[tail, attribute]
            if not difference.isnan():
                feature = torch.tensor([i], device=self.ptr.device)
                active = self._activate(difference[None], feature)
                found.append(
                    (i, float(difference), float(active), float(self.weight[i]))
                )
        return found

    @property
    def kernel_features(self) -> Differences:
        """What kernels need to know of the features."""
        return self._kernel_features

    def _activate(self, difference: Tensor, feature: Tensor) -> Tensor:
        if self.activation == "sign":
            return difference.sign()
        width = self.log_width.double().exp()[feature]
        off = (difference - self.centre.double()[feature]) / width
        return (-off.square()).exp()


class _AddDifferences(torch.autograd.Function):
    """Adds activations where both numbers are known, and nothing elsewhere."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        centre: Tensor,
        width: Tensor,
        features: Differences,
        from_tail: bool,
        entity: Tensor,
        rel_type: Tensor,
    ) -> Tensor:
        ctx.features, ctx.sign = features, -1.0 if from_tail else 1.0
        ctx.save_for_backward(entity, rel_type, weight, centre, width)
        ctx.mark_dirty(scores)
        numbers = [t.detach().double().numpy() for t in (weight, centre, width)]
        rows = scores.detach().numpy()

        def add(part: slice, _: None) -> None:
            asked = entity.numpy()[part], rel_type.numpy()[part]
            add_differences(features, ctx.sign, *asked, *numbers, rows[part])

        for _ in run_all(add, _parts(len(rows)), lambda: None):
            pass
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        entity, rel_type, weight, centre, width = ctx.saved_tensors
        numbers = [t.detach().double().numpy() for t in (weight, centre, width)]
        rows = grad.contiguous().numpy()
        parts = _parts(len(rows))
        # Adding up in order keeps sums reproducible, whichever thread is first.
        grads = np.zeros((len(parts), 3, weight.numel()))

        def add(i: int, _: None) -> None:
            part = parts[i]
            asked = entity.numpy()[part], rel_type.numpy()[part]
            difference_gradient(
                ctx.features, ctx.sign, *asked, *numbers, rows[part], grads[i]
            )

        for _ in run_all(add, range(len(parts)), lambda: None):
            pass
        total = torch.from_numpy(grads.sum(axis=0)).to(grad.dtype)
        by_weight, by_centre, by_width = total
        return grad, by_weight, by_centre, by_width, None, None, None, None


def _parts(size: int) -> list[slice]:
    """Cuts rows into parts, more than threads, so that all end together."""
    bounds = np.linspace(0, size, 4 * default_threads() + 1).astype(int).tolist()
    return [slice(a, b) for a, b in zip(bounds[:-1], bounds[1:])]


def _kernel_features(
    features: NumericalFeatures, x: Tensor, use_sign: bool
) -> Differences:
    known = ~x.isnan()
    entity = known.t().nonzero()[:, 1]
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), known.sum(0).cumsum(0)])
    return Differences(
        features.ptr.numpy(),
        features.attribute.numpy(),
        x.double().t().contiguous().numpy(),
        ptr.numpy(),
        entity.contiguous().numpy(),
        use_sign,
    )
