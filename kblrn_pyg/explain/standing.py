"""Where an answer stands, with all experts and without each of them."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data import as_kb
from kblrn_pyg.data.same import how_different
from kblrn_pyg.explain.reasons import Standing
from kblrn_pyg.nn import KBLRN

EXPERTS = ("latent", "relational", "numerical")


def standings(
    model: KBLRN, triple: tuple[int, int, int], known: Tensor
) -> tuple[Standing, Standing]:
    r"""Ranks the tail of a triple among all tails, and its head among all heads.

    Args:
        model (KBLRN): The model.
        triple (tuple): The triple.
        known (torch.Tensor): The known facts of its relation, as
            :obj:`edge_index`.
    """
    device = next(model.parameters()).device
    head, rel, tail = torch.tensor(triple, device=device).split(1)
    # Rows of whole models, so that ties are those of evaluation.
    models = {"": model} | _leaving_one_out(model)
    tails = {name: one.score_tails(head, rel)[0] for name, one in models.items()}
    heads = {name: one.score_heads(rel, tail)[0] for name, one in models.items()}
    known = known.to(device)
    return (
        _standing(tails, triple[2], known[1, known[0] == head]),
        _standing(heads, triple[0], known[0, known[1] == tail]),
    )


def known_facts(
    kb: HeteroData, relation: int, others: Iterable[HeteroData] = ()
) -> Tensor:
    r"""Returns the known facts of a relation as :obj:`edge_index`.

    Args:
        kb (HeteroData): The knowledge base; its :obj:`edge_index` is known.
        relation (int): The relation.
        others (iterable, optional): Knowledge bases whose :obj:`edge_index`
            and :obj:`edge_label_index` are known, too. (default: :obj:`()`)
    """
    if isinstance(others, HeteroData):
        raise ValueError("'known' must be a list of them (got one HeteroData)")
    edge_type = kb.edge_types[relation]
    found = [kb[edge_type].edge_index]
    for other in (as_kb(one, len(kb.edge_types)) for one in others):
        different = how_different(kb, other)
        if different is not None:
            raise ValueError(
                "'known' must be over the entities and relations of the model "
                f"(got {different})"
            )
        found += [other[edge_type].edge_index, other[edge_type].edge_label_index]
    return torch.cat(found, dim=1)


def _leaving_one_out(model: KBLRN) -> dict[str, KBLRN]:
    """Returns models without one expert; they share the others with the model."""
    experts = {name: getattr(model, name) for name in EXPERTS}
    experts = {name: one for name, one in experts.items() if one is not None}
    if len(experts) == 1:
        return {}
    size = (model.num_nodes, model.num_relations)
    return {
        left: KBLRN(
            *size, **{name: one for name, one in experts.items() if name != left}
        )
        for left in experts
    }


def _standing(rows: dict[str, Tensor], answer: int, known: Tensor) -> Standing:
    row = rows[""]
    if row.isnan().any():
        raise ValueError("the scores of the model must be numbers (got NaN)")
    is_candidate = torch.ones_like(row, dtype=torch.bool)
    is_candidate[known] = False
    is_candidate[answer] = True
    ranks = {name: _rank(one, answer, is_candidate) for name, one in rows.items()}
    return Standing(
        float(row.double().softmax(dim=0)[answer]),
        ranks.pop(""),
        ranks,
        int(is_candidate.sum()),
    )


def _rank(row: Tensor, answer: int, is_candidate: Tensor) -> float:
    candidates = row[is_candidate]
    better = int((candidates > row[answer]).sum())
    ties = int((candidates == row[answer]).sum()) - 1  # it ties with itself
    return 1 + better + ties / 2
