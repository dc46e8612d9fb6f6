"""The evidence expert: the most confident rules that support a triple."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.data.ids import check_shape
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.kernels.evidence import PATH, USUAL, add_evidence, evidence_gradient
from kblrn_pyg.kernels.popularity import (
    add_popularity,
    popularity_gradient,
    usual_counts,
)
from kblrn_pyg.kernels.threads import no_scratch, run_all
from kblrn_pyg.nn.evidence_kinds import AddKinds, take_kind_weights, weigh_triples
from kblrn_pyg.nn.evidence_parts import RuleWords, usual_part
from kblrn_pyg.nn.expert import Expert, factor_of
from kblrn_pyg.nn.features import at_least_single
from kblrn_pyg.nn.part import Part, Ref
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.rules.evidence import EvidenceFeatures
from kblrn_pyg.rules.evidence_kinds import KindFeatures, QueryKinds
from kblrn_pyg.rules.found import FoundRule, QueryEvidence
from kblrn_pyg.rules.text import atoms

# The weights that training begins with.
_START = (0.5, 0.5, 0.6, 0.6, 0.05, 0.05)
# What the parameters of kinds are multiplied with. Many kinds speak for a triple at
# once, and steps of Adam are as long for each: together they would be too long.
_KIND_SCALE = 0.2


class EvidenceExpert(Expert):
    r"""Scores a triple by the confidences of the most confident rules that support
    it:

    .. math::
        \log f_{(r, E)}(h, r, t) = w^r_1 H + w^r_2 T + w^r_3 \max(H, P) + w^r_4
        \max(T, P) + w^r_5 \, p(t | r) + w^r_6 \, p(h | r) + \sum_g (w^r_g H_g +
        w^{r^{-1}}_g T_g)

    :math:`H = \log (1 + c / \epsilon)` is the strength of the rule with constants
    of the largest confidence :math:`c` whose body is a fact of the head, such as
    :math:`\textrm{award}(h, \textrm{Oscar}) \Rightarrow r(h, t)`, :math:`T` that of
    one about the tail, and :math:`P` that of a path between them. The frequencies
    :math:`p` decide where there is no evidence. The six weights of each relation
    are learned. If :obj:`kinds`, there are also learned weights of the most
    confident rules :math:`H_g` and :math:`T_g` of each kind :math:`g`, which are
    summed; see :class:`~kblrn_pyg.rules.evidence_kinds.KindFeatures`. The loss of a
    fact leaves it out of all counts; see
    :class:`~kblrn_pyg.rules.EvidenceFeatures`.

    Args:
        data (HeteroData): The knowledge base.
        rules (RuleSet): The rules whose bodies are paths, with PCA confidences. If
            it has rules with constants, only these are used, and counted again.
        min_support (int, optional): The minimum support of rules with constants.
            (default: :obj:`2`)
        shrinkage (float, optional): The number added to the size of a body, which
            lowers the confidence of rules with few examples. (default: :obj:`5.0`)
        floor (float, optional): The constant :math:`\epsilon`.
            (default: :obj:`0.03`)
        kinds (bool, optional): Whether to add up evidence of different kinds.
            Models and files without this setting do not. (default: :obj:`False`)
        bins (int, optional): The maximum number of bins of an attribute, a power of
            two, if rules may be about numbers, too; see
            :meth:`~kblrn_pyg.data.quantile_intervals`. (default: :obj:`0`, none)
    """

    name = "evidence"

    uses_own_threads = True
    needs_scores = False

    def __init__(
        self,
        data: HeteroData,
        rules: RuleSet,
        min_support: int = 2,
        shrinkage: float = 5.0,
        floor: float = 0.03,
        kinds: bool = False,
        bins: int = 0,
    ) -> None:
        super().__init__()
        self.min_support, self.bins = min_support, bins
        given = data, rules, min_support, shrinkage, floor
        self.features = EvidenceFeatures(*given, bins=bins)
        self._words = RuleWords(as_kb(data), self.features.intervals)
        self.kinds = KindFeatures(self.features) if kinds else None
        self.weight = Parameter(torch.empty(len(rules.relations), len(_START)))
        of_kinds = None if self.kinds is None else torch.empty(len(self.kinds))
        self.kind_weight = None if of_kinds is None else Parameter(of_kinds)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Resets the weights to the same values for all relations, and those of
        kinds to zero."""
        with torch.no_grad():
            self.weight.copy_(torch.tensor(_START).expand_as(self.weight))
            if self.kind_weight is not None:
                self.kind_weight.zero_()

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        h, r, t = (_ids(index) for index in (head_index, rel_type, tail_index))
        scores = self._weigh(self.features.pairs(h, r, t), rel_type)
        if self.kinds is not None:
            found = self.kinds.pairs(h, r, t)
            scores = scores + weigh_triples(found, self.weight_of_kinds())
        return scores

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        self._remember()
        asked = queries.side, _ids(queries.entity), _ids(queries.rel_type)
        found = self.features.candidates(*asked, _ids(candidates))
        own, path = found[..., :PATH], found[..., PATH:]
        usual = self.features.usual(*asked, _ids(candidates))
        numbers = np.concatenate([own, np.maximum(own, path), usual], axis=-1)
        value = torch.from_numpy(numbers).to(self.weight)
        scores = torch.einsum("bck,bk->bc", value, self.weight[queries.rel_type])
        if self.kinds is not None:
            kinds = self.kinds.asked(asked, candidates=_ids(candidates))
            none = torch.zeros_like(at_least_single(scores))
            scores = scores + self._add_kinds(none, kinds).to(scores.dtype)
        return scores

    def score_answers(self, queries: Queries, answer: Tensor) -> Tensor:
        """Scores an answer to each query; see :class:`Expert`."""
        # Looking for the rules of single triples is far cheaper than for all that
        # the rules of a query speak for.
        return self(*queries.triples(answer))

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        self._remember(walks=entities is None)
        scores = at_least_single(scores)
        columns = None if entities is None else _ids(entities)
        given = self.features, queries, columns
        if scores.device.type == "cpu":
            weight = self.weight.to(scores.dtype)
            scores = _AddEvidence.apply(scores, weight, *given)
        else:
            there = torch.zeros(scores.shape, dtype=scores.dtype)
            weight = self.weight.cpu().to(scores.dtype)
            found = _AddEvidence.apply(there, weight, *given)
            scores = scores + found.to(scores.device)
        if self.kinds is None:
            return scores
        asked = queries.side, _ids(queries.entity), _ids(queries.rel_type)
        return self._add_kinds(scores, self.kinds.asked(asked, columns))

    def _add_kinds(self, scores: Tensor, asked: QueryKinds) -> Tensor:
        weight = self.weight_of_kinds().to(scores.dtype)
        if scores.device.type == "cpu":
            return AddKinds.apply(scores, weight, asked)
        there = torch.zeros(scores.shape, dtype=scores.dtype)
        return scores + AddKinds.apply(there, weight.cpu(), asked).to(scores.device)

    def weight_of_kinds(self) -> Tensor:
        """Returns the weight of each pair of a predicted code and a kind."""
        assert self.kind_weight is not None
        return _KIND_SCALE * self.kind_weight

    def own_evidence(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns what facts gain by being examples of their own rules."""
        self._remember(walks=False)
        h, r, t = (_ids(index) for index in (head_index, rel_type, tail_index))
        own = self._weigh(self.features.own(h, r, t), rel_type)
        if self.kinds is not None:
            found = self.kinds.pairs(h, r, t, what="own")
            own = own + weigh_triples(found, self.weight_of_kinds())
        return own

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns the most confident rules; see :class:`Expert`."""
        h, r, t = (np.array([i]) for i in (head, rel, tail))
        values = self.features.pairs(h, r, t)[0].tolist()
        weights = self.weight[rel].tolist()
        of_kinds = self._kind_contributions(head, rel, tail)
        parts, of_path = [], 0.0
        for i, (end, entity) in enumerate((("head", head), ("tail", tail))):
            value, either = values[i], values[i + 2]
            contribution = weights[i] * value
            if either > value:  # the path is stronger
                of_path += weights[i + 2] * either
            else:
                contribution += weights[i + 2] * either
            found = self.features.best_rule(end, head, rel, tail)
            if found is not None:
                contribution += of_kinds.pop((end, found), 0.0)
                parts.append(self._words.rule(found, end[0], entity, contribution))
        if values[2] > values[0] or values[3] > values[1]:
            parts.append(self._path_part(head, rel, tail, of_path))
        parts += self._words.kinds(of_kinds, head, tail)
        steps = (2 * rel, tail), (2 * rel + 1, head)
        counts = [self._usual_counts(*one) for one in steps]
        usual = zip(("tail", "head"), values[USUAL:], weights[USUAL:], counts)
        return parts + [usual_part(rel, *one) for one in usual]

    def _usual_counts(self, code: int, entity: int) -> tuple[int, int]:
        """Returns how many entities are joined with one, and how many there are."""
        joined, every = usual_counts(self.features.evidence.features, code, entity)
        return int(joined), int(every)  # NumPy's integers without a compiled kernel

    def _kind_contributions(
        self, head: int, rel: int, tail: int
    ) -> dict[tuple[str, FoundRule], float]:
        """Returns what the most confident rule of each kind adds, by its end and
        the rule."""
        if self.kinds is None:
            return {}
        weight = self.weight_of_kinds().detach()
        return {
            (end, rule): float(weight[pair]) * strength
            for end, pair, strength, rule in self.kinds.rules(head, rel, tail)
        }

    @torch.no_grad()
    def scale(self, factor: float | Tensor) -> None:
        """Multiplies the weights; see :class:`Expert`."""
        relation = torch.arange(len(self.weight), device=self.weight.device)
        self.weight.mul_(factor_of(factor, relation[:, None]))
        if self.kinds is not None and self.kind_weight is not None:
            of_kinds = torch.from_numpy(self.kinds.relations()).to(relation)
            self.kind_weight.mul_(factor_of(factor, of_kinds))

    def speaks_of(self, rel: int) -> bool:
        """Returns whether a relation has facts."""
        ptr = self.features.evidence.features.code_ptr
        return bool(ptr[2 * rel] < ptr[2 * rel + 1])

    def with_facts(self, update: KBUpdate) -> "EvidenceExpert":
        """Counts rules with constants again, and keeps the weights of relations and
        of kinds; see :class:`Expert`."""
        rules, choices = self.features.paths.rules, self.features.evidence.choices
        if rules.constants is not None:
            entity = update.kb["entity"]
            names = list(entity.get("identifier", entity.name))
            rules = rules.with_constants(replace(rules.constants, entities=names))
        settings = self.min_support, choices.shrinkage, choices.floor
        has_kinds = self.kinds is not None
        expert = type(self)(update.kb, rules, *settings, has_kinds, self.bins)
        expert.to(self.weight)
        with torch.no_grad():
            expert.weight.copy_(self.weight)
        if self.kinds is not None and expert.kinds is not None:
            assert self.kind_weight is not None
            assert expert.kind_weight is not None
            given = self.kind_weight, self.kinds
            take_kind_weights(expert.kind_weight, expert.kinds, *given)
        return expert.train(self.training)

    def fingerprint(self) -> bytes:
        """Returns a digest of the rules that the weights belong to."""
        evidence = self.features.evidence
        rules = evidence.rules
        columns = [rules.target, rules.support, rules.body, evidence.path_strength]
        if self.kinds is not None:
            columns += self.kinds.kinds
        if (intervals := self.features.intervals) is not None:
            columns += [intervals.ptr, intervals.low, intervals.high]
        content = [np.ascontiguousarray(column).tobytes() for column in columns]
        choices = str(tuple(evidence.choices)).encode()
        return b" ".join([super().fingerprint(), choices, *content])

    def extra_repr(self) -> str:
        """Returns the numbers of rules."""
        paths = len(self.features.evidence.path_support)
        text = f"{len(self.features):,} rules with constants, {paths:,} with paths"
        if self.kinds is None:
            return text
        return f"{text}, {len(self.kinds):,} weights of kinds"

    def _weigh(self, value: np.ndarray, rel_type: Tensor) -> Tensor:
        numbers = torch.from_numpy(value).to(self.weight)
        return (numbers * self.weight[rel_type]).sum(dim=1)

    def _remember(self, walks: bool = True) -> None:
        """Caches what every epoch needs again."""
        if self.training and torch.is_grad_enabled():
            self.features.remember(walks)
            if self.kinds is not None:
                self.kinds.remember()

    def _path_part(self, head: int, rel: int, tail: int, contribution: float) -> Part:
        rule = self.features.best_path(head, rel, tail)
        assert rule is not None
        evidence, paths = self.features.evidence, self.features.paths
        words: list[str | Ref] = []
        steps = atoms(paths.rules, rule)
        for relation, start, end in steps:
            words += [" ∧ "] if words else []
            words += [Ref("relation", relation), f"({start}, {end})"]
        middles = paths.middles(rule, head, tail, limit=5).tolist() or [-1]
        stops = ({"h": head, "t": tail, "x": middle} for middle in middles)
        facts = tuple(tuple((s[a], r, s[b]) for r, a, b in steps) for s in stops)
        support, body = (
            int(column[rule]) for column in (evidence.path_support, evidence.path_body)
        )
        details = {"kind": "path", "rule": rule, "support": support, "body": body}
        note = (f"true for {support:,} of {body:,} pairs",)
        return Part(contribution, tuple(words), note, facts, details=details)


class _AddEvidence(torch.autograd.Function):
    """Finds the evidence once, and keeps it for the backward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        features: EvidenceFeatures,
        queries: Queries,
        columns: np.ndarray | None,
    ) -> Tensor:
        ctx.mark_dirty(scores)
        entity, rel = _ids(queries.entity), _ids(queries.rel_type)
        width = features.num_entities if columns is None else len(columns)
        check_shape("scores", scores, (len(rel), width))
        # Queries of one relation side by side: what is usual is looked up once, and
        # so are equal ones.
        order = np.lexsort((entity, rel))
        entity, rel = entity[order], rel[order]
        side, some = _number(queries.side), _columns(columns)
        rows, weights = scores.detach().numpy(), weight.detach().numpy()

        def add(part: slice, evidence: QueryEvidence) -> None:
            row = order[part]
            asked = entity[part], rel[part], row
            add_evidence(tuple(evidence), rel[part], row, weights, rows)
            usual = weights[:, USUAL:]
            add_popularity(features.evidence, side, asked, usual, some, rows)

        found = features.queries(queries.side, entity, rel, columns, then=add)
        ctx.found, ctx.features, ctx.some = found, features, some
        ctx.asked, ctx.shape = (side, order, entity, rel), weight.shape
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        side, order, entity, rel = ctx.asked
        rows = grad.contiguous().numpy()
        totals = np.zeros((len(ctx.found), *ctx.shape))

        def add(i: int, _: None) -> None:
            part, evidence = ctx.found[i]
            row = order[part]
            evidence_gradient(tuple(evidence), rel[part], row, rows, totals[i])
            asked = entity[part], rel[part], row
            given = ctx.features.evidence, side, asked, ctx.some, rows
            popularity_gradient(*given, totals[i][:, USUAL:])

        for _ in run_all(add, range(len(ctx.found)), no_scratch):
            pass
        # Adding up in order keeps sums reproducible, whichever thread is first.
        by_weight = torch.from_numpy(totals.sum(axis=0)).to(grad.dtype)
        return grad, by_weight, None, None, None


def _number(side: str) -> int:
    return 0 if side == "tail" else 1


def _columns(columns: np.ndarray | None) -> np.ndarray:
    return np.empty(0, np.int64) if columns is None else columns


def _ids(index: Tensor) -> np.ndarray:
    return index.detach().cpu().contiguous().numpy()
