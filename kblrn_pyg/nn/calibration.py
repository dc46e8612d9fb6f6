"""Probabilities that triples are true, from their scores."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kblrn_pyg.data.ids import check_ids

# Where false triples take the entity that replaces one of a true triple.
NEGATIVES = ("observed", "all")


@dataclass(frozen=True, eq=False)
class Calibration:
    r"""Turns scores into probabilities, relation by relation:

    .. math::
        p(h, r, t \textrm{ is true}) = \sigma(a_r \, s(h, r, t) + b_r)

    :meth:`~kblrn_pyg.evaluation.calibrate` fits these numbers. They assume that a
    known fraction of triples is true: there are :obj:`ratio` false ones for each
    true one.

    Args:
        slope (torch.Tensor): The slope :math:`a_r`, which is not negative.
        intercept (torch.Tensor): The intercept :math:`b_r`.
        count (torch.Tensor): The number of true triples that a relation was fitted
            on, 0 if it uses the fit of all relations together.
        ratio (float): The number of false triples for each true one.
        negatives (str): The kind of false triples: :obj:`"observed"` or
            :obj:`"all"`, see :meth:`~kblrn_pyg.evaluation.calibrate`.
    """

    slope: Tensor
    intercept: Tensor
    count: Tensor
    ratio: float = 1.0
    negatives: str = "observed"

    def __post_init__(self) -> None:
        for name in ("slope", "intercept", "count"):
            column = getattr(self, name)
            if not isinstance(column, Tensor) or column.shape != self.slope.shape:
                raise ValueError(f"'{name}' must be a column with a row a relation")
        numbers = torch.stack([self.slope.double(), self.intercept.double()])
        if numbers.dim() != 2 or not bool(numbers.isfinite().all()):
            raise ValueError("'slope' and 'intercept' must be finite numbers")
        if bool((self.slope < 0).any()):
            raise ValueError("'slope' must not be negative")
        if not (isinstance(self.ratio, int | float) and 0 < self.ratio < math.inf):
            raise ValueError(f"'ratio' must be positive (got {self.ratio})")
        if self.negatives not in NEGATIVES:
            names = ", ".join(NEGATIVES)
            raise ValueError(
                f"'negatives' must be one of {names} (got {self.negatives!r})"
            )

    def __len__(self) -> int:
        return len(self.slope)

    @property
    def num_own(self) -> int:
        """The number of relations with their own slope and intercept."""
        return int((self.count > 0).sum())

    def probability(self, scores: Tensor, rel_type: Tensor) -> Tensor:
        r"""Returns the probability that triples are true.

        Args:
            scores (torch.Tensor): The score of each triple.
            rel_type (torch.Tensor): The relation of each triple.
        """
        if rel_type.shape != scores.shape:
            raise ValueError(
                f"'rel_type' must have a relation for each score, {list(scores.shape)} "
                f"(got {list(rel_type.shape)})"
            )
        check_ids({"relations": (rel_type, len(self))}, num_dims=rel_type.dim())
        rel_type = rel_type.to(self.slope.device)
        values = scores.detach().to(self.slope)
        return torch.sigmoid(self.slope[rel_type] * values + self.intercept[rel_type])

    def to_dict(self) -> dict[str, Any]:
        """Returns tensors and plain values."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, content: dict[str, Any], num_relations: int) -> "Calibration":
        r"""Reverses :meth:`to_dict`.

        Args:
            content (dict): What it returned.
            num_relations (int): The number of relations that it must be of.
        """
        made = cls(**content)
        if len(made) != num_relations:
            raise ValueError(
                "the calibration must have a row for each relation, "
                f"{num_relations} (got {len(made)})"
            )
        return made
