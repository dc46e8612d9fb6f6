"""The base class of experts with one weight for every feature of a relation."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from kblrn_pyg.data.ids import check_id
from kblrn_pyg.nn.expert import Expert, factor_of


def at_least_single(scores: Tensor) -> Tensor:
    """Returns scores in a precision that kernels support."""
    is_short = scores.dtype in (torch.half, torch.bfloat16)
    return scores.float() if is_short else scores


class FeatureExpert(Expert):
    r"""An expert that adds up the weights of features.

    Args:
        ptr (torch.Tensor): Where the features of each relation begin.
        num_weights (int, optional): The number of weights, if it differs from
            that of features. (default: :obj:`None`)
    """

    uses_own_threads = True
    needs_scores = False

    feature_ptr: Tensor

    def __init__(self, ptr: Tensor, num_weights: int | None = None) -> None:
        super().__init__()
        self.register_buffer("feature_ptr", ptr, persistent=False)
        num_weights = int(ptr[-1]) if num_weights is None else num_weights
        self.weight = Parameter(torch.empty(num_weights))

    def _apply(self, fn: Any, recurse: bool = True) -> "FeatureExpert":
        """Moves everything; numbers of the knowledge base keep their precision."""
        exact = {
            name: buffer
            for name, buffer in self._buffers.items()
            if buffer is not None and buffer.is_floating_point()
        }
        super()._apply(fn, recurse)
        for name, buffer in exact.items():
            self._buffers[name] = buffer.to(self.feature_ptr.device)
        return self

    def reset_parameters(self) -> None:
        """Initialises the weights as in Glorot and Bengio (2010), per relation."""
        sizes = self.feature_ptr.diff()
        bound = (6 / (sizes + 1.0)).sqrt().repeat_interleave(sizes)
        with torch.no_grad():
            self.weight.uniform_(-1, 1).mul_(bound.to(self.weight))

    @torch.no_grad()
    def scale(self, factor: float | Tensor) -> None:
        """Multiplies the weights; see :class:`Expert`."""
        self.weight.mul_(factor_of(factor, self.relation_of_feature()))

    def relation_of_feature(self) -> Tensor:
        """Returns the relation of each feature."""
        sizes = self.feature_ptr.diff()
        return torch.arange(len(sizes), device=sizes.device).repeat_interleave(sizes)

    def speaks_of(self, rel: int) -> bool:
        """Returns whether a relation has features."""
        rel = check_id(rel, "relation", len(self.feature_ptr) - 1)
        return bool(self.feature_ptr[rel] < self.feature_ptr[rel + 1])
