"""How much each expert of a model contributes to its answers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError, Vocabulary
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import KBLRN, LatentExpert, NumericalExpert, RelationalExpert

EXPERTS = ("latent", "relational", "numerical")

# How many scores are held at once.
_MAX_SCORES = 1 << 24


@dataclass(frozen=True)
class Contributions:
    r"""What each expert contributes to the answers of some relations.

    Args:
        relations (list): The relations, the most frequent first.
        counts (list): How many triples of each were asked about.
        has_numbers (list): Whether each has numerical features in the model.
        lifts (dict): By the name of each expert of the model, how much it
            lifts the true answers of each relation; see :meth:`mean_lifts`.
        mrr (list): The mean reciprocal rank of each relation.
        mrr_without (list, optional): The same with the numerical expert
            switched off; :obj:`None` if there is none, or no other.
    """

    relations: list[int]
    counts: list[int]
    has_numbers: list[bool]
    lifts: dict[str, list[float]]
    mrr: list[float]
    mrr_without: list[float] | None


def contributions(
    model: KBLRN,
    data: HeteroData,
    filter_with: Iterable[HeteroData] = (),
    relations: Iterable[str] | None = None,
    max_relations: int = 12,
    only_numerical: bool = False,
    progress: bool = False,
) -> Contributions:
    r"""Measures what the experts contribute, relation by relation.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The split whose :obj:`edge_label_index` is asked
            about.
        filter_with (iterable, optional): See
            :meth:`~kblrn_pyg.evaluation.evaluate`. (default: :obj:`()`)
        relations (iterable, optional): The relations, by name.
            (default: :obj:`None`, all that are asked about)
        max_relations (int, optional): How many of them at most, the most
            frequent ones. (default: :obj:`12`)
        only_numerical (bool, optional): If set to :obj:`True`, relations
            without numerical features are left out. (default: :obj:`False`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    num_features = [0] * model.num_relations
    if model.numerical is not None:
        num_features = model.numerical.ptr.diff().tolist()
    chosen = _most_frequent(
        data, relations, max_relations, num_features if only_numerical else None
    )
    filters = list(filter_with)
    mrr = _mrr(model, data, filters, list(chosen), progress)
    mrr_without = None
    if model.numerical is not None and model.experts != "n":
        reduced = without_numerical(model)
        mrr_without = _mrr(reduced, data, filters, list(chosen), progress)
    lifts = [mean_lifts(model, data, relation) for relation in chosen]
    return Contributions(
        list(chosen),
        list(chosen.values()),
        [num_features[relation] > 0 for relation in chosen],
        {name: [lift[name] for lift in lifts] for name in lifts[0]},
        mrr,
        mrr_without,
    )


def without_numerical(model: KBLRN) -> KBLRN:
    r"""Returns a model of the other experts, with the very same weights.

    It is not what training without numbers would have given: the others have
    learned to leave to the numerical expert what it knows.

    Args:
        model (KBLRN): The model.
    """
    sizes = model.num_nodes, model.num_relations
    return KBLRN(*sizes, latent=model.latent, relational=model.relational)


@torch.no_grad()
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

    Scores add up, and so do lifts. An expert that lifts by :math:`x` makes the
    true answer :math:`e^x` times as probable beside the (geometric) average
    entity as it would be without it.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The split whose :obj:`edge_label_index` is asked
            about.
        relation (int): The relation.
    """
    head, tail = data[data.edge_types[relation]].edge_label_index
    was_training = model.training
    model.train(False)  # without dropout
    lifts = {}
    for name in EXPERTS:
        expert = getattr(model, name)
        if expert is not None:
            scorer = _OneRelation(expert, relation, model.num_nodes)
            both = scorer.lift(head, tail, False), scorer.lift(tail, head, True)
            lifts[name] = sum(both) / 2
    model.train(was_training)
    return lifts


class _OneRelation(NamedTuple):
    """An expert that is asked about one relation."""

    expert: LatentExpert | RelationalExpert | NumericalExpert
    relation: int
    num_nodes: int

    def lift(self, given: Tensor, answer: Tensor, asks_heads: bool) -> float:
        """The mean of what true answers score above the average entity."""
        total = 0.0
        step = max(1, _MAX_SCORES // self.num_nodes)
        for known, true in zip(given.split(step), answer.split(step)):
            scores = self.scores(known, asks_heads).double()
            own = scores.gather(1, true[:, None])
            total += float(own.sum() - scores.mean(dim=1).sum())
        return total / len(given)

    def scores(self, given: Tensor, asks_heads: bool) -> Tensor:
        rel_type = torch.full_like(given, self.relation)
        if asks_heads:
            return self.expert.score_heads(rel_type, given)
        return self.expert.score_tails(given, rel_type)


def _most_frequent(
    data: HeteroData,
    relations: Iterable[str] | None,
    most: int,
    num_features: list[int] | None,
) -> dict[int, int]:
    """The relations that are asked about most often, with how often."""
    counts = [data[kind].edge_label_index.size(1) for kind in data.edge_types]
    wanted = list(range(len(counts)))
    if relations is not None:
        names = Vocabulary.of(data).relations
        wanted = list(dict.fromkeys(names.resolve(relation) for relation in relations))
        for r in wanted:
            if not counts[r]:
                raise DataError(f"no triple of the split has the relation {names[r]!r}")
    if num_features is not None:
        wanted = [r for r in wanted if num_features[r]]
    order = sorted(wanted, key=lambda r: -counts[r])
    chosen = {r: counts[r] for r in order[:most] if counts[r]}
    if not chosen:
        what = "" if num_features is None else " that have numerical features"
        raise DataError(f"the split asks about no triples{what}")
    return chosen


def _mrr(
    model: KBLRN,
    data: HeteroData,
    filter_with: list[HeteroData],
    relations: list[int],
    progress: bool,
) -> list[float]:
    table = evaluate(model, data, filter_with, relations=relations, progress=progress)
    return [table.metrics(table.relation == r).mrr for r in relations]
