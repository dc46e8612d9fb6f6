"""The losses of a model: over all entities, over sampled ones, over given ones."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.data import HeteroData

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.candidates import softmax_gradients
from kblrn_pyg.kernels.threads import no_scratch, run_slices
from kblrn_pyg.loader import batch_triples
from kblrn_pyg.nn.features import at_least_single
from kblrn_pyg.nn.one_thread import one_torch_thread
from kblrn_pyg.nn.softmax import Factors, partition

if TYPE_CHECKING:
    from kblrn_pyg.nn.kblrn import KBLRN


Triples: TypeAlias = tuple[Tensor, Tensor, Tensor]

# The least number of queries to hand to a thread at once.
_MIN_ROWS = 128

# How many triples share the entities that are drawn for them.
SHARED_BY = 1024


class SampledCrossEntropy(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_{c \in E} \exp s_c - s_t` over queries.

    Scores become their own gradients, by threads that do not spin as torch's do.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor) -> Tensor:
        r"""Returns the loss.

        Args:
            scores (torch.Tensor): The scores of the candidates of each query,
                the true one first.
        """
        grad = scores.detach().clone()
        rows = grad.numpy()

        def work(part: slice, _: None) -> float:
            return softmax_gradients(rows[part], 1.0 / len(rows))

        loss = sum(run_slices(work, len(rows), no_scratch, min_rows=_MIN_ROWS))
        ctx.save_for_backward(grad)
        return scores.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (by_scores,) = ctx.saved_tensors
        return torch.from_numpy(by_scores.numpy() * grad.numpy())


class Facts(NamedTuple):
    r"""The triples of a batch.

    Args:
        head_index (torch.Tensor): The head indices.
        rel_type (torch.Tensor): The relation types.
        tail_index (torch.Tensor): The tail indices.
        own (torch.Tensor): What each adds to its own score, which losses leave out.
    """

    head_index: Tensor
    rel_type: Tensor
    tail_index: Tensor
    own: Tensor

    @classmethod
    def of(
        cls, model: "KBLRN", head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> "Facts":
        """Computes what triples add to their own scores."""
        own = model.own_evidence(head_index, rel_type, tail_index)
        return cls(head_index, rel_type, tail_index, own)

    def asked(self, side: str) -> tuple[Queries, Tensor]:
        """Returns the queries of one side, and the answers."""
        queries = Queries.of_triples(*self[:3], side)
        return queries, self.head_index if side == "head" else self.tail_index


def loss_of(model: "KBLRN") -> Callable[["KBLRN", Triples, Sequence[str]], Tensor]:
    """Returns the loss that a model is trained with."""
    if model.is_exact:
        return exact_loss
    return shared_loss if model.negatives == "shared" else sampled_loss


def exact_loss(model: "KBLRN", triples: Triples, sides: Sequence[str]) -> Tensor:
    """Cross-entropy over all entities; equal queries are scored once."""
    with model.encoded(None):
        facts = Facts.of(model, *triples)
        return _mean([_exact(model, facts, side) for side in sides])


def _exact(model: "KBLRN", facts: Facts, side: str) -> Tensor:
    queries, answer = facts.asked(side)
    distinct, row = queries.distinct(model.num_nodes)
    if model.shard is None:
        picks = row, answer
        log_partition, picked = _partition(model, distinct, None, picks, facts.own)
        return log_partition[row] - picked
    mine = model.shard.is_mine(answer).nonzero().flatten()
    picks = row[mine], model.shard.local(answer[mine])
    entities, own = model.own_entities(), facts.own[mine]
    log_partition, picked = _partition(model, distinct, entities, picks, own)
    true = picked.new_zeros(len(answer)).index_add(0, mine, picked)
    log_partition, true = model.shard.log_sum(log_partition, true)
    return log_partition[row] - true


def shared_loss(model: "KBLRN", triples: Triples, sides: Sequence[str]) -> Tensor:
    """Cross-entropy over the true entity and sampled ones that queries share."""
    assert model.num_negatives is not None
    parts = list(zip(*(column.split(SHARED_BY) for column in triples)))
    entities = [column for part in parts for column in (part[0], part[2])]
    drawn = [
        draw_distinct(model.num_nodes, model.num_negatives, triples[0].device)
        for _ in range(len(parts) * len(sides))
    ]
    with model.encoded(entities + drawn):
        losses = []
        for part in parts:
            facts = Facts.of(model, *part)
            losses += [_shared(model, facts, side, drawn.pop()) for side in sides]
        return _mean(losses)


def _shared(model: "KBLRN", facts: Facts, side: str, drawn: Tensor) -> Tensor:
    queries, answer = facts.asked(side)
    # Answers may have been drawn, too: then they are taken away again.
    shard = model.shard
    drawn = drawn if shard is None else drawn[shard.is_mine(drawn)]
    column = torch.searchsorted(drawn, answer)
    drawn_and_end = torch.cat([drawn, drawn.new_full((1,), -1)])
    row = (drawn_and_end[column] == answer).nonzero().flatten()
    negative, again = _partition(model, queries, drawn, (row, column[row]))
    true = model.score_answers(queries, answer)
    true = true - facts.own.to(true.dtype)
    again = again.new_zeros(len(answer)).index_add(0, row, again)
    is_drawn = torch.zeros_like(answer, dtype=torch.bool).index_fill(0, row, True)
    if shard is not None:
        true = true * shard.is_mine(answer)
        several = torch.cat([true, again, is_drawn.to(true.dtype)])
        negative, several = shard.log_sum(negative, several)
        true, again, is_drawn = several.split(len(answer))
        is_drawn = is_drawn > 0
    top = torch.maximum(negative, true).detach()
    others = (negative - top).exp()
    # Not above zero is possible only by rounding.
    again = torch.where(is_drawn, again - top, again.new_tensor(-torch.inf)).exp()
    others = (others - again).clamp(min=0)
    return (others + (true - top).exp()).log() + top - true


def _mean(losses: Sequence[Tensor]) -> Tensor:
    return losses[0].mean() if len(losses) == 1 else torch.cat(list(losses)).mean()


def draw_distinct(num_nodes: int, number: int, device: torch.device) -> Tensor:
    r"""Draws some of all entities, without duplicates, in their order.

    Args:
        num_nodes (int): The number of entities.
        number (int): How many to draw.
        device (torch.device): Where to.
    """
    if number >= num_nodes:
        return torch.arange(num_nodes, device=device)
    if 4 * number > num_nodes:
        drawn = torch.randperm(num_nodes, device=device)[:number]
        return drawn.sort().values
    # Nothing of the size of all entities: some to spare, and then less.
    distinct = torch.empty(0, dtype=torch.long, device=device)
    while len(distinct) < number:
        more = torch.randint(num_nodes, (2 * number,), device=device)
        distinct = torch.unique(torch.cat([distinct, more]))
    chosen = torch.randperm(len(distinct), device=device)[:number]
    return distinct[chosen.sort().values]


def _partition(
    model: "KBLRN",
    queries: Queries,
    entities: Tensor | None,
    picks: tuple[Tensor, Tensor],
    own: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns log-partition functions over entities, and the scores at some
    positions. Own evidence is subtracted from these scores, wherever they occur.
    """
    factors: Factors | None = None
    others = []
    for expert in model.experts.values():
        found = None if factors is not None else expert.factors(queries, entities)  # type: ignore[operator]
        if found is None:
            others.append(expert)
        else:
            factors = found
    base = None
    if others:
        base = others[0].score_all(queries, model.num_nodes, entities)  # type: ignore[operator]
    for expert in others[1:]:
        base = expert.add_to(base, queries, entities)  # type: ignore[operator]
    if base is not None and own is not None and bool(own.any()):
        # Once, even if a fact stands in the batch several times.
        places, first = _distinct(picks[0] * base.size(1) + picks[1])
        base.view(-1).index_add_(0, places, -own[first].to(base.dtype))
    overwrite = not any(expert.needs_scores for expert in others)
    return partition(factors, base, picks, overwrite)


