"""Plain-text tables."""

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    r"""Aligns columns: words to the left, numbers to the right.

    Args:
        header (sequence): The names of the columns.
        rows (sequence): The cells; integers get thousands separators.

    Example:
        >>> print(format_table(["name", "size"], [["a", 1000], ["bc", 2]]))
        name   size
        a     1,000
        bc        2
    """
    cells = [[_text(cell) for cell in row] for row in rows]
    is_number = [
        all(isinstance(row[i], int | float) or row[i] is None for row in rows)
        for i in range(len(header))
    ]
    widths = [max(map(len, column)) for column in zip(header, *cells)]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number)
        ).rstrip()
        for row in [list(header), *cells]
    ]
    return "\n".join(lines)


def _text(cell: object) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return str(cell)
