"""Metrics of ranks, and the area under a precision-recall curve."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kblrn_pyg.frames import html_table, to_frame


@dataclass(frozen=True)
class Metrics:
    r"""The metrics of the ranks :math:`\rho_1, \ldots, \rho_m` of true answers.

    All metrics are NaN if there are no ranks.

    Args:
        count (int): The number of ranks :math:`m`.
        mr (float): The mean rank.
        mrr (float): The mean reciprocal rank.
        hits_at_1 (float): The fraction of ranks that are at most 1.
        hits_at_3 (float): The fraction of ranks that are at most 3.
        hits_at_5 (float): The fraction of ranks that are at most 5.
        hits_at_10 (float): The fraction of ranks that are at most 10.
        amr (float): The adjusted mean rank: the mean rank divided by its
            expectation for candidates in random order, the mean of
            :math:`(n_i + 1) / 2` over the numbers of candidates :math:`n_i`. 1 is
            chance level, and values near 0 are perfect.
    """

    count: int
    mr: float
    mrr: float
    hits_at_1: float
    hits_at_3: float
    hits_at_5: float
    hits_at_10: float
    amr: float

    @classmethod
    def of(cls, rank: ArrayLike, num_candidates: ArrayLike) -> "Metrics":
        r"""Computes the metrics of ranks.

        Args:
            rank (array): The rank of each true answer.
            num_candidates (array): The number of candidates, including the
                true answer.
        """
        ranks = np.asarray(rank, np.float64)
        candidates = np.asarray(num_candidates, np.float64)
        if ranks.ndim != 1 or ranks.shape != candidates.shape:
            raise ValueError(
                f"'rank' and 'num_candidates' must be of one length "
                f"(got {ranks.shape} and {candidates.shape})"
            )
        if not (ranks >= 1).all():  # which NaN is not, either
            raise ValueError("'rank' must be at least 1")
        if not (candidates >= 1).all():
            raise ValueError("'num_candidates' must be at least 1")
        if len(ranks) == 0:
            return cls(0, *[math.nan] * 7)
        mean_rank = float(ranks.mean())
        return cls(
            count=len(ranks),
            mr=mean_rank,
            mrr=float((1 / ranks).mean()),
            hits_at_1=float((ranks <= 1).mean()),
            hits_at_3=float((ranks <= 3).mean()),
            hits_at_5=float((ranks <= 5).mean()),
            hits_at_10=float((ranks <= 10).mean()),
            amr=mean_rank / float(((candidates + 1) / 2).mean()),
        )

    def to_frame(self) -> Any:
        """Returns a :class:`pandas.DataFrame` with one row."""
        return to_frame({name: [value] for name, value in self.to_dict().items()})

    def _repr_html_(self) -> str:
        figures = self.to_dict()
        return html_table(list(figures), [list(figures.values())])

    def to_dict(self) -> dict[str, float | None]:
        r"""Returns the metrics by name, :obj:`None` in place of NaN.

        Example:
            >>> Metrics.of([1, 4], [9, 9]).to_dict()["hits@3"]
            0.5
        """
        return {
            name.replace("_at_", "@"): None if math.isnan(figure) else figure
            for name, figure in vars(self).items()
        }


def auc_pr(scores: ArrayLike, is_answer: ArrayLike) -> float:
    r"""Returns the area under the precision-recall curve as average precision.

    .. math::
        \sum_k (R_k - R_{k-1}) \, P_k

    with precision :math:`P_k` and recall :math:`R_k` of all items that score at
    least the :math:`k`-th largest distinct score. Items of equal score enter
    together, so their order does not matter.

    Args:
        scores (array): The score of each item.
        is_answer (array): Whether it is one of the answers.

    Example:
        >>> auc_pr([3, 2, 1], [True, False, True])
        0.8333333333333333
    """
    values, hit = np.asarray(scores, np.float64), truths(is_answer, "is_answer")
    if values.ndim != 1 or values.shape != hit.shape:
        raise ValueError(
            f"'scores' and 'is_answer' must be of one length "
            f"(got {values.shape} and {hit.shape})"
        )
    if np.isnan(values).any():
        raise ValueError("'scores' must be numbers (got NaN)")
    if not hit.any():
        raise ValueError("'is_answer' must hold at least one answer (got none)")
    order = np.argsort(-values)
    values, hit = values[order], hit[order]
    is_last = np.append(values[1:] != values[:-1], True)  # of its score
    num_taken = np.flatnonzero(is_last) + 1
    num_found = np.cumsum(hit)[is_last]
    new = np.diff(num_found, prepend=0)
    return float((new * (num_found / num_taken)).sum() / num_found[-1])


def truths(given: ArrayLike, name: str) -> NDArray[np.bool_]:
    r"""Returns what is true, and refuses numbers other than 0 and 1.

    Args:
        given (array): Whether each of some things is true.
        name (str): What errors call it.
    """
    array = np.asarray(given)
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise ValueError(f"'{name}' must be true or false")
    return array.astype(np.bool_)
