"""What histograms of numerical differences show, before they are drawn."""

from collections.abc import Sequence
from typing import NamedTuple

from torch_geometric.data import HeteroData

from kblrn_pyg.data import (
    DataError,
    NumericalFeatures,
    Vocabulary,
    numerical_features,
)
from kblrn_pyg.data.names import shorten
from kblrn_pyg.nn import KBLRN, NumericalExpert
from kblrn_pyg.nn.settings import ModelSettings

_MAX_LISTED = 12


class Panel(NamedTuple):
    r"""One numerical feature of a relation.

    Args:
        relation (int): The relation.
        attribute (int): The column of :obj:`x`.
        centre (float): The mean of head minus tail over the training triples.
        width (float): The standard deviation of it.
        weight (float, optional): The learned weight, if there is a model.
            (default: :obj:`None`)
        learned (tuple, optional): The learned centre and width, if they were
            learned. (default: :obj:`None`)
        has_rbf (bool, optional): Whether the activation is a radial basis
            function, not the sign. (default: :obj:`True`)
    """

    relation: int
    attribute: int
    centre: float
    width: float
    weight: float | None = None
    learned: tuple[float, float] | None = None
    has_rbf: bool = True


def difference_panels(
    data: HeteroData,
    relations: Sequence[str],
    threshold: float | None = None,
    model: KBLRN | None = None,
) -> list[Panel]:
    r"""Returns the numerical features of relations, with what a model learned.

    Args:
        data (HeteroData): The knowledge base.
        relations (sequence): The relations, by name.
        threshold (float, optional): The fraction of a relation's training
            triples that must have both numbers. (default: :obj:`None`, that of
            the model, or else 0.9)
        model (KBLRN, optional): A model of the knowledge base.
            (default: :obj:`None`)
    """
    names = Vocabulary.of(data)
    if threshold is None:
        known = None if model is None else model.settings
        threshold = ModelSettings.threshold if known is None else known.threshold
    features = numerical_features(data, threshold)
    expert = None if model is None else _expert(model, features)
    panels = []
    for relation in relations:
        r = names.relations.resolve(relation)
        places = range(*features.of(r).indices(len(features)))
        if not places:
            _refuse_without_features(names, features, r)
        panels += [_panel(features, expert, r, i) for i in places]
    return panels


def _expert(model: KBLRN, features: NumericalFeatures) -> NumericalExpert:
    experts = model.experts.values()
    found = [expert for expert in experts if isinstance(expert, NumericalExpert)]
    if not found:
        raise DataError(
            f"the model has no numerical expert, its experts are {model.instance!r}"
        )
    if not found[0].attribute.cpu().equal(features.attribute):
        raise DataError("the model has other numerical features than the data")
    return found[0]


def _panel(
    features: NumericalFeatures, expert: NumericalExpert | None, relation: int, i: int
) -> Panel:
    known = Panel(
        relation,
        int(features.attribute[i]),
        float(features.centre[i]),
        float(features.width[i]),
    )
    if expert is None:
        return known
    learned = None
    if expert.learn_rbf:
        learned = expert.centre[i].item(), expert.log_width[i].exp().item()
    return known._replace(
        weight=expert.weight[i].item(),
        learned=learned,
        has_rbf=expert.activation == "rbf",
    )


def _refuse_without_features(
    names: Vocabulary, features: NumericalFeatures, relation: int
) -> None:
    short = shorten(names.relations.identifiers)
    having = [short[r] for r in features.relations.tolist()]
    listed = ", ".join(having[:_MAX_LISTED])
    if len(having) > _MAX_LISTED:
        listed += f" and {len(having) - _MAX_LISTED} more"
    raise DataError(
        f"relation {names.relations[relation]!r} has no numerical features; "
        f"these have: {listed or 'none'}"
    )
