"""Dates as decimal years."""

import math
import re

_DATE = re.compile(
    r"\+?(?P<year>-?\d{4,15})"  # which a float holds exactly
    r"(?:-(?P<month>\d\d)"
    r"(?:-(?P<day>\d\d)"
    r"(?:[T ](?P<hour>\d\d)"
    r"(?::?(?P<minute>\d\d)(?::?(?P<second>\d\d(?:\.\d+)?))?)?)?)?)?"
    r"(?:Z|[+-]\d\d:?\d\d)?"
)
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


def decimal_year(text: str) -> float:
    r"""Turns an XML Schema date into a decimal year.

    A space may replace the :obj:`T` before the time, as in pandas, and a month or
    day of :obj:`00`, as in Wikidata, is unknown.

    A day is represented by its noon and a month by its middle, while a year without
    a month stays an integer. The time zone is ignored, because it changes a date by
    less than 0.002 years. Anything that is not a date becomes :obj:`nan`.

    Args:
        text (str): A :obj:`gYear`, :obj:`gYearMonth`, :obj:`date` or
            :obj:`dateTime`.

    Example:
        >>> decimal_year("2026-07-02"), decimal_year("2026"), decimal_year("-0044")
        (2026.5, 2026.0, -44.0)
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return math.nan
    year = int(match["year"])
    if match["month"] is None or (match["month"], match["day"]) == ("00", "00"):
        return float(year)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    month = int(match["month"])
    if not 1 <= month <= 12:
        return math.nan
    before = _DAYS_BEFORE[month - 1] + (leap and month > 2)
    length = _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (leap and month == 2)
    if match["day"] in (None, "00"):
        elapsed = before + length / 2
    else:
        day = int(match["day"])
        if not 1 <= day <= length:
            return math.nan
        elapsed = before + day - 1 + _day_fraction(match)
    return year + elapsed / (365 + leap)


def _day_fraction(match: re.Match[str]) -> float:
    if match["hour"] is None:
        return 0.5
    hours, minutes = int(match["hour"]), int(match["minute"] or 0)
    seconds = float(match["second"] or 0)
    fraction = (hours + (minutes + seconds / 60) / 60) / 24
    return fraction if fraction <= 1 else math.nan
