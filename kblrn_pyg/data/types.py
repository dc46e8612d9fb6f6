"""PyG graphs as knowledge bases, with several node types or with one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from itertools import accumulate, chain

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.graph import LABELS, OTHER_LABELS, asked_edges, column_names
from kblrn_pyg.data.kb import ask, make_kb
from kblrn_pyg.data.validate import validate_kb


def unify_types(
    data: HeteroData, attributes: Mapping[str, Sequence[str]] | None = None
) -> HeteroData:
    r"""Turns a HeteroData with several node types into a knowledge base.

    The node types become consecutive id ranges of one entity space, kept as
    :obj:`data['entity'].type` and :obj:`data.type_names`. A relation between more
    than one pair of types becomes one relation for each pair, named
    :obj:`source.relation.target`. The queries are the edges that
    :class:`~torch_geometric.transforms.RandomLinkSplit` labels as positive, or
    those in :obj:`edge_label_index`. Edge types with neither have no queries. If no
    edge type has any, as in a training graph, the queries are its
    :obj:`edge_index`.

    Args:
        data (HeteroData): The graph. A node type may have :obj:`name`, a list of
            labels, :obj:`identifier`, a list of identifiers that are unique over
            all types, and :obj:`x`. If nodes share a label and no type has
            identifiers, these are created from type and index.
        attributes (dict, optional): For each node type, the names of the columns of
            its :obj:`x` that are numerical attributes. Types that share a name
            share the attribute. By default, the :obj:`attribute_names` of a type,
            and without them, :obj:`"type.x0"` and so on, with a warning.
            (default: :obj:`None`)
    """
    if attributes is None:
        attributes = _attributes(data)
    _check_types(data, attributes)
    sizes = {node_type: _num_nodes(data, node_type) for node_type in data.node_types}
    offsets = dict(zip(sizes, accumulate(sizes.values(), initial=0)))

    out = HeteroData()
    entity = out["entity"]
    entity.num_nodes = sum(sizes.values())
    entity.name = [name for kind in sizes for name in _node_names(data, kind)]
    has_identifiers = any("identifier" in data[kind] for kind in sizes)
    if has_identifiers or len(set(entity.name)) < len(entity.name):
        entity.identifier = [
            name for kind in sizes for name in _node_names(data, kind, "identifier")
        ]
    out.attribute_names, entity.x = _unify_values(data, attributes, sizes, offsets)
    counts = torch.tensor(list(sizes.values()))
    entity.type = torch.arange(len(sizes)).repeat_interleave(counts)
    out.type_names = list(sizes)
    # One dictionary: PyG takes a list of a store for attributes of its edges if
    # there happen to be as many.
    out.typed_relations = {}
    relations = Counter(relation for _, relation, _ in data.edge_types)
    for edge_type, edges in zip(data.edge_types, asked_edges(data.edge_stores)):
        source, relation, target = edge_type
        name = relation if relations[relation] == 1 else ".".join(edge_type)
        shift = torch.tensor([[offsets[source]], [offsets[target]]])
        store = out["entity", name, "entity"]
        store.edge_index = data[edge_type].edge_index + shift
        store.edge_label_index = edges + shift
        out.typed_relations[name] = [source, relation, target]
    return out


def from_homogeneous(data: Data, num_relations: int = 0) -> HeteroData:
    r"""Turns PyG's homogeneous knowledge graphs into a knowledge base.

    Args:
        data (Data): A graph with :obj:`edge_index` and :obj:`edge_type`, such as
            :class:`~torch_geometric.datasets.FB15k_237` gives. It may have
            :obj:`name`, a list of labels (otherwise names are numbers), and
            :obj:`x`, with :obj:`attribute_names` for its columns. With a single
            relation, it may be a split of
            :class:`~torch_geometric.transforms.RandomLinkSplit`.
        num_relations (int, optional): The minimum number of relations, if a split
            lacks some of them. (default: :obj:`0`)
    """
    has = data.get("edge_index") is not None and data.get("edge_type") is not None
    if not has or data.num_nodes is None:
        raise DataError("'data' must have edge_index, edge_type and num_nodes")
    if data.edge_type.numel():
        num_relations = max(num_relations, int(data.edge_type.max()) + 1)
    head_index, tail_index = data.edge_index.long()
    names = data.get("name") or [str(i) for i in range(data.num_nodes)]
    if len(names) != data.num_nodes:
        raise DataError(f"'name' must have {data.num_nodes} entries (got {len(names)})")
    attributes = column_names(data, "data")
    kb = make_kb(
        [str(name) for name in names],
        [str(r) for r in range(num_relations)],
        (head_index, data.edge_type.long(), tail_index),
        data.x.detach().double() if attributes and data.x is not None else None,
        attributes,
    )
    if not any(key in data for key in ("edge_label_index", *LABELS)):
        return kb
    if num_relations > 1:
        raise DataError(
            "the relations of edge_label_index are unknown: split a HeteroData with "
            "an edge type for each relation instead"
        )
    head_index, tail_index = asked_edges([data._store])[0].long()
    return ask(kb, (head_index, torch.zeros_like(head_index), tail_index))


def as_kb(data: HeteroData | Data, num_relations: int = 0) -> HeteroData:
    r"""Converts any supported PyG graph to a knowledge base.

    Args:
        data (HeteroData or Data): A knowledge base, which is checked and
            returned, or completed in a copy; a graph with other node types
            (:meth:`unify_types`); or a homogeneous one
            (:meth:`from_homogeneous`).
        num_relations (int, optional): See :meth:`from_homogeneous`.
            (default: :obj:`0`)
    """
    if not isinstance(data, HeteroData | Data):
        raise ValueError(
            f"'data' must be a HeteroData or a Data (got {type(data).__name__})"
        )
    if isinstance(data, HeteroData) and not data.node_types:
        raise ValueError("'data' must have nodes (got an empty HeteroData)")
    if data.is_cuda:
        data = copy(data).cpu()  # a copy, because PyG moves things in place
    if isinstance(data, Data):
        data = from_homogeneous(data, num_relations)
    elif data.node_types != ["entity"]:
        data = unify_types(data)
    else:
        data = _with_names(_with_asked_edges(data))
    validate_kb(data)
    return data


def _with_asked_edges(data: HeteroData) -> HeteroData:
    """Sets :obj:`edge_label_index` to the queries."""
    stores = data.edge_stores
    has_labels = any(key in store for store in stores for key in LABELS)
    if not has_labels and all("edge_label_index" in store for store in stores):
        return data
    out = copy(data)
    for store, edges in zip(out.edge_stores, asked_edges(stores)):
        store.edge_label_index = edges
        for key in (*LABELS, *OTHER_LABELS):
            store.pop(key, None)
    return out


def _with_names(data: HeteroData) -> HeteroData:
    """Completes names of entities, numbers, and names of attributes."""
    x, names = data["entity"].get("x"), data._global_store.get("attribute_names")
    is_complete = {"num_nodes", "name", "x"} <= set(data["entity"].keys())
    if is_complete and names is not None and not getattr(x, "requires_grad", False):
        return data
    out = copy(data)
    entity = out["entity"]
    entity.num_nodes = _num_nodes(data, "entity")
    entity.name = _node_names(data, "entity")
    if names is None:
        names = list(_attributes(data)["entity"])
        entity.pop("attribute_names", None)
        x = x if names else None
    if x is None and not names:
        x = torch.empty(entity.num_nodes, 0, dtype=torch.double)
    out.attribute_names = names
    if x is not None:
        entity.x = x.detach().double()
    return out


def split_types(data: HeteroData) -> HeteroData:
    r"""Restores the node types of a knowledge base that :meth:`unify_types`
    created.

    Args:
        data (HeteroData): The knowledge base.
    """
    if "type_names" not in data:
        raise DataError("the knowledge base has no node types, expected 'type_names'")
    entity = data["entity"]
    place = torch.empty_like(entity.type)  # of each entity among those of its type
    out = HeteroData()
    for kind, node_type in enumerate(data.type_names):
        part = (entity.type == kind).nonzero().flatten()
        place[part] = torch.arange(len(part))
        store = out[node_type]
        store.num_nodes = len(part)
        store.name = [entity.name[i] for i in part.tolist()]
        known = ~entity.x[part].isnan().all(dim=0)
        if known.any():
            store.x = entity.x[part][:, known]
            columns = known.nonzero().flatten().tolist()
            store.attribute_names = [data.attribute_names[i] for i in columns]
    for edge_type in data.edge_types:
        source, relation, target = data.typed_relations[edge_type[1]]
        store = out[source, relation, target]
        store.edge_index = place[data[edge_type].edge_index]
        store.edge_label_index = place[data[edge_type].edge_label_index]
    return out


def _num_nodes(data: HeteroData, node_type: str) -> int:
    num_nodes = data[node_type].num_nodes
    if num_nodes is None:
        raise DataError(f"data[{node_type!r}].num_nodes is unknown, expected an int")
    return num_nodes


def _node_names(data: HeteroData, node_type: str, key: str = "name") -> list[str]:
    num_nodes = _num_nodes(data, node_type)
    names = data[node_type].get(key)
    if names is None:
        return [f"{node_type} {i}" for i in range(num_nodes)]
    if len(names) != num_nodes:
        raise DataError(
            f"data[{node_type!r}].{key} must have {num_nodes} entries "
            f"(got {len(names)})"
        )
    return [str(name) for name in names]


def _check_types(data: HeteroData, attributes: Mapping[str, Sequence[str]]) -> None:
    named = [(f"{edge_type}", edge_type[::2]) for edge_type in data.edge_types]
    for where, node_types in [*named, ("'attributes'", tuple(attributes))]:
        for node_type in node_types:
            if node_type not in data.node_types:
                raise DataError(
                    f"{where} names the node type {node_type!r}, expected one of "
                    f"{data.node_types}"
                )
    for node_type, names in attributes.items():
        if isinstance(names, str) or len(set(names)) < len(names):
            raise DataError(
                f"the attributes of {node_type!r} must be a list of different names "
                f"(got {names!r})"
            )


def _attributes(data: HeteroData) -> dict[str, Sequence[str]]:
    """Returns the names of the columns of each node type."""
    has_several = len(data.node_types) > 1
    return {
        kind: column_names(data[kind], f"data[{kind!r}]", f"{kind}." * has_several)
        for kind in data.node_types
    }


def _unify_values(
    data: HeteroData,
    attributes: Mapping[str, Sequence[str]],
    sizes: Mapping[str, int],
    offsets: Mapping[str, int],
) -> tuple[list[str], Tensor]:
    columns = list(dict.fromkeys(chain.from_iterable(attributes.values())))
    shape = sum(sizes.values()), len(columns)
    x = torch.full(shape, torch.nan, dtype=torch.double)
    for node_type, names in attributes.items():
        if not names:
            continue
        values = data[node_type].get("x")
        if values is None or values.size(-1) != len(names):
            found = None if values is None else list(values.size())
            raise DataError(
                f"data[{node_type!r}].x must have {len(names)} columns (got {found})"
            )
        begin, places = offsets[node_type], [columns.index(name) for name in names]
        x[begin : begin + sizes[node_type], places] = values.detach().double()
    return columns, x
