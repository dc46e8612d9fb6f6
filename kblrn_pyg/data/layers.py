"""The number comparisons that a relation uses, and the knots of their layers."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.derived import derived_attributes
from kblrn_pyg.data.ids import check_id
from kblrn_pyg.data.kb import flat_triples
from kblrn_pyg.data.pairs import (
    Floats,
    PairAttribute,
    compare_rows,
    plain_attributes,
)

logger = logging.getLogger(__name__)

# The most knots at quantiles of training triples, and of arbitrary pairs.
_TRUE_KNOTS, _OTHER_KNOTS = 33, 17
# The number of training triples that justifies another knot of either kind.
_TRIPLES_PER_KNOT = 10
# The least number of training triples that a layer can learn from.
_LEAST_TRIPLES = 5
# The least number of entities that must have an attribute.
_LEAST_ENTITIES = 5
# A value that this fraction of training triples has gets knots of its own.
_FREQUENT = 0.1
# How many entities arbitrary pairs are made of.
_SOME = 200


@dataclass(frozen=True)
class LayerFeatures:
    r"""The layers of all relations: their comparisons and their knots.

    Layers are ordered by relation; those of relation :obj:`r` are
    :obj:`ptr[r]:ptr[r + 1]`, and the knots of layer :obj:`i` are
    :obj:`knot[knot_ptr[i]:knot_ptr[i + 1]]`.

    Args:
        ptr (torch.Tensor): Where the layers of each relation begin.
        pair (torch.Tensor): The position of each layer's attribute in
            :obj:`attributes`.
        knot_ptr (torch.Tensor): Where the knots of each layer begin.
        knot (torch.Tensor): The knots, ascending.
        usual (torch.Tensor): The 10 % and the 90 % quantile of the training
            triples.
        count (torch.Tensor): The number of training triples with both numbers.
        attributes (sequence): The compared attributes.
        arbitrary (torch.Tensor, optional): The fraction of arbitrary pairs of
            entities at each knot; a pair between two knots counts for both.
            (default: :obj:`None`, unknown, as in older files)
    """

    ptr: Tensor
    pair: Tensor
    knot_ptr: Tensor
    knot: Tensor
    usual: Tensor
    count: Tensor
    attributes: Sequence[PairAttribute]
    arbitrary: Tensor | None = None

    def __len__(self) -> int:
        return self.pair.numel()

    @property
    def relations(self) -> Tensor:
        """The relations that have at least one layer."""
        return torch.nonzero(self.ptr.diff()).flatten()

    def of(self, relation: int) -> slice:
        """Returns the positions of the layers of a relation."""
        relation = check_id(relation, "relation", len(self.ptr) - 1)
        return slice(int(self.ptr[relation]), int(self.ptr[relation + 1]))


def layer_features(
    data: HeteroData,
    threshold: float = 0.9,
    attributes: Sequence[PairAttribute] | None = None,
) -> LayerFeatures:
    r"""Chooses the comparisons of each relation's layers, and their knots.

    A relation has a layer for an attribute if at least the fraction
    :obj:`threshold` of its training triples, and at least five of them, have both
    numbers. Knots are at quantiles of these triples, and of arbitrary pairs of
    entities, so they are dense where values are informative, and outliers only
    affect the outermost knots.

    Args:
        data (HeteroData): The knowledge base.
        threshold (float, optional): The minimum fraction of a relation's training
            triples with both numbers. (default: :obj:`0.9`)
        attributes (sequence, optional): The :class:`PairAttribute` objects to
            choose from. (default: :obj:`None`, those of :meth:`pair_attributes`)
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"'threshold' must be in (0, 1] (got {threshold})")
    if attributes is None:
        attributes = pair_attributes(data)
        for name, reason in left_out(data).items():
            logger.info("the attribute %s is left out: %s", name, reason)
    x = data["entity"].x.detach().double().numpy()
    for one in attributes:
        for column in (one.a, one.b):
            check_id(column, "attribute", x.shape[1])
    sides = [_Sides.of(one, x) for one in attributes]
    known = [
        np.stack([~np.isnan(side[0]) for side in rows], axis=1)
        for rows in ([s.head for s in sides], [s.tail for s in sides])
        if rows
    ]
    found = _Found()
    head_index, rel_type, tail_index = flat_triples(data)
    begin = 0
    for end in torch.bincount(rel_type, minlength=len(data.edge_types)).cumsum(0):
        head, tail = (i[begin:end].numpy() for i in (head_index, tail_index))
        if sides:
            found.add(sides, (head, tail), known[0][head] & known[1][tail], threshold)
        found.ptr.append(len(found.pair))
        begin = int(end)
    return found.features(attributes)


