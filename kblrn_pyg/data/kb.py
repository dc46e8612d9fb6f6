r"""The knowledge base as a :class:`~torch_geometric.data.HeteroData`.

The rest of the library expects a knowledge base in this form:

* :obj:`data['entity']` has :obj:`num_nodes`, :obj:`name` (a list of labels),
  :obj:`identifier` where it differs from the label, and :obj:`x`, a
  floating-point matrix :obj:`[num_nodes, num_attributes]` in which NaN means
  unknown. It has double precision, because the numerical experts use
  differences of numbers that may be large.
* :obj:`data['entity', relation, 'entity']` has :obj:`edge_index`, the known
  (training) graph, and :obj:`edge_label_index`, the triples that the split asks
  about. The id of a relation is its position in :obj:`data.edge_types`.
* :obj:`data.attribute_names` names the columns of :obj:`x`.
"""

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.ids import check_ids

FlatTriples = tuple[Tensor, Tensor, Tensor]


def make_kb(
    names: Sequence[str],
    relations: Sequence[str],
    known: FlatTriples,
    x: Tensor | None = None,
    attribute_names: Sequence[str] = (),
    identifiers: Sequence[str] | None = None,
) -> HeteroData:
    r"""Builds a knowledge base from flat triples, which are also its queries.

    Args:
        names (sequence): The name of each entity.
        relations (sequence): The name of each relation.
        known (tuple): The training triples :obj:`(head_index, rel_type,
            tail_index)`.
        x (torch.Tensor, optional): The numerical values, NaN where unknown.
            (default: :obj:`None`)
        attribute_names (sequence, optional): The name of each column of
            :obj:`x`. (default: :obj:`()`)
        identifiers (sequence, optional): The identifier of each entity, where
            it differs from the name. (default: :obj:`None`)
    """
    repeated = [name for name, count in Counter(relations).items() if count > 1]
    if repeated:
        raise ValueError(f"'relations' must not repeat (got {repeated[0]!r} twice)")
    data = HeteroData()
    entity = data["entity"]
    entity.num_nodes = len(names)
    entity.name = list(names)
    if identifiers is not None:
        entity.identifier = list(identifiers)
    if x is None:
        shape = len(names), len(attribute_names)
        x = torch.full(shape, torch.nan, dtype=torch.double)
    entity.x = x
    data.attribute_names = list(attribute_names)

    edges_of = _edges_by_relation(known, len(names), len(relations))
    for relation, edges in zip(relations, edges_of):
        store = data["entity", relation, "entity"]
        store.edge_index = edges
        store.edge_label_index = edges
    return data


def ask(data: HeteroData, asked: FlatTriples) -> HeteroData:
    r"""Returns the same knowledge base with other triples as queries.

    Args:
        data (HeteroData): The knowledge base.
        asked (tuple): The triples of the queries.
    """
    data = copy.copy(data)
    edge_types, num_entities = data.edge_types, data["entity"].num_nodes
    edges_of = _edges_by_relation(asked, num_entities, len(edge_types))
    for edge_type, edges in zip(edge_types, edges_of):
        data[edge_type].edge_label_index = edges
    return data


def flat_triples(data: HeteroData, key: str = "edge_index") -> FlatTriples:
    r"""Returns the triples of a knowledge base, ordered by relation.

    Args:
        data (HeteroData): The knowledge base.
        key (str, optional): :obj:`"edge_index"` for the known triples,
            :obj:`"edge_label_index"` for those that the split asks about.
            (default: :obj:`"edge_index"`)

    Returns:
        :obj:`(head_index, rel_type, tail_index)`.
    """
    edges = [data[edge_type][key] for edge_type in data.edge_types]
    if not edges:
        empty = torch.empty(0, dtype=torch.long)
        return empty, empty, empty
    counts = torch.tensor([index.size(1) for index in edges])
    rel_type = torch.arange(len(edges)).repeat_interleave(counts)
    head_index, tail_index = torch.cat(edges, dim=1)
    return head_index, rel_type, tail_index


def num_edges(data: HeteroData, key: str = "edge_index") -> int:
    r"""Returns the number of triples of a knowledge base.

    Args:
        data (HeteroData): The knowledge base.
        key (str, optional): See :meth:`flat_triples`.
            (default: :obj:`"edge_index"`)
    """
    return sum(data[edge_type][key].size(1) for edge_type in data.edge_types)


def _edges_by_relation(
    triples: FlatTriples, num_entities: int, num_relations: int
) -> list[Tensor]:
    head_index, rel_type, tail_index = map(_wide, triples)
    check_ids(
        {
            "heads": (head_index, num_entities),
            "relations": (rel_type, num_relations),
            "tails": (tail_index, num_entities),
        }
    )
    # All edges share one piece of memory, those of a relation side by side: nothing
    # is held twice, and a file has one tensor instead of hundreds.
    flat = torch.empty(2 * head_index.numel(), dtype=torch.long)
    rel = rel_type.numpy()
    bounds = np.concatenate([[0], np.bincount(rel, minlength=num_relations).cumsum()])
    order = _stable_order(rel, num_relations)
    edges = []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        part = flat[2 * begin : 2 * end].view(2, end - begin)
        rows = slice(begin, end) if order is None else order[begin:end]
        for row, ids in zip(part.numpy(), (head_index, tail_index)):
            row[:] = ids.numpy()[rows]
        edges.append(part)
    return edges


def _wide(index: Tensor) -> Tensor:
    """Converts narrow integers and empty tensors to ids; everything else is
    unchanged."""
    if not isinstance(index, Tensor):
        raise ValueError(
            f"columns of triples must be tensors (got {type(index).__name__})"
        )
    if index.numel() == 0:
        return index.long()
    is_narrow = index.dtype in (torch.uint8, torch.int8, torch.int16, torch.int32)
    return index.long() if is_narrow else index


def _stable_order(rel: NDArray[np.int64], num_relations: int) -> Any:
    """Returns the order by relation, :obj:`None` if that is the order already."""
    if (rel[1:] >= rel[:-1]).all():
        return None
    # Small integers are sorted by their digits, several times as fast.
    small = np.int16 if num_relations <= np.iinfo(np.int16).max else np.int64
    return np.argsort(rel.astype(small), kind="stable")
