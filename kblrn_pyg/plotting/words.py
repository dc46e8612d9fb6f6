"""Names and numbers as figures show them."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from kblrn_pyg.data.names import shorten

# Words that tell dates from other numbers.
_YEARS = {"year", "date", "founded", "established", "opened", "start", "end"}
# Other numbers are no years, whatever they are called.
_FIRST_YEAR, _LAST_YEAR = 500, 3000
# Beyond these a number is written with an exponent.
_TINY, _HUGE = 1e-4, 1e9


def short_names(names: Sequence[str]) -> list[str]:
    r"""Shortens names such that they still differ.

    Each becomes its shortest ending that no other name shares, and of a long
    ending only the first and the last segment stay, or the last two, if the
    last says nothing new.

    Args:
        names (sequence): The names.

    Example:
        >>> short_names(["/soccer/roster./sports/place", "/rugby/roster./sports/place"])
        ['soccer…place', 'rugby…place']
        >>> short_names(["/actor/film./film/role/film", "/kind./film/role/film"])
        ['film…role/film', 'kind…film']
    """
    full = shorten(names)
    cut = [_first_and_last(name) for name in full]
    owners = Counter(cut)
    return [short if owners[short] == 1 else name for short, name in zip(cut, full)]


def in_words(name: str) -> str:
    r"""Returns a name as people write it.

    Args:
        name (str): The name, short already.

    Example:
        >>> in_words("team…place_of_birth")
        'team … place of birth'
    """
    return name.replace("_", " ").replace("…", " … ")


def number_text(value: float, scale: float | None = None) -> str:
    r"""Writes a number with as many digits as matter.

    Args:
        value (float): The number.
        scale (float, optional): What three digits are kept of.
            (default: :obj:`None`, the number itself)

    Example:
        >>> number_text(-0.0004, scale=9.5), number_text(1234567.8)
        ('0.00', '1,234,568')
        >>> number_text(5.97e24), number_text(-2e-9)
        ('5.97e+24', '−2e−09')
    """
    size = abs(value if scale is None else scale)
    if size >= _HUGE or 0 < size < _TINY:
        return f"{value:.3g}".replace("-", "−")
    digits = 2 - math.floor(math.log10(size)) if size > 0 else 0
    digits = min(max(digits, 0), 6)
    text = f"{round(value, digits) + 0.0:,.{digits}f}"  # adding 0 avoids '-0'
    return text.replace("-", "−")


def value_text(attribute: str, value: float) -> str:
    r"""Writes the number of an entity; dates become years.

    Args:
        attribute (str): The name of its attribute.
        value (float): The number.

    Example:
        >>> value_text("date_of_birth", 1961.6), value_text("latitude", 21.25)
        ('1961', '21.25')
        >>> value_text("growth_per_year", 0.02)
        '0.02'
    """
    words = re.split(r"[^a-z]+", attribute.lower())
    if not _YEARS.isdisjoint(words) and _FIRST_YEAR <= value < _LAST_YEAR:
        text = str(math.floor(value))
    else:
        has_digits = 1000 <= abs(value) < _HUGE
        text = f"{value:,.0f}" if has_digits else f"{value:.4g}"
    return text.replace("-", "−")


def _first_and_last(name: str) -> str:
    segments = [segment for segment in name.split("/") if segment]
    if len(segments) <= 2:
        return name
    first, last = segments[0].rstrip("."), segments[-1]
    if first == last:
        last = "/".join(segments[-2:])
    return f"{first}…{last}"