def compared_triples(
    data: HeteroData, relation: int, attribute: PairAttribute
) -> Floats:
    r"""Returns the comparisons of numbers in the training triples that have both.

    Args:
        data (HeteroData): The knowledge base.
        relation (int): The relation.
        attribute (PairAttribute): The comparison.
    """
    x = data["entity"].x.detach().double().numpy()
    head, tail = data[data.edge_types[relation]].edge_index.numpy()
    rows = attribute.side(x[head], is_tail=False), attribute.side(x[tail], is_tail=True)
    compared = compare_rows(*rows)
    return compared[~np.isnan(compared)]


def pair_attributes(data: HeteroData) -> list[PairAttribute]:
    r"""Returns the comparisons for layers: the difference of each informative
    attribute, the difference of logarithms if it has heavy tails, and the
    declarations of :meth:`derive`.

    Args:
        data (HeteroData): The knowledge base.
    """
    x = data["entity"].x.detach().double().numpy()
    plain = plain_attributes(x, data.attribute_names)
    useless = left_out(data)
    plain = [one for one in plain if one.name not in useless]
    return plain + derived_attributes(data)


def left_out(data: HeteroData) -> dict[str, str]:
    r"""Returns the attributes that cannot distinguish entities, with the reason.

    Args:
        data (HeteroData): The knowledge base.
    """
    found = {}
    for name, column in zip(data.attribute_names, data["entity"].x.detach().t()):
        values = column[~column.isnan()]
        if len(values) < _LEAST_ENTITIES:
            found[name] = f"fewer than {_LEAST_ENTITIES} entities have it"
        elif (values == values[0]).all():
            found[name] = f"it is {float(values[0]):g} wherever it is known"
    return found


@dataclass(frozen=True)
class _Sides:
    """The compared values of heads and of tails, and the entities that have
    them."""

    head: Floats
    tail: Floats
    heads: np.ndarray
    tails: np.ndarray

    @classmethod
    def of(cls, attribute: PairAttribute, x: Floats) -> "_Sides":
        rows = [attribute.side(x, is_tail) for is_tail in (False, True)]
        known = [np.flatnonzero(~np.isnan(one[0])) for one in rows]
        return cls(rows[0], rows[1], known[0], known[1])

    def compared(self, head: np.ndarray, tail: np.ndarray) -> Floats:
        return compare_rows(self.head[:, head], self.tail[:, tail])

    def arbitrary(self, head: np.ndarray, tail: np.ndarray) -> Floats:
        """Compares heads of triples with any tail, and any head with their tails."""
        pairs = (
            np.meshgrid(_some(one), _some(other))
            for one, other in ((head, self.tails), (self.heads, tail))
        )
        found = [self.compared(one.ravel(), other.ravel()) for one, other in pairs]
        return np.concatenate(found)


