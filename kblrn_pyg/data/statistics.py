"""The statistics of the paper's Table 1 for a knowledge base, and more."""

from dataclasses import dataclass

import torch
from torch_geometric.data import HeteroData

from kblrn_pyg.data.kb import flat_triples, num_edges
from kblrn_pyg.data.numerical import numerical_features


@dataclass(frozen=True)
class Statistics:
    r"""The counts of a knowledge base.

    Args:
        num_entities (int): Entities.
        num_relations (int): Relations.
        num_triples (dict): Triples of each split.
        num_entities_in_training (int): Entities with a training triple.
        num_attributes (int): Numerical attributes.
        num_values (int): Known numbers.
        num_entities_with_numbers (int): Entities with at least one of them.
        num_numerical_relations (int): Relations that qualify for numerical
            features.
        num_numerical_features (int): The total number of their features.
        mean_degree (float): The mean number of training triples at an entity.
        max_degree (int): The maximum number of training triples at an entity.
    """

    num_entities: int
    num_relations: int
    num_triples: dict[str, int]
    num_entities_in_training: int
    num_attributes: int
    num_values: int
    num_entities_with_numbers: int
    num_numerical_relations: int
    num_numerical_features: int
    mean_degree: float
    max_degree: int


def kb_statistics(splits: dict[str, HeteroData]) -> Statistics:
    r"""Returns the counts of a knowledge base.

    Args:
        splits (dict): The knowledge base of each split, including :obj:`"train"`.
    """
    data = splits["train"]
    num_entities = data["entity"].num_nodes
    head_index, _, tail_index = flat_triples(data)
    degree = torch.bincount(head_index, minlength=num_entities)
    degree += torch.bincount(tail_index, minlength=num_entities)
    num_triples = head_index.numel()
    del head_index, tail_index
    known = ~data["entity"].x.isnan()
    features = numerical_features(data)
    return Statistics(
        num_entities=num_entities,
        num_relations=len(data.edge_types),
        num_triples={
            split: num_edges(kb, "edge_label_index") for split, kb in splits.items()
        },
        num_entities_in_training=int((degree > 0).sum()),
        num_attributes=len(data.attribute_names),
        num_values=int(known.sum()),
        num_entities_with_numbers=int(known.any(dim=1).sum()),
        num_numerical_relations=features.relations.numel(),
        num_numerical_features=len(features),
        mean_degree=2 * num_triples / max(num_entities, 1),
        max_degree=int(degree.max()) if num_entities else 0,
    )
