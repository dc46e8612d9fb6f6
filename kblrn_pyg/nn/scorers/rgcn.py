"""R-GCN: convolutions over neighbours, in front of a scorer."""

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import ModuleList
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn.relational_conv import RelationalConv
from kblrn_pyg.nn.scorers.delegating import DelegatingScorer
from kblrn_pyg.nn.scorers.scorer import Scorer

# What the paper drops of what entities send to themselves.
_ROOT_DROPOUT = 0.2


class RGCNScorer(DelegatingScorer):
    r"""Puts layers of a relational graph convolution in front of a scorer, from the
    `"Modeling Relational Data with Graph Convolutional Networks"
    <https://arxiv.org/abs/1703.06103>`_ paper; see :class:`RelationalConv`.

    Every step convolves over all facts, in both directions. As in the paper's link
    prediction, sums are divided by the number of all neighbours, after dropping
    facts, and training drops a fraction of 0.2 of the entries of an entity's
    message to itself.

    Combined with a scorer without convolutions, as in
    :obj:`scorer=["distmult", "rgcn:distmult"]`, it is R-GCN+. The paper trains the
    two separately and adds 0.4 of one score to 0.6 of the other; here, they are
    trained together, which needs no such weights.

    Args:
        data (HeteroData): The knowledge base.
        scorer (Scorer): The scorer, with dense gradients, whose rows are convolved.
        num_layers (int, optional): The number of layers, with a ReLU between two of
            them. (default: :obj:`1`)
        num_bases (int, optional): The number of matrices that the relations'
            matrices are combined from. (default: :obj:`None`, 2 unless there are
            blocks)
        num_blocks (int, optional): The number of blocks of the relations' matrices,
            instead of bases. (default: :obj:`None`, no blocks)
        edge_dropout (float, optional): The fraction of facts that is dropped at
            each training step. (default: :obj:`0.4`)
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

    def encode(self) -> Tensor:
        x = self.scorer.table(self.scorer.encode())
        edge_index, edge_type = self._edges()
        for i, conv in enumerate(self._convs()):
            x = conv(F.relu(x) if i else x, edge_index, edge_type)
        return x

    def table(self, encoded: Tensor, index: Tensor | None = None) -> Tensor:
        return encoded if index is None else F.embedding(index, encoded)

    def fingerprint(self) -> str:
        return f"R-GCN, {self.scorer.fingerprint()}"

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
