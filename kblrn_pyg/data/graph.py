"""The queries of a PyG graph, and the columns of its features that are numbers."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data.storage import EdgeStorage

from kblrn_pyg.data.errors import DataError

# What RandomLinkSplit adds to the edge types that it splits.
LABELS = ("edge_label", "pos_edge_label_index")
OTHER_LABELS = ("pos_edge_label", "neg_edge_label", "neg_edge_label_index")

# Features with more columns are most likely embeddings.
_MAX_COLUMNS = 64


def asked_edges(stores: Sequence[EdgeStorage]) -> list[Tensor]:
    r"""Returns the edges that a graph asks about, for each of its edge types.

    If an edge type has labels, as after
    :class:`~torch_geometric.transforms.RandomLinkSplit`, these are the positive
    edges of all edge types with labels; otherwise, if one has
    :obj:`edge_label_index`, those of all edge types that have it. A graph
    without either asks about its :obj:`edge_index`.
    """
    if any(key in store for store in stores for key in LABELS):
        return [_positive_edges(store) for store in stores]
    if any("edge_label_index" in store for store in stores):
        return [store.get("edge_label_index", _no_edges(store)) for store in stores]
    return [store.edge_index for store in stores]


def _positive_edges(store: EdgeStorage) -> Tensor:
    if "pos_edge_label_index" in store:
        return store.pos_edge_label_index
    if "edge_label" not in store:
        return _no_edges(store)
    index, label = store.get("edge_label_index", store.edge_index), store.edge_label
    if list(label.size()) != [index.size(1)]:
        raise DataError(
            f"edge_label must have the shape [{index.size(1)}] "
            f"(got {list(label.size())})"
        )
    return index[:, label > 0]


def _no_edges(store: EdgeStorage) -> Tensor:
    return store.edge_index[:, :0]


def column_names(store: Any, where: str, prefix: str = "") -> list[str]:
    """Returns the names of the columns of :obj:`x`, or creates them with a warning.

    Features that are most likely not numbers get no names.
    """
    x, names = store.get("x"), store.get("attribute_names")
    if names is not None or x is None:
        return [] if names is None else names
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2:
        reason = "it is not a dense matrix"
    elif not x.is_floating_point():
        reason = f"its type is {x.dtype}, as of ids and one-hot features"
    elif x.size(1) > _MAX_COLUMNS:
        reason = f"it has {x.size(1)} columns, as embeddings have"
    else:
        names = [f"{prefix}x{i}" for i in range(x.size(1))]
        if names:
            _warn(
                f"the columns of {where}.x have no names, they are called "
                f"{', '.join(names[:3])}{', ...' * (len(names) > 3)}; set "
                f"{where}.attribute_names to name them, or to [] to leave them out"
            )
        return names
    _warn(
        f"{where}.x is not used, because {reason}; set {where}.attribute_names to use "
        "its columns as numerical attributes, or to [] if they are none"
    )
    return []


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=3)
