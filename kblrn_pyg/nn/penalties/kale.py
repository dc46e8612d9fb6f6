"""KALE: rules as fuzzy logic over grounded rules."""

import warnings
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.nn.penalties.penalty import RulePenalty, is_reciprocal
from kblrn_pyg.nn.scorers import Scorer
from kblrn_pyg.rules import RuleSet, ground_rules


class KALEPenalty(RulePenalty):
    r"""The loss over rules of the `"Jointly Embedding Knowledge Graphs and Logical
    Rules" <https://aclanthology.org/D16-1019>`_ paper, for TransE in the L1 norm.

    A triple has a truth value, and so has a ground rule, by the product t-norm:

    .. math::
        I(h, r, t) &= 1 - \frac{1}{3 \sqrt{d}} {\| \mathbf{e}_h + \mathbf{w}_r -
        \mathbf{e}_t \|}_1

        I(b_1 \wedge b_2 \Rightarrow c) &= I(b_1) I(b_2) (I(c) - 1) + 1

    The penalty is the mean of :math:`{[ \gamma - I(b \Rightarrow c) + I(b
    \Rightarrow c^{\prime}) ]}_+` over as many groundings as a batch has triples. In
    :math:`c^{\prime}` a relation that does not occur in the grounding replaces that
    of :math:`c`.

    It differs from the paper in three ways. Groundings are those whose bodies are
    known; the paper also uses groundings of which only the conclusion is known,
    which are not informative about the body. Facts are learned by the loss of the
    model, not by the same margin. Embeddings may be longer than one, as a softmax
    requires (see :class:`FreeTransE`), so the truth values of body facts are
    clamped at 0.

    Args:
        data (HeteroData): The knowledge base.
        rules (RuleSet): The rules, of which those with one or two steps are used.
        weight (float, optional): The factor of the penalty. (default: :obj:`1.0`)
        margin (float, optional): The margin :math:`\gamma`. (default: :obj:`0.2`)
    """

    usable = "one or two steps"

    def __init__(
        self,
        data: HeteroData,
        rules: RuleSet,
        weight: float = 1.0,
        margin: float = 0.2,
    ) -> None:
        super().__init__(data, rules, weight)
        if len(data.edge_types) < 2:
            raise ValueError("'data' must have at least two relations (got one)")
        self.margin = margin

    def can_use(self, rules: RuleSet) -> np.ndarray:
        return rules.num_steps <= 2

    def check(self, scorer: Scorer, is_split: bool = False) -> None:
        if scorer.metric != "l1":
            raise ValueError(
                "'penalty' must not be kale for scorers other than TransE in the L1 "
                f"norm (got {scorer.title})"
            )
        if is_split:
            raise ValueError(
                "'penalty' must not be kale where several processes train a model"
            )

    @cached_property
    def groundings(self) -> tuple[Tensor, Tensor]:
        """The facts of bodies, and their conclusions."""
        found = ground_rules(self.data, self.rules)
        if len(found) == 0:
            warnings.warn(
                "the penalty adds nothing: no rule has a known body", stacklevel=2
            )
        return torch.from_numpy(found.premise), torch.from_numpy(found.conclusion)

    def forward(self, scorer: Scorer, num_triples: int) -> Tensor:
        premise, conclusion = self.groundings
        if len(premise) == 0:
            return torch.zeros((), device=scorer.device)
        drawn = torch.randint(len(premise), (num_triples,))
        premise, conclusion = (i[drawn].to(scorer.device) for i in self.groundings)
        return self.weight * self.loss(scorer, premise, conclusion)

    def loss(self, scorer: Scorer, premise: Tensor, conclusion: Tensor) -> Tensor:
        r"""Returns the mean loss of groundings, whose opposites are drawn.

        Args:
            scorer (Scorer): The scorer.
            premise (torch.Tensor): The facts of each body, see
                :class:`Groundings`.
            conclusion (torch.Tensor): The triple that follows from each.
        """
        other = conclusion.clone()
        other[:, 1] = _other_relations(premise, conclusion, scorer.num_relations)
        sides = SIDES if is_reciprocal(scorer) else ("tail",)
        triples = torch.cat([premise.clamp(min=0).flatten(0, 1), conclusion, other])
        encoded, number = scorer.encode(), len(conclusion)
        losses = []
        for side in sides:
            truth = self._truth(scorer, encoded, triples, side)
            facts, true, false = truth.split([2 * number, number, number])
            is_there = premise[..., 0] >= 0
            facts = facts.view(-1, 2).clamp(min=0)
            body = torch.where(is_there, facts, torch.ones_like(facts)).prod(dim=1)
            losses.append(F.relu(self.margin - body * (true - false)))
        return torch.cat(losses).mean()

    def _truth(
        self, scorer: Scorer, encoded: object, triples: Tensor, side: str
    ) -> Tensor:
        """Returns the truth values of triples, as answers to queries of a side."""
        head, rel, tail = triples.unbind(dim=1)
        ends = scorer.table(encoded, head), scorer.table(encoded, tail)
        if side == "head":
            query, answer = scorer.head_query(rel, ends[1]), ends[0]
        else:
            query, answer = scorer.tail_query(ends[0], rel), ends[1]
        score = scorer.compare(query, answer.unsqueeze(1)).squeeze(1)
        return 1 + score / (3 * scorer.hidden_channels**0.5)


def _other_relations(premise: Tensor, conclusion: Tensor, size: int) -> Tensor:
    """Draws a relation for each grounding that none of its triples has, or, if its
    triples have all relations, another one than that of its conclusion."""
    relation = conclusion[:, 1:2]
    taken = torch.cat([premise[..., 1], relation], dim=1)
    # A relation that is missing, or there twice, is behind all others.
    taken = taken.masked_fill(taken < 0, size).sort(dim=1).values
    is_again = taken[:, 1:] == taken[:, :-1]
    taken[:, 1:] = taken[:, 1:].masked_fill(is_again, size)
    free = size - (taken < size).sum(dim=1)
    only = torch.full_like(taken, size)
    only[:, :1] = relation
    taken = torch.where((free > 0)[:, None], taken, only).sort(dim=1).values
    free = torch.where(free > 0, free, size - 1)
    drawn = torch.rand(len(free), dtype=torch.double, device=free.device)
    found = (drawn * free).long()
    for column in taken.unbind(dim=1):
        found += found >= column
    return found