def _distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the distinct values, and where each of them is."""
    distinct, place = torch.unique(values, return_inverse=True)
    where = torch.empty_like(distinct)
    return distinct, where.scatter_(0, place, torch.arange(len(values)).to(where))


def sampled_loss(model: "KBLRN", triples: Triples, sides: Sequence[str]) -> Tensor:
    """Cross-entropy over the true entity and sampled ones of each triple."""
    with model.encoded():
        facts = Facts.of(model, *triples)
        return torch.stack([_sampled(model, facts, side) for side in sides]).mean()


def _sampled(model: "KBLRN", facts: Facts, side: str) -> Tensor:
    queries, _ = facts.asked(side)
    # Equal queries side by side: their paths are walked once.
    order = torch.argsort(queries.rel_type * model.num_nodes + queries.entity)
    facts = Facts(*(column[order] for column in facts))
    _, answer = facts.asked(side)
    assert model.num_negatives is not None
    shape = answer.numel(), model.num_negatives
    with one_torch_thread():
        drawn = torch.randint(model.num_nodes, shape, device=answer.device)
        candidates = torch.cat([answer[:, None], drawn], dim=1)
        return candidate_loss(model, facts, side, candidates)


def candidate_loss(
    model: "KBLRN", facts: Facts, side: str, candidates: Tensor
) -> Tensor:
    """Cross-entropy over given candidates, of which the first is the true one."""
    queries, answer = facts.asked(side)
    scores = model.score_candidates(queries, candidates)
    row = facts.own.nonzero().flatten()
    if len(row):
        # The true one may have been drawn once more.
        is_true = candidates[row] == answer[row, None]
        own = (facts.own[row, None] * is_true).to(scores.dtype)
        scores = scores.index_add(0, row, -own)
    if uses_kernels(scores):
        return SampledCrossEntropy.apply(at_least_single(scores))
    return F.cross_entropy(scores, torch.zeros_like(answer))


def batch_loss(model: "KBLRN", batch: HeteroData) -> Tensor:
    """The loss of a batch of PyG's link loaders, over what it holds."""
    triples = batch_triples(batch)
    label, negative = triples.label, triples.negative_index
    if negative is None and (label is None or bool((label > 0).all())):
        # True triples alone teach nothing: others are sampled.
        return model.loss(*triples[:3])
    facts = Facts.of(model, *triples[:3])
    if negative is not None:
        candidates = torch.cat([facts.tail_index[:, None], negative], dim=1)
        return candidate_loss(model, facts, "tail", candidates)
    assert label is not None
    scores = model(*facts[:3]) - facts.own
    return F.binary_cross_entropy_with_logits(scores, label.to(scores.dtype))
