"""The contribution of each expert of a model to its answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import DataError, Names
from kblrn_pyg.data.ids import check_id
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.evaluation import device_of, evaluate, evaluating, kb_for
from kblrn_pyg.evaluation.ranks import relation_ids
from kblrn_pyg.nn import KBLRN

# How many scores are held at once.
_MAX_SCORES = 1 << 24


@dataclass(frozen=True)
class Contributions:
    r"""The contribution of each expert to the answers of some relations.

    Args:
        relations (list): The relations, the most frequent first.
        counts (list): The number of evaluated triples of each.
        speaks (dict): By the name of each expert of the model, whether its scores
            of each relation can differ from zero.
        lifts (dict): By the name of each expert, how much it lifts the true
            answers of each relation; see :meth:`mean_lifts`.
        mrr (list): The mean reciprocal rank of each relation.
        mrr_without (dict): By the name of each expert, the same without that
            expert; empty if there is only one.
    """

    relations: list[int]
    counts: list[int]
    speaks: dict[str, list[bool]]
    lifts: dict[str, list[float]]
    mrr: list[float]
    mrr_without: dict[str, list[float]]


def contributions(
    model: KBLRN,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
    relations: Iterable[str] | None = None,
    max_relations: int = 12,
    expert: str | None = None,
    progress: bool = False,
) -> Contributions:
    r"""Measures the contribution of the experts, relation by relation.

    An expert is left out of a model whose other weights stay the same. The result
    differs from training without it: during training, the others have learned to
    rely on it.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): The split whose :obj:`edge_label_index` is
            evaluated.
        filter_with (iterable, optional): See
            :meth:`~kblrn_pyg.evaluation.evaluate`. (default: :obj:`()`)
        relations (iterable, optional): The relations, by name.
            (default: :obj:`None`, all that are asked about)
        max_relations (int, optional): The maximum number of relations; the most
            frequent ones are chosen. (default: :obj:`12`)
        expert (str, optional): The name of an expert; relations for which its
            scores are always zero are left out. (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    if max_relations < 0:
        raise ValueError(f"'max_relations' must not be negative (got {max_relations})")
    data = kb_for(model, data)
    chosen = _most_frequent(model, data, relations, expert)[:max_relations]
    filters = list(filter_with)

    def mrr(one: KBLRN) -> list[float]:
        table = evaluate(one, data, filters, relations=chosen, progress=progress)
        return [table.metrics(table.relation == r).mrr for r in chosen]

    experts = _experts(model)
    lifts = [mean_lifts(model, data, relation) for relation in chosen]
    several = list(experts) if len(experts) > 1 else []
    return Contributions(
        chosen,
        [_num_asked(data, relation) for relation in chosen],
        {name: [one.speaks_of(r) for r in chosen] for name, one in experts.items()},
        {name: [lift[name] for lift in lifts] for name in experts},
        mrr(model),
        {name: mrr(model.without(name)) for name in several},
    )


def mean_lifts(model: KBLRN, data: HeteroData, relation: int) -> dict[str, float]:
    r"""Returns how much each expert lifts the true answers of a relation.

    With the scores :math:`s_e = \log f_{(r, e)}` of expert :math:`e`, this is
    the mean, over the triples :math:`\mathbf{T}_r` of a split and over both of
    the queries behind each, of what the true answer scores above the average
    of all entities :math:`\mathcal{E}`:

    .. math::
        \frac{1}{2 |\mathbf{T}_r|} \sum_{(h, r, t) \in \mathbf{T}_r}
        \Big( s_e(h, r, t) - \frac{1}{|\mathcal{E}|} \sum_{t' \in \mathcal{E}}
        s_e(h, r, t') \Big) + \Big( s_e(h, r, t) - \frac{1}{|\mathcal{E}|}
        \sum_{h' \in \mathcal{E}} s_e(h', r, t) \Big)

    Lifts add up like scores. An expert that lifts by :math:`x` makes the true
    answer :math:`e^x` times as probable, relative to the (geometric) average
    entity, as it would be without it.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The split whose :obj:`edge_label_index` is evaluated.
        relation (int): The relation.
    """
    relation = check_id(relation, "relation", len(data.edge_types))
    head, tail = data[data.edge_types[relation]].edge_label_index.to(device_of(model))
    experts = _experts(model)
    total = dict.fromkeys(experts, 0.0)
    with evaluating(model):
        for queries, answer in _chunks(model, head, relation, tail):
            for name, expert in experts.items():
                scores = expert.score_all(queries, model.num_nodes).double()
                own = scores.gather(1, answer[:, None])
                total[name] += float(own.sum() - scores.mean(dim=1).sum())
    return {name: lift / (2 * len(head)) for name, lift in total.items()}


def _chunks(
    model: KBLRN, head: Tensor, relation: int, tail: Tensor
) -> Iterator[tuple[Queries, Tensor]]:
    """Returns the queries of both sides, with their true answers."""
    rel_type = torch.full_like(head, relation)
    step = max(1, _MAX_SCORES // model.num_nodes)
    for side, answer in zip(SIDES, (head, tail)):
        queries = Queries.of_triples(head, rel_type, tail, side)
        for i in range(0, len(queries), step):
            yield queries[i : i + step], answer[i : i + step]


def _experts(model: KBLRN) -> dict[str, Any]:
    return dict(model.experts.items())


def _num_asked(data: HeteroData, relation: int) -> int:
    return data[data.edge_types[relation]].edge_label_index.size(1)


def _most_frequent(
    model: KBLRN,
    data: HeteroData,
    relations: Iterable[str] | None,
    expert: str | None,
) -> list[int]:
    """Returns the relations that are asked about, the most frequent first."""
    wanted = list(range(len(data.edge_types)))
    if relations is not None:
        names = Names("relation", relation_names(data))
        wanted = relation_ids(relations, names)
        for r in wanted:
            if not _num_asked(data, r):
                raise DataError(f"no triple of the split has the relation {names[r]!r}")
    if expert is not None:
        experts = _experts(model)
        if expert not in experts:
            raise DataError(
                f"the model has no expert {expert!r}, expected one of "
                f"{', '.join(experts)}"
            )
        wanted = [r for r in wanted if experts[expert].speaks_of(r)]
    asked = [r for r in wanted if _num_asked(data, r)]
    if not asked:
        which = "" if expert is None else f" that the {expert} expert speaks of"
        raise DataError(f"the split does not ask about any relation{which}")
    return sorted(asked, key=lambda r: -_num_asked(data, r))
