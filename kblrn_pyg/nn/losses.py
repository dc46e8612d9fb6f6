"""The losses of a model: over all entities, over sampled ones, over given ones."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.data import HeteroData

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.candidates import softmax_gradients
from kblrn_pyg.kernels.threads import no_scratch, run_slices
from kblrn_pyg.loader import batch_triples
from kblrn_pyg.nn.features import at_least_single

if TYPE_CHECKING:
    from kblrn_pyg.nn.kblrn import KBLRN


# The least number of queries to hand to a thread at once.
_MIN_ROWS = 128


class ExactCrossEntropy(torch.autograd.Function):
    r"""The mean of :math:`\log \sum_c \exp s_c - s_t` over the answers of queries.

    A query with several answers has one row of scores; all of its answers share
    its partition function. Only one array of the size of the scores is made on
    the way back.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, row: Tensor, answer: Tensor) -> Tensor:
        r"""Returns the loss.

        Args:
            scores (torch.Tensor): A row of scores for each query.
            row (torch.Tensor): The row of each answer.
            answer (torch.Tensor): The entity of each answer.
        """
        top = scores.amax(dim=1)
        potential = (scores - top[:, None]).exp_()
        partition = potential.sum(dim=1)
        ctx.save_for_backward(potential, partition, row, answer)
        log_partition = partition.log() + top
        return (log_partition[row] - scores[row, answer]).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        potential, partition, row, answer = ctx.saved_tensors
        scale = grad / row.numel()
        num_answers = torch.bincount(row, minlength=potential.size(0))
        factor = num_answers * scale / partition
        scores_grad = potential * factor.to(potential.dtype)[:, None]
        ones = torch.full_like(row, 1, dtype=potential.dtype) * -scale
        scores_grad.index_put_((row, answer), ones, accumulate=True)
        return scores_grad, None, None


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


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Keeps torch to one thread for a while.

    Its threads go on spinning after every operation, and would take a core from
    those of the kernels.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Facts(NamedTuple):
    r"""The triples of a batch.

    Args:
        head_index (torch.Tensor): The head indices.
        rel_type (torch.Tensor): The relation types.
        tail_index (torch.Tensor): The tail indices.
        own (torch.Tensor): What each adds to its own score, which does not count.
    """

    head_index: Tensor
    rel_type: Tensor
    tail_index: Tensor
    own: Tensor

    @classmethod
    def of(
        cls, model: "KBLRN", head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> "Facts":
        """Looks for what triples add to their own scores."""
        own = model.own_evidence(head_index, rel_type, tail_index)
        return cls(head_index, rel_type, tail_index, own)

    def asked(self, side: str) -> tuple[Queries, Tensor]:
        """Returns the queries of one side, and the answers."""
        queries = Queries.of_triples(*self[:3], side)
        return queries, self.head_index if side == "head" else self.tail_index


def exact_loss(model: "KBLRN", facts: Facts, side: str) -> Tensor:
    """Cross-entropy over all entities; equal queries are scored once."""
    queries, answer = facts.asked(side)
    distinct, row = queries.distinct(model.num_nodes)
    scores = model.score_all(distinct)
    if bool(facts.own.any()):
        # Once, even if a fact stands in the batch several times.
        places, first = _distinct(row * model.num_nodes + answer)
        scores.view(-1).index_add_(0, places, -facts.own[first].to(scores.dtype))
    return ExactCrossEntropy.apply(scores, row, answer)


def _distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the distinct values, and where each of them is."""
    distinct, place = torch.unique(values, return_inverse=True)
    where = torch.empty_like(distinct)
    return distinct, where.scatter_(0, place, torch.arange(len(values)).to(where))


def sampled_loss(model: "KBLRN", facts: Facts, side: str) -> Tensor:
    """Cross-entropy over the true entity and sampled ones."""
    queries, _ = facts.asked(side)
    # Equal queries side by side: their paths are walked once.
    order = torch.argsort(queries.rel_type * model.num_nodes + queries.entity)
    facts = Facts(*(column[order] for column in facts))
    _, answer = facts.asked(side)
    is_shared = model.negatives == "shared"  # which matrix products compare
    with nullcontext() if is_shared else _one_torch_thread():
        candidates = torch.cat([answer[:, None], _draw(model, answer)], dim=1)
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
    if scores.device.type == "cpu":
        return SampledCrossEntropy.apply(at_least_single(scores))
    return F.cross_entropy(scores, torch.zeros_like(answer))


def _draw(model: "KBLRN", answer: Tensor) -> Tensor:
    assert model.num_negatives is not None
    size, device = answer.numel(), answer.device
    if model.negatives == "shared":
        shared = torch.randint(model.num_nodes, (model.num_negatives,), device=device)
        return shared.expand(size, -1)
    return torch.randint(model.num_nodes, (size, model.num_negatives), device=device)


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
