"""Adversarial sets: rules that hold even for the worst embeddings of entities."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.nn.penalties.penalty import RulePenalty, innermost, is_reciprocal
from kblrn_pyg.nn.scorers import ComplExScorer, DistMultScorer, Scorer
from kblrn_pyg.rules import RuleSet

# The factors of relations, by the scorer that they belong to.
_FACTORS: dict[type[Scorer], Callable[[Any, Tensor], Tensor]] = {
    DistMultScorer: lambda scorer, rel_type: scorer.kge.rel_emb(rel_type),
    ComplExScorer: lambda scorer, rel_type: torch.complex(*scorer.relation(rel_type)),
}


class ASRPenalty(RulePenalty):
    r"""The inconsistency loss of the `"Adversarial Sets for Regularising Neural Link
    Predictors" <https://arxiv.org/abs/1707.07596>`_ paper, in closed form, for
    DistMult and ComplEx.

    A rule :math:`r(h, t) \Leftarrow a(h, t)` is violated by as much as the score of
    its body is above that of its head. Among all entities whose embeddings have
    length one, none violates it more than by

    .. math::
        \max_{\mathbf{e}_h, \mathbf{e}_t} {[ d(h, a, t) - d(h, r, t) ]}_+ =
        {\| \mathbf{w}_a - \mathbf{w}_r \|}_\infty

    and for :math:`a(t, h)` the same with the conjugate of :math:`\mathbf{w}_a`. The
    penalty is the sum over all rules; it does not depend on entities. With
    reciprocal relations, a rule applies to both directions.

    The paper also keeps the embeddings of entities on the unit sphere, or in the
    unit cube, for which it has other closed forms. Here, their lengths are
    unconstrained, as a softmax requires, and the penalty bounds the violation per
    unit of length. Rules of more steps, for which the paper lets an adversary learn
    the worst embeddings, are left out.

    Args:
        data (HeteroData): The knowledge base.
        rules (RuleSet): The rules, of which those with one step are used.
        weight (float, optional): The factor of the penalty. (default: :obj:`1.0`)
    """

    usable = "one step"

    def can_use(self, rules: RuleSet) -> np.ndarray:
        return rules.num_steps == 1

    def check(self, scorer: Scorer, is_split: bool = False) -> None:
        if type(innermost(scorer)) not in _FACTORS:
            raise ValueError(
                "'penalty' must not be asr for scorers other than DistMult and ComplEx "
                f"(got {scorer.title})"
            )

    def forward(self, scorer: Scorer, num_triples: int) -> Tensor:
        inner = innermost(scorer)
        factor_of = _FACTORS[type(inner)]
        index = torch.from_numpy(np.stack([self.rules.head, self.rules.steps[:, 0]]))
        head, code = index.to(scorer.device)
        body, is_against = code >> 1, code & 1
        if is_reciprocal(scorer):
            size = scorer.num_relations
            heads = torch.cat([head, head + size])
            bodies = torch.cat(
                [body + is_against * size, body + (1 - is_against) * size]
            )
            difference = factor_of(inner, bodies) - factor_of(inner, heads)
        else:
            along = factor_of(inner, body)
            against = is_against.bool().unsqueeze(-1)
            turned = torch.where(against, along.conj(), along)
            difference = turned - factor_of(inner, head)
        return self.weight * difference.abs().amax(dim=-1).sum()
