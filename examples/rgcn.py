"""Layers of PyG's RGCNConv in front of DistMult, beside paths and numbers.

    python examples/rgcn.py

A scorer is asked once a step to encode the entities; here, that is where the
graph convolution happens.
"""

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.nn import RGCNConv
from torch_geometric.nn.kge import DistMult

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import DistMultScorer
from kblrn_pyg.training import fit


class RGCNDistMult(DistMultScorer):
    """DistMult of embeddings that have seen their neighbours.

    Args:
        data (HeteroData): The knowledge base, whose facts are convolved over.
        hidden_channels (int): The embedding size.
    """

    def __init__(self, data: HeteroData, hidden_channels: int) -> None:
        num_relations = len(data.edge_types)
        sizes = data["entity"].num_nodes, num_relations, hidden_channels
        super().__init__(DistMult(*sizes))
        self.conv = RGCNConv(
            hidden_channels, hidden_channels, 2 * num_relations, num_bases=4
        )
        head, rel, tail = flat_triples(data)
        forth, back = torch.stack([head, tail]), torch.stack([tail, head])
        edge_index = torch.cat([forth, back], dim=1)
        edge_type = torch.cat([rel, rel + num_relations])
        self.register_buffer("edge_index", edge_index, persistent=False)
        self.register_buffer("edge_type", edge_type, persistent=False)

    def encode(self) -> Tensor:
        x = self.kge.node_emb.weight
        return x + self.conv(x, self.edge_index, self.edge_type)


def main() -> None:
    train, val, test = load_dataset("Families").values()
    torch.manual_seed(0)
    model = KBLRN.from_data(
        train, "lrn", 16, scorer=RGCNDistMult(train, 16), num_negatives=None
    )
    fit(model, train, val, filter_with=[test], epochs=1, lr=0.02, progress=True)
    mrr = evaluate(model, test, filter_with=[val]).metrics().mrr
    print(f"{model}\nMRR {mrr:.3f}")


if __name__ == "__main__":
    main()
