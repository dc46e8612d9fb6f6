"""HTML in which all text is escaped that is not HTML already."""

import html
import re
from collections.abc import Iterable
from typing import NamedTuple

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
            words.append(f'{key}="{html.escape(value)}"')
    start = Html(f"<{' '.join(words)}>")
    return start if name in _VOID else join([start, *content, Html(f"</{name}>")])


def join(parts: Iterable[str]) -> Html:
    r"""Concatenates texts and elements.

    Args:
        parts (iterable): The parts.
    """
    return Html("".join(p if isinstance(p, Html) else html.escape(p) for p in parts))


def breakable(name: str) -> Html:
    r"""Returns a name that may be broken after its separators.

    Args:
        name (str): The name.

    Example:
        >>> breakable("people/place_of_birth")
        'people/<wbr>place_<wbr>of_<wbr>birth'
    """
    pieces = re.split(r"(?<=[/_.:#])(?=[^/_.:#])", name)
    return Html("<wbr>".join(map(html.escape, pieces)))


def body_words(text: str) -> Html:
    r"""Returns the body of a rule, whose atoms keep their variables together.

    Args:
        text (str): The body.
    """
    words = breakable(text.replace(", ", ",\N{NO-BREAK SPACE}"))
    return element("span", words, class_="body")


def table(header: Iterable[str], rows: Iterable[str], caption: str, kind: str) -> Html:
    r"""Returns a table that scrolls by itself where the window is too narrow.

    Args:
        header (iterable): The cells of its first row.
        rows (iterable): Its other rows.
        caption (str): Its caption, for screen readers.
        kind (str): Its class.
    """
    head = element("thead", element("tr", *header))
    hidden = element("caption", caption, class_="unseen")
    whole = element("table", hidden, head, element("tbody", *rows), class_=kind)
    # What can have the focus can be scrolled by keyboard.
    attributes = {"role": "region", "aria_label": caption, "tabindex": "0"}
    return element("div", whole, class_="scroll", **attributes)


def column(title: str, is_number: bool = True) -> Html:
    r"""Returns the header of a column.

    Args:
        title (str): Its title.
        is_number (bool, optional): Whether it holds numbers.
            (default: :obj:`True`)
    """
    return element("th", title, scope="col", class_="number" if is_number else None)


def number(text: str) -> Html:
    r"""Returns the cell of a number.

    Args:
        text (str): The number, written.
    """
    return element("td", text, class_="number")
