"""The facts of entities, of which a step samples some."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.kernels.neighbors import keep_facts, sample_places
from kblrn_pyg.kernels.threads import no_scratch, run_slices

# The least number of entities to hand to a thread at once.
_MIN_ROWS = 1024

# Edges to entities: those from where to which of them, and their types.
Edges = tuple[Tensor, Tensor, Tensor]


class NeighborIndex:
    r"""Finds the facts of entities, in both directions.

    Args:
        facts (torch.Tensor): The heads, relations and tails of all facts.
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations; a fact that leads back to its
            head has the type of its relation plus this number.
    """

    def __init__(self, facts: Tensor, num_nodes: int, num_relations: int) -> None:
        head, self.rel, tail = facts.cpu().numpy()
        self.num_relations = num_relations
        # First all facts towards their tails, then all towards their heads.
        self.source, target = np.concatenate([head, tail]), np.concatenate([tail, head])
        self.order = np.argsort(target, kind="stable")
        counts = np.bincount(target, minlength=num_nodes)
        self.start = np.concatenate([[0], np.cumsum(counts)])

    def edges(
        self,
        entities: Tensor,
        limit: int | None = None,
        edge_dropout: float = 0.0,
        seeds: tuple[int, int] = (0, 0),
    ) -> Edges:
        r"""Returns the edges to entities: where each begins, the place of the entity
        where it ends, and its type.

        Args:
            entities (torch.Tensor): The entities.
            limit (int, optional): The maximum number of edges of an entity, which
                are sampled. (default: :obj:`None`, all)
            edge_dropout (float, optional): The fraction of facts to leave out, in
                both directions. (default: :obj:`0.0`)
            seeds (tuple, optional): The seed of samples, and that of facts to leave
                out. (default: :obj:`(0, 0)`)
        """
        edge, place = self._sample(entities.cpu().numpy(), limit, seeds[0])
        is_back, fact = np.divmod(edge, len(self.rel))
        kind = self.rel[fact] + is_back * self.num_relations
        columns = np.stack([self.source[edge], place, kind])
        if edge_dropout > 0:
            kept = np.empty(len(fact), np.bool_)
            threshold = np.uint64(edge_dropout * 2**64)
            keep_facts(fact, np.uint64(seeds[1]), threshold, kept)
            columns = columns[:, kept]
        columns = np.ascontiguousarray(columns)
        source, target, kind = torch.from_numpy(columns).to(entities.device)
        return source, target, kind

    def _sample(
        self, ids: np.ndarray, limit: int | None, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns sampled edges, and the places of the entities where they end."""
        limit = len(self.order) if limit is None else limit
        counts = np.minimum(self.start[ids + 1] - self.start[ids], limit)
        offset = np.concatenate([[0], np.cumsum(counts)])
        place = np.empty(offset[-1], np.int64)

        def work(part: slice, _: None) -> None:
            given = ids[part], limit, np.uint64(seed), offset[part], place
            sample_places(self.start, *given)

        run_slices(work, len(ids), no_scratch, min_rows=_MIN_ROWS)
        return self.order[place], np.repeat(np.arange(len(ids)), counts)


@dataclass
class SampledGraph:
    r"""The graph of one training step: at most a number of edges lead to an entity.

    It is sampled entity by entity, for those that are asked for, and always the same.

    Args:
        index (NeighborIndex): The facts of entities.
        limit (int): The maximum number of edges of an entity.
        edge_dropout (float): The fraction of facts to leave out.
        seeds (tuple): See :meth:`NeighborIndex.edges`.
    """

    index: NeighborIndex
    limit: int
    edge_dropout: float
    seeds: tuple[int, int]
    whole: Tensor | None = None  # the rows of all entities, once they were asked for

    @classmethod
    def draw(
        cls, index: NeighborIndex, limit: int, edge_dropout: float
    ) -> "SampledGraph":
        """Draws the seeds from torch's generator."""
        one, other = torch.randint(2**62, (2,)).tolist()
        return cls(index, limit, edge_dropout, (one, other))

    def edges(self, entities: Tensor) -> Edges:
        r"""Returns the edges to entities; see :meth:`NeighborIndex.edges`.

        Args:
            entities (torch.Tensor): The entities.
        """
        return self.index.edges(entities, self.limit, self.edge_dropout, self.seeds)
