r"""Knowledge graph scorers in the form that all-candidate scoring needs.

Every scorer compares a *query*, made of the known entity and the relation,
with a *table* that has a row for every candidate: by their dot product
(DistMult, ComplEx, RESCAL) or by their negative distance (TransE, RotatE).
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.kge import ComplEx, DistMult, KGEModel, RotatE, TransE

from kblrn_pyg.nn.products import ProductWithAll
from kblrn_pyg.nn.rescal import RESCAL
from kblrn_pyg.nn.transe import FreeTransE

# What is done to the embeddings of entities.
Drop = Callable[[Tensor], Tensor]

SCORERS: dict[str, type[KGEModel]] = {
    "distmult": DistMult,
    "complex": ComplEx,
    "transe": FreeTransE,
    "unit-transe": TransE,
    "rotate": RotatE,
    "rescal": RESCAL,
}
_NAMES = {kind: name for name, kind in SCORERS.items()}


def scorer_name(scorer: str | KGEModel) -> str:
    """Returns what tells scorers apart whose weights mean different things."""
    if isinstance(scorer, str):
        return scorer.lower()
    name = _NAMES.get(type(scorer), type(scorer).__name__)
    if isinstance(scorer, TransE) and scorer.p_norm != 1.0:
        return f"{name} of norm {scorer.p_norm}"
    return name


def make_scorer(
    scorer: str | KGEModel, num_nodes: int, num_relations: int, hidden_channels: int
) -> KGEModel:
    """Makes a scorer by name, or checks one that is given."""
    if isinstance(scorer, str):
        if scorer.lower() not in SCORERS:
            known = ", ".join(SCORERS)
            raise ValueError(f"'scorer' must be one of {known} (got {scorer!r})")
        return SCORERS[scorer.lower()](num_nodes, num_relations, hidden_channels)
    if type(scorer) not in _NAMES:
        known = ", ".join(kind.__name__ for kind in _NAMES)
        name = type(scorer).__name__
        raise ValueError(f"'scorer' must be one of {known} (got {name})")
    if scorer.node_emb.sparse:
        raise ValueError("'scorer' must have dense gradients (got sparse=True)")
    if (scorer.num_nodes, scorer.num_relations) != (num_nodes, num_relations):
        size = (scorer.num_nodes, scorer.num_relations)
        raise ValueError(
            f"'scorer' must have {num_nodes} nodes and {num_relations} relations "
            f"(got {size})"
        )
    return scorer


def is_dot(scorer: KGEModel) -> bool:
    """Tells whether a scorer multiplies, instead of measuring a distance."""
    return isinstance(scorer, DistMult | ComplEx | RESCAL)


def is_l1(scorer: KGEModel) -> bool:
    """Tells whether a scorer measures distances in the L1 norm."""
    return isinstance(scorer, TransE) and scorer.p_norm == 1.0


def table(scorer: KGEModel, drop: Drop) -> Tensor:
    """Returns one row for every candidate."""
    rows = drop(scorer.node_emb.weight)
    if isinstance(scorer, TransE):
        return _point(scorer, rows)
    if isinstance(scorer, ComplEx | RotatE):
        return torch.cat([rows, drop(scorer.node_emb_im.weight)], dim=-1)
    return rows


def tail_query(
    scorer: KGEModel, head_index: Tensor, rel_type: Tensor, drop: Drop
) -> Tensor:
    """Returns what a tail is compared with."""
    head = drop(scorer.node_emb(head_index))
    if isinstance(scorer, RESCAL):
        return scorer.product(head, rel_type)
    rel = scorer.rel_emb(rel_type)
    if isinstance(scorer, TransE):
        return _point(scorer, head) + rel
    if isinstance(scorer, ComplEx | RotatE):
        head_im = drop(scorer.node_emb_im(head_index))
        rel_re, rel_im = _complex_relation(scorer, rel, rel_type)
        parts = [rel_re * head - rel_im * head_im, rel_re * head_im + rel_im * head]
        return torch.cat(parts, dim=-1)
    return head * rel


def head_query(
    scorer: KGEModel, rel_type: Tensor, tail_index: Tensor, drop: Drop
) -> Tensor:
    """Returns what a head is compared with."""
    tail = drop(scorer.node_emb(tail_index))
    if isinstance(scorer, RESCAL):
        return scorer.product(tail, rel_type, transposed=True)
    rel = scorer.rel_emb(rel_type)
    if isinstance(scorer, TransE):
        return _point(scorer, tail) - rel
    if isinstance(scorer, ComplEx | RotatE):
        tail_im = drop(scorer.node_emb_im(tail_index))
        rel_re, rel_im = _complex_relation(scorer, rel, rel_type)
        # Turning back by the relation: it is a rotation, or enters conjugated.
        parts = [rel_re * tail + rel_im * tail_im, rel_re * tail_im - rel_im * tail]
        return torch.cat(parts, dim=-1)
    return tail * rel


def embeddings(
    scorer: KGEModel, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns what triples are made of, as complex numbers if they are that."""
    rows, rel = table(scorer, lambda embedding: embedding), scorer.rel_emb(rel_type)
    if isinstance(scorer, ComplEx | RotatE):
        rows = torch.complex(*rows.chunk(2, dim=-1))
    if isinstance(scorer, ComplEx):
        rel = torch.complex(rel, scorer.rel_emb_im(rel_type))
    return rows[head_index], rel, rows[tail_index]


def compare_all(scorer: KGEModel, query: Tensor, rows: Tensor) -> Tensor:
    """Scores every query against every row."""
    if is_dot(scorer):
        return ProductWithAll.apply(query, rows)
    if isinstance(scorer, RotatE):
        return scorer.margin - _distances(query, rows, 2.0)
    return -_distances(query, rows, float(scorer.p_norm))


def compare(scorer: KGEModel, query: Tensor, rows: Tensor) -> Tensor:
    """Scores each query against its own row or rows."""
    if is_dot(scorer):
        return (query * rows).sum(dim=-1)
    if isinstance(scorer, RotatE):
        return scorer.margin - torch.linalg.vector_norm(query - rows, dim=-1)
    return -(query - rows).norm(p=scorer.p_norm, dim=-1)


def _point(scorer: TransE, embedding: Tensor) -> Tensor:
    """Returns where TransE puts entities."""
    if isinstance(scorer, FreeTransE):
        return embedding
    return F.normalize(embedding, p=scorer.p_norm, dim=-1)


def _complex_relation(
    scorer: KGEModel, rel: Tensor, rel_type: Tensor
) -> tuple[Tensor, Tensor]:
    if isinstance(scorer, RotatE):
        return torch.cos(rel), torch.sin(rel)
    return rel, scorer.rel_emb_im(rel_type)


def _distances(query: Tensor, rows: Tensor, p: float) -> Tensor:
    # The matrix-product form of Euclidean distances is inexact near zero.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(query, rows, p=p, compute_mode=mode)
