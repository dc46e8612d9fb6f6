"""Figures and tables as Markdown."""

from collections.abc import Sequence

from reproduction.cells import Cell

NONE = "–"


def figure(metric: str, value: "float | Cell | None") -> str:
    r"""Returns a figure as the paper prints it: ranks, and percentages.

    Args:
        metric (str): What it measures.
        value (float or Cell, optional): The figure.
    """
    if value is None:
        return NONE
    if isinstance(value, Cell):
        text = figure(metric, value.mean)
        if value.deviation is None:
            return text + value.mark
        return f"{text} ±{figure(metric, value.deviation)}{value.mark}"
    if metric == "mr":
        return f"{value:,.0f}"
    if metric == "auc_pr":
        return f"{value:.3f}"
    return f"{100 * value:.1f}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""Returns a table whose first column is text and whose others are figures.

    Args:
        header (sequence): The titles of the columns.
        rows (sequence): The rows.
    """
    rule = ["---"] + ["--:"] * (len(header) - 1)
    lines = [header, rule, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
