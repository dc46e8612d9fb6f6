"""Tests whether a model uses its numbers, by comparing ranks with controls."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kblrn_pyg.evaluation.metrics import Metrics
from kblrn_pyg.evaluation.ranks import RankTable

# How many standard errors a difference must have to be more than chance.
_SURE = 2.0


@dataclass(frozen=True)
class ControlResult:
    r"""The ranks of the same queries with true numbers, and with each control.

    Args:
        tables (dict): The ranks by control: :obj:`"true"`, :obj:`"permuted"`,
            :obj:`"random"`, :obj:`"known"` and, if the model has other experts,
            :obj:`"without"`.
    """

    tables: Mapping[str, RankTable]

    def __post_init__(self) -> None:
        ranked = {(*one.head.tolist(), *one.tail.tolist()) for one in self._tables()}
        if len(ranked) != 1:
            raise ValueError("'tables' must be about the same queries")

    def _tables(self) -> list[RankTable]:
        return list(self.tables.values())

    def metrics(self) -> dict[str, Metrics]:
        """Returns the metrics of each control."""
        return {name: table.metrics() for name, table in self.tables.items()}

    def difference(self, control: str) -> tuple[float, float]:
        r"""Returns by how much the MRR with true numbers is higher than with a
        control, and the standard error of this difference over the queries.

        Args:
            control (str): The control.
        """
        true, other = (1 / self.tables[name].rank for name in ("true", control))
        change = true - other
        return float(change.mean()), float(change.std() / np.sqrt(len(change)))

    def verdict(self) -> str:
        """States in one sentence whether the numbers are used."""
        base = "without" if "without" in self.tables else "known"
        gain, error = self.difference(base)
        names = {"without": "no numbers", "known": "numbers that are all equal"}
        if gain < -_SURE * error:
            return (
                f"The numbers do harm: with them, the MRR is {-gain:.4f} lower than "
                f"with {names[base]} (standard error {error:.4f})."
            )
        if gain <= _SURE * error:
            return (
                f"The numbers are not used: they change the MRR by {gain:+.4f} over "
                f"{names[base]}, which is within chance (standard error {error:.4f})."
            )
        fakes = ("permuted", "random")
        best = max(fakes, key=lambda one: self.tables[one].metrics().mrr)
        more, error_of_more = self.difference(best)
        if more <= _SURE * error_of_more:
            return (
                f"What the numbers are is not used: they add {gain:.4f} to the MRR of "
                f"{names[base]}, but {best} ones add {gain - more:.4f} (standard error "
                f"of the difference {error_of_more:.4f})."
            )
        return (
            f"The numbers are used: they add {gain:.4f} to the MRR of {names[base]}, "
            f"and {best} ones add {gain - more:.4f}."
        )
