"""Fonts for names in any writing system."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import matplotlib
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text

from kblrn_pyg.printable import printable

logger = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

# Fonts with the scripts that Matplotlib's own font lacks, of Linux, macOS, Windows.
FALLBACKS = (
    *("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans CJK KR", "Noto Sans CJK TC"),
    *("Source Han Sans", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "IPAGothic"),
    *("Droid Sans Fallback", "Unifont", "Noto Sans", "Noto Sans Devanagari"),
    *("Noto Sans Thai", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Ethiopic"),
    *("Hiragino Sans", "PingFang SC", "Apple SD Gothic Neo", "Arial Unicode MS"),
    *("Microsoft YaHei", "MS Gothic", "Yu Gothic", "Malgun Gothic", "Nirmala UI"),
)
_MAX_SHOWN = 12


def fallback_fonts() -> list[str]:
    """Returns the fonts of this machine that have letters that other fonts lack."""
    installed = set(font_manager.get_font_names())
    return [name for name in FALLBACKS if name in installed]


@contextmanager
def fonts_for_any_script() -> Iterator[None]:
    """Lets texts that are created in the context use additional fonts, letter by
    letter."""
    family = [*matplotlib.rcParams["font.family"], *fallback_fonts()]
    with matplotlib.rc_context({"font.family": family}), without_glyph_warnings():
        yield


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Suppresses Matplotlib's warning for each letter that no font has.

    :meth:`note_missing_letters` logs it once per figure.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        yield


def with_fonts(plot: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a function draw in the context of :meth:`fonts_for_any_script`."""

    @wraps(plot)
    def draw(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with fonts_for_any_script():
            return plot(*args, **kwargs)

    return draw


def missing_letters(figure: Figure) -> str:
    r"""Returns the letters of a figure that none of its fonts has.

    Args:
        figure (matplotlib.figure.Figure): The figure.
    """
    missing: dict[str, None] = {}
    for text in figure.findobj(Text):
        assert isinstance(text, Text)
        letters = {letter for letter in text.get_text() if ord(letter) > 127}
        if letters:
            has = _letters_of(text.get_fontproperties())
            lacking = (one for one in sorted(letters) if ord(one) not in has)
            missing |= dict.fromkeys(lacking)
    return "".join(missing)


def note_missing_letters(figure: Figure) -> None:
    r"""Logs a warning about letters that no font has, which are drawn as boxes.

    Args:
        figure (matplotlib.figure.Figure): The figure.
    """
    missing = missing_letters(figure)
    if missing:
        shown = printable(missing[:_MAX_SHOWN])
        more = "..." if len(missing) > _MAX_SHOWN else ""
        logger.warning(
            "no installed font has the letters %s%s, which are drawn as boxes; install "
            "one that has them, such as Noto Sans CJK",
            shown,
            more,
        )


def _letters_of(font: FontProperties) -> set[int]:
    """Returns the letters that one of the families of a font has."""
    found: set[int] = set()
    for family in font.get_family():
        properties = font.copy()
        properties.set_family(family)
        path = font_manager.findfont(properties)
        found |= set(font_manager.get_font(path).get_charmap())
    return found
