"""Wraps and shortens text to fit."""

import re

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

_POINTS = 72  # an inch
_NARROWEST = 0.15  # letter, as a fraction of the size of the font


def fit(
    text: str,
    size: float,
    width: float,
    max_lines: int,
    keep_end: bool = False,
    weight: str = "normal",
) -> list[str]:
    r"""Breaks a text into lines that fit, and truncates the rest.

    The text is broken at spaces and behind slashes. The size of the font is in
    points, the width in inches.

    Example:
        >>> fit("award nominee/award nomination", 8, 1.2, 2)
        ['award nominee/', 'award nomination']
        >>> fit("award nominee/award nomination", 8, 1.2, 1)
        ['award nominee/…']
        >>> fit("award nominee/award nomination", 8, 1.2, 1, keep_end=True)
        ['…award nomination']
    """
    most = int(max_lines * width * _POINTS / (_NARROWEST * size)) + 1
    if len(text) > most:  # measuring what can never fit would take long
        text = "…" + text[-most:] if keep_end else text[:most] + "…"
    words = re.findall(r"[^\s/]*/+|[^\s/]+\s*|\s+", text)
    lines = _lines(words, size, width, weight)
    while len(lines) > max_lines:
        words = words[1:] if keep_end else words[:-1]
        first, last = "…" + words[0], words[-1].rstrip() + "…"
        marked = [first, *words[1:]] if keep_end else [*words[:-1], last]
        lines = _lines(marked, size, width, weight)
    return [_cut(line, size, width, weight) for line in lines]


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Returns the width of a line in inches."""
    font = FontProperties(size=size, weight=weight)
    # Not as mathematics: the dollar signs of a name mean themselves.
    return text_to_path.get_text_width_height_descent(text, font, False)[0] / _POINTS


def _lines(words: list[str], size: float, width: float, weight: str) -> list[str]:
    lines = [""]
    for word in words:
        longer = (lines[-1] + word).rstrip()
        if lines[-1] and text_width(longer, size, weight) > width:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines]


def _cut(line: str, size: float, width: float, weight: str) -> str:
    """Cuts a word that is too long for a line of its own."""
    if text_width(line, size, weight) <= width:
        return line
    while line and text_width(line + "…", size, weight) > width:
        line = line[:-1]
    return line.rstrip() + "…"
