"""A knowledge base with the facts of all splits."""

import copy
from collections.abc import Mapping

import torch
from torch_geometric.data import HeteroData


def with_all_facts(splits: Mapping[str, HeteroData]) -> HeteroData:
    r"""Returns the knowledge base with the triples of all splits as known facts.

    A model that is trained on it cannot be evaluated, because no triples are held
    out.

    Args:
        splits (dict): The splits, with :obj:`"train"` among them.

    Example:
        >>> from kblrn_pyg.data import read_kb
        >>> one, other = [("a", "likes", "b")], [("b", "likes", "a")]
        >>> kbs, _ = read_kb(one, other, one)
        >>> with_all_facts(kbs)["entity", "likes", "entity"].edge_index.tolist()
        [[0, 1], [1, 0]]
    """
    data = copy.copy(splits["train"])
    others = [one for name, one in splits.items() if name != "train"]
    for kind in data.edge_types:
        parts = [data[kind].edge_index, *(one[kind].edge_label_index for one in others)]
        edges = torch.cat(parts, dim=1).unique(dim=1)
        data[kind].edge_index = data[kind].edge_label_index = edges
    return data
