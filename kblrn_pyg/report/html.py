"""HTML generation that escapes all text."""

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

from kblrn_pyg.data.words import minus, signed
from kblrn_pyg.printable import printable

# They have no content and no end tag.
_VOID = {"img", "input", "link", "meta"}


class Html(str):
    r"""Text that is HTML already; all other text is escaped."""

    __slots__ = ()


class Section(NamedTuple):
    r"""A section of the page.

    Args:
        id (str): The target of links to it.
        title (str): Its title.
        content (Html): Its content.
    """

    id: str
    title: str
    content: Html


def _escaped(text: str) -> str:
    # Control characters are no part of HTML, and commands where it is printed.
    return html.escape(printable(text, keep="\n\t"))


def element(name: str, *content: str, **attributes: str | bool | None) -> Html:
    r"""Returns an element.

    Args:
        name (str): Its name.
        *content (str): Its content.
        **attributes (optional): Its attributes; :obj:`class_` is
            :obj:`class`, :obj:`aria_label` is :obj:`aria-label`. One that is
            :obj:`True` has no value, one that is :obj:`None` or :obj:`False`
            is left out.

    Example:
        >>> element("p", "1 < 2 ", element("b", "&"), class_="note", hidden=True)
        '<p class="note" hidden>1 &lt; 2 <b>&amp;</b></p>'
    """
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not None and value is not False:
            words.append(f'{key}="{_escaped(value)}"')
    start = Html(f"<{' '.join(words)}>")
    return start if name in _VOID else join([start, *content, Html(f"</{name}>")])


def join(parts: Iterable[str]) -> Html:
    r"""Concatenates texts and elements.

    Args:
        parts (iterable): The parts.
    """
    return Html("".join(p if isinstance(p, Html) else _escaped(p) for p in parts))


def breakable(name: str) -> Html:
    r"""Returns a name that may be broken after its separators.

    Example:
        >>> breakable("people/place_of_birth")
        'people/<wbr>place_<wbr>of_<wbr>birth'
    """
    pieces = re.split(r"(?<=[/_.:#])(?=[^/_.:#])", name)
    return Html("<wbr>".join(map(_escaped, pieces)))


def body_words(text: str) -> Html:
    """Returns the body of a rule, whose atoms keep their variables together."""
    words = breakable(text.replace(", ", ",\N{NO-BREAK SPACE}"))
    return element("span", words, class_="body")


def table(header: Iterable[str], rows: Iterable[str], caption: str, kind: str) -> Html:
    """Returns a table that scrolls by itself where the window is too narrow."""
    head = element("thead", element("tr", *header))
    hidden = element("caption", caption, class_="unseen")  # for screen readers
    whole = element("table", hidden, head, element("tbody", *rows), class_=kind)
    # What can have the focus can be scrolled by keyboard.
    attributes = {"role": "region", "aria_label": caption, "tabindex": "0"}
    return element("div", whole, class_="scroll", **attributes)


def column(title: str, is_number: bool = True) -> Html:
    """Returns the header of a column."""
    return element("th", title, scope="col", class_="number" if is_number else None)


def number(text: str) -> Html:
    """Returns the cell of a number."""
    return element("td", text, class_="number")


def note(text: str) -> Html:
    """Returns a paragraph in small letters."""
    return element("p", text, class_="note")


class Scale(NamedTuple):
    """The range that several bars to both sides of zero share."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Scale":
        """Covers all values."""
        known = [0.0, *values]
        return cls(min(known), max(known))

    def cell(self, value: float) -> Html:
        """Returns the cell of a number, with a bar."""
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
