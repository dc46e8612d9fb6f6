"""An expert of one's own: how popular a tail is for a relation, in one weight each.

    python examples/own_expert.py

Only ``forward`` is written; training, evaluation, predictions, explanations and
the model file work with it as with the experts of the paper.
"""

import torch
from torch import Tensor
from torch.nn import Parameter

from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import Expert
from kblrn_pyg.training import fit


class Popularity(Expert):
    """One weight for each relation and tail."""

    def __init__(self, num_nodes: int, num_relations: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.zeros(num_relations, num_nodes))

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        return self.weight[rel_type, tail_index]


def main() -> None:
    train, val, test = load_dataset("Families").values()
    torch.manual_seed(0)
    popularity = Popularity(train["entity"].num_nodes, len(train.edge_types))
    model = KBLRN.from_data(train, experts=["r", popularity], num_negatives=None)
    fit(model, train, val, filter_with=[test], epochs=2, lr=0.05, validate_every=1)
    print(model)
    for name in model.experts:
        mrr = evaluate(model.without(name), test, filter_with=[val]).metrics().mrr
        print(f"MRR without the {name} expert: {mrr:.3f}")
    mrr = evaluate(model, test, filter_with=[val]).metrics().mrr
    print(f"MRR with both: {mrr:.3f}")
    print(model.explain("Ada Crowgarth", "lives_in", "Pellford", known=[val, test]))


if __name__ == "__main__":
    main()
