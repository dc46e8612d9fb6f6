"""Bars to both sides of zero."""

from collections.abc import Iterable
from typing import NamedTuple

from kblrn_pyg.data.words import minus, signed
from kblrn_pyg.report.html import Html, element


class Scale(NamedTuple):
    r"""The range that several bars share.

    Args:
        low (float): The value at the left, at most 0.
        high (float): The value at the right, at least 0.
    """

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Scale":
        """Covers all values."""
        known = [0.0, *values]
        return cls(min(known), max(known))

    def cell(self, value: float) -> Html:
        r"""Returns the cell of a number, with a bar.

        Args:
            value (float): The number.
        """
        left, width = self._percent(min(value, 0) - self.low), self._percent(abs(value))
        bar = element(
            "span",
            class_="minus" if value < 0 else "plus",
            style=f"left:{left};width:{width}",
        )
        zero = element("span", class_="zero", style=f"left:{self._percent(-self.low)}")
        track = element("span", bar, zero, class_="bar", aria_hidden="true")
        text = element("span", minus(signed(value)), class_="number")
        return element("td", element("div", track, text), class_="drawn")

    def _percent(self, length: float) -> str:
        return f"{100 * length / ((self.high - self.low) or 1.0):.1f}%"
