"""Readable forms of names and numbers for texts and figures."""

import math
import re
from collections import Counter
from collections.abc import Sequence

from kblrn_pyg.data.names import shorten

# Words that tell dates from other numbers.
_YEARS = {"year", "date", "founded", "established", "opened", "start", "end"}
# Numbers outside are not years, whatever they are called.
_FIRST_YEAR, _LAST_YEAR = 500, 3000
# Numbers outside are written with an exponent.
_TINY, _HUGE = 1e-4, 1e9


def short_names(names: Sequence[str]) -> list[str]:
    r"""Shortens names such that they stay distinct.

    Each name becomes its shortest unique ending. Of a long ending, only the first
    and the last segment are kept, or the last two, if the last one equals the
    first.

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
    r"""Writes a name with spaces instead of underscores.

    Example:
        >>> in_words("team…place_of_birth")
        'team … place of birth'
    """
    return name.replace("_", " ").replace("…", " … ")


def number_text(value: float, scale: float | None = None) -> str:
    r"""Writes a number with three significant digits, or all digits before the
    decimal point.

    Args:
        value (float): The number.
        scale (float, optional): The number whose three digits set the last
            digit to keep. (default: :obj:`None`, :obj:`value`)

    Example:
        >>> number_text(-0.0004, scale=9.5), number_text(1234567.8)
        ('0.00', '1,234,568')
        >>> number_text(5.97e24), number_text(-2e-9)
        ('5.97e+24', '−2e−09')
    """
    size = abs(value if scale is None else scale)
    if size >= _HUGE or 0 < size < _TINY:
        return minus(f"{value:.3g}")
    digits = 2 - math.floor(math.log10(size)) if size > 0 else 0
    digits = min(max(digits, 0), 6)
    return minus(f"{round(value, digits) + 0.0:,.{digits}f}")  # + 0.0: no '-0'


def value_text(attribute: str, value: float) -> str:
    r"""Writes the value of an attribute; dates become years.

    Example:
        >>> value_text("date_of_birth", 1961.6), value_text("latitude", 21.25)
        ('1961', '21.25')
        >>> value_text("growth_per_year", 0.02), value_text("area", 65300)
        ('0.02', '65,300')
    """
    words = re.split(r"[^a-z]+", attribute.lower())
    if not _YEARS.isdisjoint(words) and _FIRST_YEAR <= value < _LAST_YEAR:
        return str(math.floor(value))
    is_long = 1000 <= abs(value) < _HUGE
    return minus(f"{value:,.0f}" if is_long else f"{value:.4g}")


def signed(value: float) -> str:
    r"""Writes a contribution with its sign.

    Example:
        >>> signed(1.5), signed(-0.25), signed(-0.0001)
        ('+1.500', '-0.250', '+0.000')
    """
    return f"{round(value, 3) + 0.0:+.3f}"  # + 0.0: no '-0.000'


def minus(text: str) -> str:
    r"""Replaces hyphens of numbers by the minus sign, which is as wide as a plus.

    Example:
        >>> minus("-2.5")
        '−2.5'
    """
    return text.replace("-", "−")


def rank_text(rank: float) -> str:
    r"""Writes a rank, which may be a half.

    Example:
        >>> rank_text(1234.0), rank_text(2.5)
        ('1,234', '2.5')
    """
    return f"{rank:,.1f}".removesuffix(".0")


def listing(names: Sequence[str], total: int) -> str:
    r"""Lists some names, and the number of remaining ones.

    Example:
        >>> listing(["Ada", "Ben"], 5), listing([], 5)
        ('Ada, Ben and 3 more', '5 entities')
    """
    if not names:
        return f"{total:,} entities" if total > 1 else "1 entity"
    more = total - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")


def _first_and_last(name: str) -> str:
    segments = [segment for segment in name.split("/") if segment]
    if len(segments) <= 2:
        return name
    first, last = segments[0].rstrip("."), segments[-1]
    if first == last:
        last = "/".join(segments[-2:])
    return f"{first}…{last}"
