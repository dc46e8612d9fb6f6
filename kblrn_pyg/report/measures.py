"""The metrics of each split, and of each relation, as tables."""

from collections.abc import Mapping

from kblrn_pyg.evaluation import Metrics, Report
from kblrn_pyg.report.html import (
    Html,
    Section,
    breakable,
    column,
    element,
    join,
    note,
    number,
    table,
)

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


def _title(figure: str) -> Html:
    """Returns the title of a column, which is shorter in a narrow window."""
    if not figure.startswith("Hits"):
        return join([figure])
    return join(["H", element("span", "its", class_="wide"), figure[4:]])


def figure_text(metrics: Metrics, figure: str) -> str:
    """Formats one of the metrics, by the name of its field."""
    value = getattr(metrics, figure)
    digits = {"count": 0, "mr": 1}.get(figure, 3)
    return f"{value:,.{digits}f}"


def tiles(metrics: Metrics) -> Html:
    """Returns the most important metrics."""
    shown = []
    for title in ("MRR", "Hits@1", "Hits@10", "MR"):
        value = element("dd", figure_text(metrics, FIGURES[title]))
        shown.append(element("div", element("dt", title), value))
    return element("dl", *shown, class_="tiles")


def metrics_section(reports: Mapping[str, Report]) -> Section:
    """Lists the metrics of each split, overall and of kinds of queries."""
    text = note(
        "Every triple asks for its head and for its tail. Ranks are filtered: other "
        "answers that are known, from whichever split, do not count. A tie counts "
        "half. MR is the mean rank, MRR the mean reciprocal rank, Hits@k the fraction "
        "of ranks up to k. ONE and MANY are the queries with one known answer, and "
        "with several."
    )
    tables = [_table(_SPLITS.get(name, name), one) for name, one in reports.items()]
    content = join([text, element("div", *tables, class_="columns")])
    return Section("metrics", "Metrics", content)


def _table(title: str, report: Report) -> Html:
    parts = {"all": report.overall}
    for part in (report.by_side, report.by_answers):
        parts |= {_PARTS[name]: metrics for name, metrics in part.items()}
    header = [
        column("queries", is_number=False),
        *(column(_title(figure)) for figure in FIGURES),
    ]
    rows = []
    for name, metrics in parts.items():
        texts = (figure_text(metrics, figure) for figure in FIGURES.values())
        cells = map(number, texts)
        rows.append(element("tr", element("th", name, scope="row"), *cells))
    return element(
        "div",
        element("h3", title),
        table(header, rows, f"Metrics, {title.lower()} split", "figures"),
    )


def relations_section(report: Report, short: Mapping[str, str]) -> Section:
    """Lists the relations of the test split, the most frequent first."""
    rows = [_row(short[name], name, m) for name, m in report.by_relation.items()]
    header = [_header("relation", "ascending")]
    for title in FIGURES:
        # The best first, and a small mean rank is a good one.
        header.append(_header(title, "ascending" if title == "MR" else "descending"))
    text = "Click the title of a column to sort by it, and again to reverse the order."
    content = [
        note(f"Test split. {text}"),
        _filter(len(rows)),
        table(header, rows, "Metrics of each relation, test split", "relations"),
    ]
    return Section("relations", "Relations", join(content))


def _filter(number: int) -> Html:
    """A box that appears only where scripts run."""
    box = element("input", type="search", id="filter", autocomplete="off")
    count = element(
        "output", f"{number:,} of {number:,}", for_="filter", aria_live="polite"
    )
    label = element("label", "Filter by name", for_="filter")
    return element("div", label, box, count, class_="filter", hidden=True)


def _header(title: str, first: str) -> Html:
    return element(
        "th",
        element("button", _title(title), type="button"),
        scope="col",
        aria_sort="none",
        data_first=first,
        class_=None if title == "relation" else "number",
    )


def _row(short: str, name: str, metrics: Metrics) -> Html:
    names = [element("span", breakable(short))]
    if short != name:
        names.append(element("small", breakable(name)))
    cells = [element("th", *names, scope="row")]
    cells += [_cell(metrics, figure) for figure in FIGURES.values()]
    return element("tr", *cells)


def _cell(metrics: Metrics, figure: str) -> Html:
    value = getattr(metrics, figure)
    bar = figure == "mrr"
    return element(
        "td",
        figure_text(metrics, figure),
        class_="number part" if bar else "number",
        style=f"--part:{100 * value:.1f}%" if bar else None,
        data_value=repr(value),
    )
