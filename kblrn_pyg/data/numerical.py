"""The numerical attributes of a relation, and the spread of their differences."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from kblrn_pyg.data.ids import check_id
from kblrn_pyg.data.kb import flat_triples

# Where all training differences are equal, the width is this fraction of the
# attribute's own spread among the entities.
_FLOOR = 0.01


@dataclass(frozen=True)
class NumericalFeatures:
    r"""The numerical features of all relations.

    Features are ordered by relation; those of relation :obj:`r` are
    :obj:`ptr[r]:ptr[r + 1]`.

    Args:
        ptr (torch.Tensor): Where the features of each relation begin.
        attribute (torch.Tensor): The column of :obj:`x` of each feature.
        centre (torch.Tensor): The mean of head minus tail.
        width (torch.Tensor): The standard deviation of head minus tail.
        count (torch.Tensor): The number of training triples behind them.
    """

    ptr: Tensor
    attribute: Tensor
    centre: Tensor
    width: Tensor
    count: Tensor

    def check(self, num_relations: int, num_attributes: int) -> None:
        r"""Refuses features of another knowledge base, for example from a file.

        Args:
            num_relations (int): The number of relations.
            num_attributes (int): The number of attributes.
        """
        whole, real = (self.ptr, self.attribute), (self.centre, self.width)
        if any(t.dtype != torch.long or t.dim() != 1 for t in whole) or any(
            not t.is_floating_point() or t.shape != self.attribute.shape for t in real
        ):
            raise ValueError("'features' must be columns of ids and of numbers")
        steps, number = self.ptr.diff(), self.attribute.numel()
        if (
            self.ptr.numel() != num_relations + 1
            or (int(self.ptr[0]), int(self.ptr[-1])) != (0, number)
            or bool((steps < 0).any())
        ):
            raise ValueError(f"'features' must be of {num_relations} relations")
        if number and not 0 <= self.attribute.min() <= self.attribute.max() < (
            num_attributes
        ):
            raise ValueError(f"'features' must be of {num_attributes} attributes")

    def __len__(self) -> int:
        return self.attribute.numel()

    @property
    def relations(self) -> Tensor:
        """The relations that have at least one feature."""
        return torch.nonzero(self.ptr.diff()).flatten()

    def of(self, relation: int) -> slice:
        """Returns the positions of the features of a relation."""
        relation = check_id(relation, "relation", len(self.ptr) - 1)
        return slice(int(self.ptr[relation]), int(self.ptr[relation + 1]))


def numerical_features(data: HeteroData, threshold: float = 0.9) -> NumericalFeatures:
    r"""Chooses the numerical attributes of each relation, as the paper does.

    Attribute :math:`i` is a feature of relation :math:`r` if at least
    :math:`\tau = 90\,\%` of the training triples of :math:`r` have a value on
    both sides. Over the set :math:`\mathbf{T}` of those triples,

    .. math::
        c_i = \frac{1}{|\mathbf{T}|} \sum_{(h, r, t) \in \mathbf{T}}
        (n_h^{(i)} - n_t^{(i)}), \quad
        \sigma_i = \sqrt{\frac{1}{|\mathbf{T}|} \sum_{(h, r, t) \in \mathbf{T}}
        (n_h^{(i)} - n_t^{(i)} - c_i)^2}.

    Where all differences are equal, :math:`\sigma_i` is 1 % of the standard
    deviation of the attribute itself (or 1, if that is zero, too).

    Args:
        data (HeteroData): The knowledge base.
        threshold (float, optional): :math:`\tau`. (default: :obj:`0.9`)
    """
    if not 0 < threshold <= 1:
        raise ValueError(f"'threshold' must be in (0, 1] (got {threshold})")
    head_index, rel_type, tail_index = flat_triples(data)
    x = data["entity"].x.detach().double().numpy()
    floor, has_number = _FLOOR * _spread(x), ~np.isnan(x)
    bounds = torch.bincount(rel_type, minlength=len(data.edge_types)).cumsum(0)
    ptr, attributes, centres, widths, counts = [0], [], [], [], []
    begin = 0
    for end in bounds.tolist():
        head, tail = head_index[begin:end].numpy(), tail_index[begin:end].numpy()
        # Most attributes fail at once: count before taking any difference.
        known = has_number[head] & has_number[tail]
        count = known.sum(axis=0)
        # Integers, so that no rounding decides about exactly 90 %.
        enough = count >= np.ceil(round(threshold * (end - begin), 6))
        for attribute in np.flatnonzero(enough & (count > 0)).tolist():
            difference = x[head, attribute] - x[tail, attribute]
            difference = difference[known[:, attribute]]
            attributes.append(attribute)
            centres.append(difference.mean())
            width = difference.std()
            widths.append(
                width if width > 1e-9 * floor[attribute] else floor[attribute]
            )
            counts.append(len(difference))
        ptr.append(len(attributes))
        begin = end
    return NumericalFeatures(
        torch.tensor(ptr),
        torch.tensor(attributes, dtype=torch.long),
        torch.tensor(centres, dtype=torch.double),
        torch.tensor(widths, dtype=torch.double),
        torch.tensor(counts, dtype=torch.long),
    )


def differences(data: HeteroData, relation: int, attribute: int) -> Tensor:
    """Returns head minus tail for the training triples that have both numbers."""
    relation = check_id(relation, "relation", len(data.edge_types))
    x = data["entity"].x
    values = x[:, check_id(attribute, "attribute", x.size(1))]
    head, tail = data[data.edge_types[relation]].edge_index
    difference = values[head] - values[tail]
    return difference[~difference.isnan()]


def _spread(x: np.ndarray) -> np.ndarray:
    known = ~np.isnan(x)
    count = np.maximum(known.sum(axis=0), 1)
    values = np.where(known, x, 0)
    mean = values.sum(axis=0) / count
    # In place, as there may be many numbers.
    np.subtract(values, mean, out=values)
    values *= known
    np.square(values, out=values)
    spread = np.sqrt(values.sum(axis=0) / count)
    return np.where(spread > 0, spread, 1 / _FLOOR)
