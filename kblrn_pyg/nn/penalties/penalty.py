"""The base class of rule penalties."""

import math
import warnings

import numpy as np
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.nn.arguments import Rebuildable
from kblrn_pyg.nn.scorers import DelegatingScorer, Scorer
from kblrn_pyg.rules import RuleSet


class RulePenalty(Rebuildable):
    r"""A term of the loss of a latent expert that makes its scores respect rules:
    rules in the loss, instead of rules as features.

    Args:
        data (HeteroData): The knowledge base.
        rules (RuleSet): The rules; a warning reports those that cannot be used.
        weight (float, optional): The factor of the penalty. (default: :obj:`1.0`)
    """

    # What a rule that can be used looks like.
    usable = "any"

    def __init__(self, data: HeteroData, rules: RuleSet, weight: float = 1.0) -> None:
        super().__init__()
        if not 0 <= weight < math.inf:
            raise ValueError(f"'weight' must not be negative (got {weight})")
        if len(rules) == 0:
            raise ValueError("'rules' must contain a rule for a penalty (got none)")
        is_usable = self.can_use(rules)
        if not is_usable.any():
            raise ValueError(
                f"'rules' must have bodies of {self.usable} for this penalty (got "
                f"{len(rules)} others)"
            )
        if not is_usable.all():
            warnings.warn(
                f"{(~is_usable).sum()} of {len(rules)} rules are not in the penalty: "
                f"only bodies of {self.usable} are",
                stacklevel=2,
            )
        self.data, self.rules = data, rules.select(is_usable)
        self.weight = weight

    def can_use(self, rules: RuleSet) -> np.ndarray:
        r"""Returns which rules can be used.

        Args:
            rules (RuleSet): The rules.
        """
        return np.ones(len(rules), bool)

    def check(self, scorer: Scorer, is_split: bool = False) -> None:
        r"""Refuses scorers that the penalty does not support.

        Args:
            scorer (Scorer): The scorer.
            is_split (bool, optional): Whether this process has only some of the
                entities. (default: :obj:`False`)
        """
        raise NotImplementedError

    def forward(self, scorer: Scorer, num_triples: int) -> Tensor:
        r"""Returns the penalty of a scorer.

        Args:
            scorer (Scorer): The scorer.
            num_triples (int): The number of triples of the batch.
        """
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Returns the number of rules."""
        return f"{len(self.rules)} rules, weight={self.weight}"


def innermost(scorer: Scorer) -> Scorer:
    """Returns the innermost of nested scorers."""
    while isinstance(scorer, DelegatingScorer):
        scorer = scorer.scorer
    return scorer


def is_reciprocal(scorer: Scorer) -> bool:
    """Returns whether a scorer predicts heads through reciprocal relations."""
    return scorer.num_relations != scorer.kge.num_relations
