"""The reliability of probabilities: reliability diagrams and calibration errors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kblrn_pyg.evaluation.metrics import truths
from kblrn_pyg.table import format_table


@dataclass(frozen=True, eq=False)
class Reliability:
    r"""The fraction of true triples by predicted probability.

    Probabilities are grouped into bins of equal width.

    Args:
        edges (numpy.ndarray): The bounds of the bins.
        count (numpy.ndarray): The number of triples in each bin.
        confidence (numpy.ndarray): Their mean probability, NaN in an empty bin.
        accuracy (numpy.ndarray): The fraction of them that is true.
    """

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]

    @classmethod
    def of(
        cls, probability: ArrayLike, is_true: ArrayLike, num_bins: int = 15
    ) -> "Reliability":
        r"""Compares probabilities with the truth.

        Args:
            probability (array): The probability of each triple.
            is_true (array): Whether it is true.
            num_bins (int, optional): The number of bins. (default: :obj:`15`)

        Example:
            >>> found = Reliability.of([0.9, 0.8, 0.1], [True, False, False], 2)
            >>> round(found.error, 4)
            0.2667
        """
        values = np.asarray(probability, np.float64)
        truth = truths(is_true, "is_true")
        if values.ndim != 1 or values.shape != truth.shape or len(values) == 0:
            raise ValueError(
                "'probability' and 'is_true' must be columns of one length, and not "
                f"empty (got {values.shape} and {truth.shape})"
            )
        if not ((values >= 0) & (values <= 1)).all():
            raise ValueError("'probability' must lie in 0 to 1")
        if num_bins < 1:
            raise ValueError(f"'num_bins' must be positive (got {num_bins})")
        place = np.minimum((values * num_bins).astype(np.int64), num_bins - 1)
        count = np.bincount(place, minlength=num_bins)
        sums = (np.bincount(place, one, num_bins) for one in (values, truth))
        confidence, accuracy = (
            np.divide(one, count, out=np.full(num_bins, np.nan), where=count > 0)
            for one in sums
        )
        edges = np.linspace(0, 1, num_bins + 1)
        return cls(edges, count, confidence, accuracy)

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of probability and
        truth, over all triples."""
        some = self.count > 0
        gap = np.abs(self.confidence[some] - self.accuracy[some])
        return float((gap * self.count[some]).sum() / self.count.sum())

    def __str__(self) -> str:
        rows = [
            [f"{low:.2f} to {high:.2f}", int(count), f"{mean:.3f}", f"{true:.3f}"]
            for low, high, count, mean, true in zip(
                *(self.edges[:-1], self.edges[1:], self.count),
                *(self.confidence, self.accuracy),
            )
            if count
        ]
        return format_table(["bin", "triples", "probability", "true"], rows)
