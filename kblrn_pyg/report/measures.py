"""The metrics of each split, as tables."""

from collections.abc import Mapping

from kblrn_pyg.evaluation import Metrics, Report
from kblrn_pyg.report.html import Html, Section, column, element, join, number, table

# The columns of all tables of metrics.
FIGURES = {
    "ranks": "count",
    "MR": "mr",
    "MRR": "mrr",
    "Hits@1": "hits_at_1",
    "Hits@3": "hits_at_3",
    "Hits@10": "hits_at_10",
}
_SPLITS = {"val": "Validation", "test": "Test"}
_PARTS = {
    "head": "heads, (?, r, t)",
    "tail": "tails, (h, r, ?)",
    "one": "ONE answer",
    "many": "MANY answers",
}


def title_of(figure: str) -> Html:
    r"""Returns the title of a column, which is shorter in a narrow window.

    Args:
        figure (str): One of the keys of :obj:`FIGURES`.
    """
    if not figure.startswith("Hits"):
        return join([figure])
    return join(["H", element("span", "its", class_="wide"), figure[4:]])


def figure_text(metrics: Metrics, figure: str) -> str:
    r"""Formats one of the metrics.

    Args:
        metrics (Metrics): The metrics.
        figure (str): One of the values of :obj:`FIGURES`.
    """
    value = getattr(metrics, figure)
    digits = {"count": 0, "mr": 1}.get(figure, 3)
    return f"{value:,.{digits}f}"


def tiles(metrics: Metrics) -> Html:
    r"""Returns the most important metrics.

    Args:
        metrics (Metrics): The metrics of the test split.
    """
    shown = [
        element(
            "div",
            element("dt", title),
            element("dd", figure_text(metrics, FIGURES[title])),
        )
        for title in ("MRR", "Hits@1", "Hits@10", "MR")
    ]
    return element("dl", *shown, class_="tiles")


def metrics_section(reports: Mapping[str, Report]) -> Section:
    r"""Lists the metrics of each split, overall and of kinds of queries.

    Args:
        reports (dict): The metrics of each split.
    """
    note = element(
        "p",
        "Every triple asks for its head and for its tail. Ranks are filtered: other "
        "answers that are known, from whichever split, do not count. A tie counts "
        "half. MR is the mean rank, MRR the mean reciprocal rank, Hits@k the fraction "
        "of ranks up to k. ONE and MANY are the queries with one known answer, and "
        "with several.",
        class_="note",
    )
    tables = [_table(_SPLITS.get(name, name), one) for name, one in reports.items()]
    content = join([note, element("div", *tables, class_="columns")])
    return Section("metrics", "Metrics", content)


def _table(title: str, report: Report) -> Html:
    parts = {"all": report.overall}
    for part in (report.by_side, report.by_answers):
        parts |= {_PARTS[name]: metrics for name, metrics in part.items()}
    header = [
        column("queries", is_number=False),
        *(column(title_of(figure)) for figure in FIGURES),
    ]
    rows = [
        element("tr", element("th", name, scope="row"), *_cells(metrics))
        for name, metrics in parts.items()
    ]
    return element(
        "div",
        element("h3", title),
        table(header, rows, f"Metrics, {title.lower()} split", "figures"),
    )


def _cells(metrics: Metrics) -> list[Html]:
    return [number(figure_text(metrics, figure)) for figure in FIGURES.values()]
