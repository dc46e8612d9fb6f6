"""Whether two knowledge bases mean the same by their ids."""

from torch_geometric.data import HeteroData


def how_different(kb: HeteroData, other: HeteroData) -> str | None:
    r"""Tells what another knowledge base has instead, :obj:`None` if it is the same.

    Readers number names by their appearance, so that the same triples in
    another order make another knowledge base.

    Args:
        kb (HeteroData): The knowledge base.
        other (HeteroData): The one to compare with it.
    """
    mine, theirs = _identifiers(kb), _identifiers(other)
    if len(mine) != len(theirs) or len(kb.edge_types) != len(other.edge_types):
        return f"{len(theirs)} entities and {len(other.edge_types)} relations"
    if kb.edge_types != other.edge_types:
        return "other names of relations, or another order"
    if mine != theirs:
        i = next(i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b)
        return f"{theirs[i]!r} as entity {i}, which is {mine[i]!r}"
    return None


def _identifiers(kb: HeteroData) -> list[str]:
    entity = kb["entity"]
    return entity.get("identifier", entity.name)
