"""Digests that identify a knowledge base."""

import hashlib
from itertools import chain, islice

from torch import Tensor
from torch_geometric.data import HeteroData

_NAMES_AT_ONCE = 1 << 16


def names_digest(kb: HeteroData | None) -> bytes:
    r"""Returns a digest of the names of entities and relations.

    Args:
        kb (HeteroData, optional): The knowledge base, if there is one.
    """
    if kb is None:
        return b""
    entity = kb["entity"]
    names = chain(entity.get("identifier", entity.name), map(str, kb.edge_types))
    digest = hashlib.sha256()
    mark = ""
    while some := list(islice(names, _NAMES_AT_ONCE)):
        digest.update((mark + "\n".join(some)).encode())
        mark = "\n"
    return digest.digest()


def ids_digest(*columns: Tensor) -> str:
    r"""Returns a digest of columns of ids, such as those of triples.

    Args:
        *columns (torch.Tensor): The columns.
    """
    digest = hashlib.sha256()
    for column in columns:
        digest.update(len(column).to_bytes(8, "little"))
        digest.update(column.cpu().numpy().tobytes())
    return digest.hexdigest()