class _Found:
    """Collects the layers, relation by relation."""

    def __init__(self) -> None:
        self.ptr, self.pair, self.count = [0], [], []  # type: ignore[var-annotated]
        self.knots: list[Floats] = []
        self.arbitrary: list[Floats] = []
        self.usual: list[Floats] = []

    def add(
        self,
        sides: list[_Sides],
        triples: tuple[np.ndarray, np.ndarray],
        known: np.ndarray,
        threshold: float,
    ) -> None:
        """Adds the layers of a relation; ``known`` has a column for each attribute."""
        count = known.sum(axis=0)
        # Integers, so that no rounding decides about exactly 90 %.
        least = max(np.ceil(round(threshold * len(known), 6)), _LEAST_TRIPLES)
        for p in np.flatnonzero(count >= least).tolist():
            head, tail = (index[known[:, p]] for index in triples)
            true = sides[p].compared(head, tail)
            arbitrary = sides[p].arbitrary(head, tail)
            knots = find_knots(true, arbitrary)
            self.pair.append(p)
            self.count.append(len(true))
            self.knots.append(knots)
            self.arbitrary.append(fraction_at(knots, arbitrary))
            self.usual.append(np.quantile(true, [0.1, 0.9]))

    def features(self, attributes: Sequence[PairAttribute]) -> LayerFeatures:
        """Returns them with those attributes that are used."""
        used, pair = np.unique(np.array(self.pair, dtype=np.int64), return_inverse=True)
        sizes = [len(one) for one in self.knots]
        return LayerFeatures(
            torch.tensor(self.ptr),
            torch.from_numpy(pair.astype(np.int64)),
            torch.tensor([0, *np.cumsum(sizes).tolist()]),
            torch.from_numpy(np.concatenate([np.empty(0), *self.knots])),
            torch.from_numpy(np.array(self.usual).reshape(-1, 2)),
            torch.tensor(self.count, dtype=torch.long),
            [attributes[i] for i in used.tolist()],
            torch.from_numpy(np.concatenate([np.empty(0), *self.arbitrary])),
        )


def find_knots(true: Floats, arbitrary: Floats) -> Floats:
    r"""Returns the knots of a layer: at quantiles, and around frequent values.

    Args:
        true (numpy.ndarray): The values of training triples.
        arbitrary (numpy.ndarray): The values of arbitrary pairs.
    """
    found = []
    for values, most in ((true, _TRUE_KNOTS), (arbitrary, _OTHER_KNOTS)):
        number = int(np.clip(len(true) // _TRIPLES_PER_KNOT, 2, most - 1)) + 1
        found.append(np.quantile(values, np.linspace(0, 1, number)))
    values, count = np.unique(true, return_counts=True)
    frequent = values[count >= max(_FREQUENT * len(true), 3)]
    distinct = np.unique(np.concatenate([true, arbitrary])) if len(frequent) else values
    for place in np.searchsorted(distinct, frequent).tolist():
        around = distinct[max(place - 1, 0) : place + 2]
        middle = distinct[place]
        apart = np.abs(around[around != middle] - middle)
        if len(apart):  # as narrow as needed to leave the neighbours alone
            found.append(middle + apart.min() / 2 * np.arange(-1, 2))
    knots = np.unique(np.concatenate(found))
    # Knots that differ by rounding only are one. Outliers must not decide about that.
    low, high = np.quantile(arbitrary, [0.25, 0.75])
    return knots[np.diff(knots, prepend=-np.inf) > 1e-9 * (high - low)]


def fraction_at(knots: Floats, values: Floats) -> Floats:
    r"""Returns the fraction of values at each knot, so that the mean of a piecewise
    linear function is the sum of its values at knots times these fractions.

    Args:
        knots (numpy.ndarray): The knots, ascending.
        values (numpy.ndarray): The values; those outside count for the outermost
            knot.

    Example:
        >>> fraction_at(np.array([0.0, 1.0]), np.array([0.25, 7.0]))
        array([0.375, 0.625])
    """
    place = np.interp(values, knots, np.arange(len(knots)))
    low = place.astype(np.int64)
    part = place - low
    high = np.minimum(low + 1, len(knots) - 1)
    found = np.bincount(low, weights=1 - part, minlength=len(knots))
    found += np.bincount(high, weights=part, minlength=len(knots))
    return found / len(values)


def _some(entities: np.ndarray) -> np.ndarray:
    """Picks entities evenly and deterministically."""
    number = min(len(entities), _SOME)
    return entities[np.linspace(0, len(entities) - 1, number).astype(np.int64)]
