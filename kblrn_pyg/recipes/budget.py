"""Durations in the notation that people use, such as 10m."""

import re

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_budget(text: str) -> float:
    r"""Returns the seconds of a time such as :obj:`10m` or :obj:`1h30m`.

    Args:
        text (str): The time.

    Example:
        >>> parse_budget("10m"), parse_budget("1.5h"), parse_budget("1h30m")
        (600.0, 5400.0, 5400.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if "".join(map("".join, parts)) != text or not seconds > 0:
        raise ValueError(
            f"'budget' must be a time such as 30s, 10m or 2h (got {text!r})"
        )
    return float(seconds)


def format_seconds(seconds: float) -> str:
    r"""Returns a time as people write it.

    Args:
        seconds (float): The seconds.

    Example:
        >>> format_seconds(0.2), format_seconds(75), format_seconds(600)
        ('1s', '75s', '10m')
        >>> format_seconds(5400), format_seconds(7200)
        ('90m', '2h')
    """
    if seconds < 120:
        return f"{max(1, round(seconds))}s"
    if seconds < 7200:
        return f"{round(seconds / 60)}m"
    return f"{seconds / 3600:.1f}".removesuffix(".0") + "h"
