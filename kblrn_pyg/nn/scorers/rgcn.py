"""R-GCN: convolutions over neighbours, in front of a scorer."""

import logging
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn.neighbors import Edges, NeighborIndex, SampledGraph
from kblrn_pyg.nn.relational_conv import RelationalConv
from kblrn_pyg.nn.scorers.delegating import DelegatingScorer
from kblrn_pyg.nn.scorers.scorer import Scorer

logger = logging.getLogger(__name__)

# What the paper drops of what entities send to themselves.
_ROOT_DROPOUT = 0.2

# From this number of facts on, training samples neighbours: so many of an entity.
MANY_FACTS, SAMPLED_NEIGHBORS = 500_000, 20

# How many entities are convolved at once where memory may be scarce.
_ENTITIES_AT_ONCE = 1 << 16


class RGCNScorer(DelegatingScorer):
    r"""Puts layers of a relational graph convolution in front of a scorer, from the
    `"Modeling Relational Data with Graph Convolutional Networks"
    <https://arxiv.org/abs/1703.06103>`_ paper; see :class:`RelationalConv`.

    As in the paper's link prediction, sums are divided by the number of all
    neighbours, after dropping facts, and training drops a fraction of 0.2 of the
    entries of an entity's message to itself.

    By default, a training step convolves over all facts, in both directions, if there
    are fewer than 500,000. Otherwise, it samples up to 20 neighbours of each entity
    that it looks up, as :class:`~torch_geometric.loader.NeighborLoader` does, and of
    each of their neighbours if there are more layers: the cost of a step then depends
    on the number of entities in it, not on the number of facts, and gradients can be
    row-sparse. Scores of a model in evaluation mode are always those of all facts.

    Combined with a scorer without convolutions, as in
    :obj:`scorer=["distmult", "rgcn:distmult"]`, it is R-GCN+. The paper trains the
    two separately and adds 0.4 of one score to 0.6 of the other; here, they are
    trained together, which needs no such weights.

    Args:
        data (HeteroData): The knowledge base.
        scorer (Scorer): The scorer whose rows are convolved, with dense gradients
            unless neighbours are sampled.
        num_layers (int, optional): The number of layers, with a ReLU between two of
            them. (default: :obj:`1`)
        num_bases (int, optional): The number of matrices that the relations'
            matrices are combined from. (default: :obj:`None`, 2 unless there are
            blocks)
        num_blocks (int, optional): The number of blocks of the relations' matrices,
            instead of bases. (default: :obj:`None`, no blocks)
        edge_dropout (float, optional): The fraction of facts that is dropped at
            each training step. (default: :obj:`0.4`)
        num_neighbors (int, optional): The maximum number of neighbours of an entity
            that a training step samples, before facts are dropped; -1 for all.
            (default: :obj:`None`, all of fewer than 500,000 facts, otherwise 20)
    """

    _facts: Tensor

    def __init__(
        self,
        data: HeteroData,
        scorer: Scorer,
        num_layers: int = 1,
        num_bases: int | None = None,
        num_blocks: int | None = None,
        edge_dropout: float = 0.4,
        num_neighbors: int | None = None,
    ) -> None:
        if not scorer.has_vectors:
            raise ValueError("'scorer' must compare vectors to have an encoder")
        if num_layers < 1:
            raise ValueError(f"'num_layers' must be positive (got {num_layers})")
        if not 0 <= edge_dropout < 1:
            raise ValueError(
                "'edge_dropout' must be at least 0 and less than 1 (got "
                f"{edge_dropout})"
            )
        if num_neighbors is not None and num_neighbors < 1 and num_neighbors != -1:
            raise ValueError(
                f"'num_neighbors' must be positive, or -1 for all (got {num_neighbors})"
            )
        super().__init__(scorer)
        num_relations = len(data.edge_types)
        size = scorer.table(scorer.encode(), torch.arange(1)).size(1)
        if num_blocks is not None and (num_blocks < 1 or size % num_blocks):
            raise ValueError(
                f"'num_blocks' must divide the size of rows, {size} (got {num_blocks})"
            )
        bases = 2 if num_bases is None and num_blocks is None else num_bases
        self.edge_dropout = edge_dropout
        self.convs = ModuleList(
            RelationalConv(
                *(size, size, 2 * num_relations),
                num_bases=bases,
                num_blocks=num_blocks,
                all_neighbors=True,
                root_dropout=_ROOT_DROPOUT,
            )
            for _ in range(num_layers)
        )
        facts = torch.stack(flat_triples(data))
        self.register_buffer("_facts", facts, persistent=False)
        self._num_relations = num_relations
        self.num_neighbors = choose_neighbors(num_neighbors, facts.size(1))
        self._has_said = False
        if self.num_neighbors == -1 and scorer.kge.node_emb.sparse:
            raise ValueError(
                "'scorer' must have dense gradients where a step convolves over all "
                "facts (got sparse=True)"
            )

    @property
    def is_direct(self) -> bool:
        """They are not."""
        return False

    @property
    def is_plain(self) -> bool:
        """They are not."""
        return False

    @property
    def title(self) -> str:
        """The name of the scorer in explanations."""
        return f"{self.scorer.title} behind R-GCN"

    def reset_parameters(self) -> None:
        super().reset_parameters()
        for conv in self._convs():
            conv.reset_parameters()

    def encode(self) -> Tensor | SampledGraph:
        if self.num_neighbors == -1:
            return self._convolved_at_once()
        if not self.training:
            return self._convolved_in_chunks()
        if not self._has_said:
            self._has_said = True
            logger.info(
                f"R-GCN: a training step samples {self.num_neighbors} neighbours of an "
                f"entity, of {self._facts.size(1):,} facts"
            )
        return SampledGraph.draw(self._index, self.num_neighbors, self.edge_dropout)

    def table(
        self, encoded: Tensor | SampledGraph, index: Tensor | None = None
    ) -> Tensor:
        if isinstance(encoded, Tensor):
            return encoded if index is None else F.embedding(index, encoded)
        if index is None and encoded.whole is None:
            every = torch.arange(self.num_nodes, device=self.device)
            encoded.whole = self._sampled(encoded, every, len(self.convs))
        if encoded.whole is not None:
            return self.table(encoded.whole, index)
        distinct, place = torch.unique(index, return_inverse=True)
        return F.embedding(place, self._sampled(encoded, distinct, len(self.convs)))

    def fingerprint(self) -> str:
        return f"R-GCN, {self.scorer.fingerprint()}"

    def _convolved_at_once(self) -> Tensor:
        x = self.scorer.table(self.scorer.encode())
        edge_index, edge_type = self._edges()
        for i, conv in enumerate(self._convs()):
            x = conv(F.relu(x) if i else x, edge_index, edge_type)
        return x

    def _convolved_in_chunks(self) -> Tensor:
        """Convolves over all facts, with the edges of some entities at once."""
        x = self.scorer.table(self.scorer.encode())
        chunks = torch.arange(len(x), device=x.device).split(_ENTITIES_AT_ONCE)
        for i, conv in enumerate(self._convs()):
            x = F.relu(x) if i else x
            parts = (_convolved(conv, x, one, self._index.edges(one)) for one in chunks)
            x = torch.cat(list(parts))
        return x

    def _sampled(self, graph: SampledGraph, entities: Tensor, depth: int) -> Tensor:
        """Returns rows of distinct entities behind some of the layers."""
        if depth == 0:
            return self.scorer.table(self.scorer.encode(), entities)
        source, target, kind = graph.edges(entities)
        needed = torch.unique(torch.cat([entities, source]))
        x = self._sampled(graph, needed, depth - 1)
        x = F.relu(x) if depth > 1 else x
        own, source = (torch.searchsorted(needed, one) for one in (entities, source))
        return _convolved(self._convs()[depth - 1], x, own, (source, target, kind))

    def _edges(self) -> tuple[Tensor, Tensor]:
        """Returns the facts in both directions, without dropped facts."""
        facts: Tensor = self._facts
        if self.training and self.edge_dropout > 0:
            drawn = torch.rand(facts.size(1), device=facts.device)
            facts = facts[:, drawn >= self.edge_dropout]
        head, rel, tail = facts
        edge_index = torch.stack([torch.cat([head, tail]), torch.cat([tail, head])])
        return edge_index, torch.cat([rel, rel + self._num_relations])

    def _convs(self) -> list[RelationalConv]:
        return list(self.convs)  # type: ignore[arg-type]

    @cached_property
    def _index(self) -> NeighborIndex:
        return NeighborIndex(self._facts, self.num_nodes, self._num_relations)


def choose_neighbors(num_neighbors: int | None, num_facts: int) -> int:
    r"""Returns how many neighbours of an entity a training step samples, -1 for all.

    Args:
        num_neighbors (int, optional): The number that was given, if any.
        num_facts (int): The number of facts.
    """
    if num_neighbors is None:
        return SAMPLED_NEIGHBORS if num_facts >= MANY_FACTS else -1
    return num_neighbors


def _convolved(conv: RelationalConv, x: Tensor, own: Tensor, edges: Edges) -> Tensor:
    """Returns the nodes at some places after a convolution."""
    source, target, kind = edges
    return conv((x, x[own]), torch.stack([source, target]), kind)
