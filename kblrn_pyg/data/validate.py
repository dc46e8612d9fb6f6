"""Checks that a HeteroData is a knowledge base, and the same as another one."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.data.packing import are_texts, is_unicode

_ROWS = 1 << 16  # of numbers that are looked at together
# Squares of differences of numbers must be numbers, too.
LARGEST = 1e150


def validate_kb(data: HeteroData) -> None:
    r"""Checks that a :class:`~torch_geometric.data.HeteroData` is a knowledge base.

    Args:
        data (HeteroData): The data to check.

    Raises:
        DataError: With all problems, in one line.
    """
    problems = find_problems(data)
    if problems:
        raise DataError("not a knowledge base: " + "; ".join(problems))


def find_problems(data: HeteroData) -> list[str]:
    r"""Returns all reasons why a HeteroData is not a knowledge base.

    Args:
        data (HeteroData): The data to check.
    """
    if not isinstance(data, HeteroData):
        return [f"expected a HeteroData (got {type(data).__name__})"]
    if data.node_types != ["entity"]:
        return [
            f"expected the node type 'entity' alone (got {data.node_types}); "
            "'unify_types' makes one entity space of several node types"
        ]
    return _entity_problems(data) + _edge_problems(data)


def how_different(kb: HeteroData, other: HeteroData) -> str | None:
    """Returns how another knowledge base differs, or :obj:`None` if ids mean the
    same.

    Readers assign ids in the order of appearance, so the same triples in another
    order give a different knowledge base.
    """
    entities = kb["entity"], other["entity"]
    mine, theirs = (entity.get("identifier", entity.name) for entity in entities)
    if len(mine) != len(theirs) or len(kb.edge_types) != len(other.edge_types):
        return f"{len(theirs)} entities and {len(other.edge_types)} relations"
    if kb.edge_types != other.edge_types:
        return "other names of relations, or another order"
    if mine is not theirs and mine != theirs:
        i = next(i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b)
        return f"{theirs[i]!r} as entity {i}, which is {mine[i]!r}"
    return None


def _entity_problems(data: HeteroData) -> list[str]:
    entity, problems = data["entity"], []
    num_nodes = entity.get("num_nodes")
    if not isinstance(num_nodes, int):
        return [f"data['entity'].num_nodes must be an int (got {num_nodes!r})"]
    for key in ("name", "identifier"):
        names = entity.get(key)
        if names is None and key == "identifier":
            continue
        if not isinstance(names, list) or not are_texts(names):
            problems.append(f"data['entity'].{key} must be a list of strings")
        elif len(names) != num_nodes:
            problems.append(
                f"data['entity'].{key} must have {num_nodes} entries (got {len(names)})"
            )
        elif not is_unicode(names):
            problems.append(f"data['entity'].{key} must be Unicode, without surrogates")
        elif key == "identifier" and len(set(names)) < len(names):
            problems.append("data['entity'].identifier must not repeat")
    return problems + _value_problems(data, num_nodes)


def _value_problems(data: HeteroData, num_nodes: int) -> list[str]:
    names = data.to_dict()["_global_store"].get("attribute_names")
    if not isinstance(names, list) or not are_texts(names):
        return ["data.attribute_names must be a list of strings"]
    if not is_unicode(names):
        return ["data.attribute_names must be Unicode, without surrogates"]
    x = data["entity"].get("x")
    if not isinstance(x, Tensor) or not x.is_floating_point():
        return ["data['entity'].x must be a floating-point tensor"]
    if tuple(x.size()) != (num_nodes, len(names)):
        shape = (num_nodes, len(names))
        return [f"data['entity'].x must have the shape {shape} (got {tuple(x.size())})"]
    found = _too_large(x.detach().cpu().numpy())
    if found is None:
        return []
    value, column = found
    if np.isinf(value):
        return ["data['entity'].x must be finite, or NaN where unknown"]
    name = names[column]
    return [f"numbers must be at most {LARGEST:g}, NaN is unknown (see {name!r})"]


def _too_large(x: NDArray[Any]) -> tuple[float, int] | None:
    """Returns a number that is too large, and its column."""
    for begin in range(0, len(x), _ROWS):  # without a copy of all numbers
        size = np.abs(x[begin : begin + _ROWS])
        if (size > LARGEST).any():  # NaN is not
            row, column = np.unravel_index(np.nanargmax(size), size.shape)
            return float(size[row, column]), int(column)
    return None


def _edge_problems(data: HeteroData) -> list[str]:
    problems = []
    if not data.edge_types:
        problems.append("there are no relations")
    relations = relation_names(data)
    if not is_unicode(relations):
        problems.append("relations must be Unicode, without surrogates")
    if len(set(relations)) < len(relations):
        problems.append("relation names must not repeat")
    num_nodes = data["entity"].get("num_nodes")
    for edge_type in data.edge_types:
        for key in ("edge_index", "edge_label_index"):
            problem = _index_problem(data[edge_type].get(key), num_nodes)
            if problem:
                problems.append(f"data[{edge_type}].{key} {problem}")
    return problems


def _index_problem(index: Any, num_nodes: Any) -> str | None:
    if not isinstance(index, Tensor) or index.dtype != torch.long:
        return "must be a tensor of type int64"
    if index.dim() != 2 or index.size(0) != 2:
        return f"must have the shape [2, num_edges] (got {list(index.size())})"
    if not isinstance(num_nodes, int) or index.numel() == 0:
        return None
    array = index.cpu().numpy()  # whose extrema take a tenth of the time
    if int(array.min()) < 0 or int(array.max()) >= num_nodes:
        return f"must lie in 0 to {num_nodes - 1}"
    return None
