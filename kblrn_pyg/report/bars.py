"""Bars to both sides of zero."""

from collections.abc import Iterable
from typing import NamedTuple

from kblrn_pyg.explain.text import signed
from kblrn_pyg.plotting.fitting import minus
from kblrn_pyg.report.html import Html, element


class Scale(NamedTuple):
    r"""What several bars share.

    Args:
        low (float): The value at the left, at most 0.
        high (float): The value at the right, at least 0.
    """

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Scale":
        """Makes room for all values."""
        known = [0.0, *values]
        return cls(min(known), max(known))

    def cell(self, value: float) -> Html:
        r"""Returns the cell of a number, with a bar.

        Args:
            value (float): The number.
        """
        left, width = self._part(min(value, 0) - self.low), self._part(abs(value))
        bar = element(
            "span",
            class_="minus" if value < 0 else "plus",
            style=f"left:{left};width:{width}",
        )
        zero = element("span", class_="zero", style=f"left:{self._part(-self.low)}")
        track = element("span", bar, zero, class_="bar", aria_hidden="true")
        text = element("span", minus(signed(value)), class_="number")
        return element("td", element("div", track, text), class_="drawn")

    def _part(self, length: float) -> str:
        return f"{100 * length / ((self.high - self.low) or 1.0):.1f}%"
