"""Plain-text and Markdown tables."""

from collections.abc import Sequence

from kblrn_pyg.printable import printable


def format_table(
    header: Sequence[str], rows: Sequence[Sequence[object]], markdown: bool = False
) -> str:
    r"""Aligns columns: words to the left, numbers to the right.

    Args:
        header (sequence): The names of the columns.
        rows (sequence): The cells: words, or numbers, of which integers get
            thousands separators and others four digits. A string that is a
            number is aligned as one; :obj:`None` becomes a dash.
        markdown (bool, optional): Whether to print Markdown.
            (default: :obj:`False`)

    Example:
        >>> print(format_table(["name", "size"], [["a", 1000], ["bc", 2]]))
        name   size
        a     1,000
        bc        2
        >>> print(format_table(["name", "size"], [["a", 1000]], markdown=True))
        | name |  size |
        |:-----|------:|
        | a    | 1,000 |
    """
    cells = [[cell_text(cell) for cell in row] for row in rows]
    if markdown:
        cells = [[cell.replace("|", r"\|") for cell in row] for row in cells]
    columns = list(zip(*cells)) or [()] * len(header)
    to_right = [bool(column) and all(map(is_number, column)) for column in columns]
    widths = [max(map(len, column)) for column in zip(header, *cells)]
    lines = [
        [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, to_right)
        ]
        for row in [list(header), *cells]
    ]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in lines)
    rule = "".join(
        f"|{'-' * (width + 1)}:" if right else f"|:{'-' * (width + 1)}"
        for width, right in zip(widths, to_right)
    )
    first, *others = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([first, f"{rule}|", *others])


def cell_text(cell: object) -> str:
    """Returns the text of a value in tables."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return printable(str(cell))


def is_number(cell: str) -> bool:
    """Returns whether a cell is a number, or stands for a missing one."""
    try:
        cell = cell.removeprefix("about ")
        float(cell.replace(",", "").replace("−", "-").removesuffix("%").strip())
    except ValueError:
        return cell in ("-", "unknown")
    return True
