"""Columns as pandas data frames, and as HTML tables for notebooks."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kblrn_pyg.table import cell_text, is_number

# Longer tables are cut; the whole is in data frames and files.
_MAX_ROWS = 100


def to_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    r"""Returns a :class:`pandas.DataFrame`.

    Args:
        columns (dict): The columns by name.
    """
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas: pip install pandas") from None
    return pandas.DataFrame(dict(columns))


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = ""
) -> str:
    r"""Returns an HTML table, all of whose text is escaped.

    Args:
        header (sequence): The names of the columns.
        rows (iterable): The cells, as :meth:`~kblrn_pyg.table.format_table` takes
            them; at most a hundred rows are shown.
        caption (str, optional): The caption of the table. (default: :obj:`""`)

    Example:
        >>> html_table(["a"], [["<b>"]])
        '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    cells = [[cell_text(cell) for cell in row] for row in rows]
    left_out = len(cells) - _MAX_ROWS
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in cells[:_MAX_ROWS])
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return table + (f"<p>{left_out:,} more rows</p>" if left_out > 0 else "")


def html_text(text: str) -> str:
    r"""Returns text of fixed width as HTML.

    Args:
        text (str): The text.
    """
    return f"<pre>{html.escape(text)}</pre>"


def _cell(text: str) -> str:
    style = ' style="text-align:right"' if is_number(text) else ""
    return f"<td{style}>{html.escape(text)}</td>"
