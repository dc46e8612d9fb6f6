"""The losses of a model: over all entities, over sampled ones, over given ones."""

from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.loader import batch_triples
from kblrn_pyg.nn.comparing import NoComparison, SharedComparison, VisitComparison
from kblrn_pyg.nn.empty import no_differences, no_paths
from kblrn_pyg.nn.losses import Compare, ExactCrossEntropy, SampledCrossEntropy

if TYPE_CHECKING:
    from kblrn_pyg.nn.kblrn import KBLRN


def exact_loss(
    model: "KBLRN", head: Tensor, rel_type: Tensor, tail: Tensor, from_tail: bool
) -> Tensor:
    """Cross-entropy over all entities; equal queries are scored once."""
    if model.relational is not None and head.device.type == "cpu":
        model.relational.features.remember()
    entity, answer = (tail, head) if from_tail else (head, tail)
    key, row = torch.unique(rel_type * model.num_nodes + entity, return_inverse=True)
    rel = torch.div(key, model.num_nodes, rounding_mode="floor")
    known = key - rel * model.num_nodes
    if from_tail:
        scores = model.score_heads(rel, known)
    else:
        scores = model.score_tails(known, rel)
    if model.relational is not None:
        own = model.relational.own_evidence(head, rel_type, tail)
        if bool(own.any()):
            # Once, even if a fact stands in the batch several times.
            places, first = _distinct(row * model.num_nodes + answer)
            scores.view(-1).index_add_(0, places, -own[first].to(scores.dtype))
    return ExactCrossEntropy.apply(scores, row, answer)


def _distinct(values: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the distinct values, and where each of them is."""
    distinct, place = torch.unique(values, return_inverse=True)
    where = torch.empty_like(distinct)
    return distinct, where.scatter_(0, place, torch.arange(len(values)).to(where))


def sampled_loss(
    model: "KBLRN", head: Tensor, rel_type: Tensor, tail: Tensor, from_tail: bool
) -> Tensor:
    """Cross-entropy over the true entity and sampled ones."""
    entity, answer = (tail, head) if from_tail else (head, tail)
    # Equal queries side by side: their paths are walked once.
    order = torch.argsort(rel_type * model.num_nodes + entity)
    head, rel_type, tail = head[order], rel_type[order], tail[order]
    entity, answer = entity[order], answer[order]
    candidates = torch.cat([answer[:, None], _draw(model, entity)], dim=1)
    queries: list[Tensor] = []
    if model.latent is not None:
        queries = (
            model.latent.head_queries(rel_type, tail)
            if from_tail
            else model.latent.tail_queries(head, rel_type)
        )
    some = next(model.parameters())
    fused = (
        some.device.type == "cpu"
        and some.dtype in (torch.float, torch.double)  # what kernels know
        and (model.latent is None or model.latent.is_dot or model.latent.is_l1)
    )
    score = fused_loss if fused else candidate_loss
    return score(model, queries, candidates, head, rel_type, tail, from_tail)


def _draw(model: "KBLRN", entity: Tensor) -> Tensor:
    assert model.num_negatives is not None
    size, device = entity.numel(), entity.device
    if model.negatives == "shared":
        shared = torch.randint(model.num_nodes, (model.num_negatives,), device=device)
        return shared.expand(size, -1)
    return torch.randint(model.num_nodes, (size, model.num_negatives), device=device)


def fused_loss(
    model: "KBLRN",
    queries: list[Tensor],
    candidates: Tensor,
    head: Tensor,
    rel_type: Tensor,
    tail: Tensor,
    from_tail: bool,
) -> Tensor:
    """Scores candidates and collects all gradients in one kernel."""
    some = next(model.parameters())
    query, table = some.new_empty(len(head), 0), some.new_empty(model.num_nodes, 0)
    if model.latent is not None:
        query = torch.cat(queries, dim=-1)
        tables = model.latent.tables()
        table = tables[0] if len(tables) == 1 else torch.cat(tables, dim=-1)
    paths = no_paths(model.num_nodes, model.num_relations)
    path_weight = some.new_empty(0)
    if model.relational is not None:
        paths, path_weight = model.relational.features, model.relational.weight
        paths.remember()
    own = paths.own_evidence(head.numpy(), rel_type.numpy(), tail.numpy())
    differences = no_differences(model.num_nodes, model.num_relations)
    numbers = [some.new_empty(0)] * 3
    if model.numerical is not None:
        differences = model.numerical.kernel_features
        width = model.numerical.log_width.exp()
        numbers = [model.numerical.weight, model.numerical.centre, width]
    return SampledCrossEntropy.apply(
        query,
        table,
        path_weight,
        *numbers,
        candidates,
        tail if from_tail else head,
        rel_type,
        from_tail,
        _how_to_compare(model),
        paths,
        own,
        differences,
    )


def _how_to_compare(model: "KBLRN") -> Compare:
    if model.latent is None:
        return NoComparison
    if model.latent.is_dot and model.negatives == "shared":
        return SharedComparison
    return partial(VisitComparison, by_distance=model.latent.is_l1)


def candidate_loss(
    model: "KBLRN",
    queries: list[Tensor],
    candidates: Tensor,
    head: Tensor,
    rel_type: Tensor,
    tail: Tensor,
    from_tail: bool,
) -> Tensor:
    """The same without the fused kernel, for any device and scorer."""
    entity = tail if from_tail else head
    ends = (candidates, entity[:, None]) if from_tail else (entity[:, None], candidates)
    scores = next(model.parameters()).new_zeros(candidates.shape)
    if model.latent is not None:
        scores = scores + model.latent.score_candidates(queries, candidates)
    if model.numerical is not None:
        scores = scores + model.numerical.score_pairs(
            ends[0], rel_type[:, None], ends[1]
        )
    if model.relational is not None:
        triples = (
            index.expand(candidates.shape).flatten()
            for index in (ends[0], rel_type[:, None], ends[1])
        )
        scores = scores + model.relational(*triples).view(candidates.shape)
        own = model.relational.own_evidence(head, rel_type, tail)
        # The true one may have been drawn once more.
        scores = scores - own[:, None] * (candidates == candidates[:, :1])
    return F.cross_entropy(scores, torch.zeros_like(entity))


def batch_loss(model: "KBLRN", batch: HeteroData) -> Tensor:
    """The loss of a batch of PyG's link loaders, over what it holds."""
    triples = batch_triples(batch)
    head, rel_type, tail = triples[:3]
    own = model.own_evidence(head, rel_type, tail)
    scores = model(head, rel_type, tail) - own
    if triples.negative_index is not None:
        shape = triples.negative_index.shape
        others = model(
            head[:, None].expand(shape).flatten(),
            rel_type[:, None].expand(shape).flatten(),
            triples.negative_index.flatten(),
        )
        others = others.view(shape)
        others = others - own[:, None] * (triples.negative_index == tail[:, None])
        every = torch.cat([scores[:, None], others], dim=1)
        return F.cross_entropy(every, torch.zeros_like(head))
    label = triples.label
    label = torch.ones_like(scores) if label is None else label.to(scores.dtype)
    return F.binary_cross_entropy_with_logits(scores, label)
