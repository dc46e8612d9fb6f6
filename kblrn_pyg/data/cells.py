"""Numbers and dates in the notations that people use in tables."""

import math

from kblrn_pyg.data.dates import decimal_year

# What tables have in place of a number that is not known, in lower case.
UNKNOWN = {
    *("", "nan", "na", "n/a", "#n/a", "<na>", "nat"),
    *("null", "none", "nil", "unknown", "?", "-"),
}


def is_number(text: str) -> bool:
    """Returns whether a text is a finite number."""
    try:
        # float() reads "1_000" as a number, people who export tables do not.
        return "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


def read_cell(text: str, decimal: str = ".") -> float | None:
    r"""Reads the number or the date of a cell.

    Args:
        text (str): The text of the cell. A date in the order year, month, day
            becomes a decimal year, see :meth:`decimal_year`.
        decimal (str, optional): The decimal point. (default: :obj:`"."`)

    Returns:
        The number, :obj:`nan` if it is unknown, and :obj:`None` for anything else,
        including infinite numbers.

    Example:
        >>> read_cell("1950"), read_cell("2026-07-02"), read_cell("NaN")
        (1950.0, 2026.5, nan)
        >>> read_cell("1,5", decimal=","), read_cell("tall")
        (1.5, None)
    """
    text = text.strip()
    number = text.replace(decimal, ".") if decimal != "." else text
    if is_number(number):
        return float(number)
    if text.lower() in UNKNOWN:
        return math.nan
    year = decimal_year(text)
    return None if math.isnan(year) else year
