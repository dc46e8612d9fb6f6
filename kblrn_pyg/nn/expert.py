"""What the experts with one weight for every feature of a relation share."""

import torch
from torch import Tensor
from torch.nn import Module, Parameter


def at_least_single(scores: Tensor) -> Tensor:
    """Returns scores in a precision that kernels know."""
    is_short = scores.dtype in (torch.half, torch.bfloat16)
    return scores.float() if is_short else scores


class FeatureExpert(Module):
    r"""An expert that adds up the weights of features.

    Args:
        num_nodes (int): The number of entities.
        num_features (int): The number of features of all relations.
    """

    def __init__(self, num_nodes: int, num_features: int) -> None:
        super().__init__()
        self.num_nodes = num_nodes
        self.weight = Parameter(torch.empty(num_features))

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
        raise NotImplementedError

    def draw_weights(self, sizes: Tensor) -> None:
        r"""Draws the weights as Glorot and Bengio do, relation by relation.

        Args:
            sizes (torch.Tensor): The number of features of each relation.
        """
        bound = (6 / (sizes + 1.0)).sqrt().repeat_interleave(sizes)
        with torch.no_grad():
            self.weight.uniform_(-1, 1).mul_(bound.to(self.weight))

    def _zeros(self, entity: Tensor) -> Tensor:
        return self.weight.new_zeros(entity.numel(), self.num_nodes)
