"""The metrics of each relation, in a table that can be sorted and filtered."""

from collections.abc import Mapping

from kblrn_pyg.evaluation import Metrics, Report
from kblrn_pyg.report.html import Html, Section, breakable, element, join, table
from kblrn_pyg.report.measures import FIGURES, figure_text, title_of


def relations_section(report: Report, short: Mapping[str, str]) -> Section:
    r"""Lists the relations of the test split, the most frequent first.

    Args:
        report (Report): The metrics of the test split.
        short (dict): The short name of each relation.
    """
    rows = [_row(short[name], name, m) for name, m in report.by_relation.items()]
    header = [_header("relation", "ascending")]
    for title in FIGURES:
        # The best first, and a small mean rank is a good one.
        header.append(_header(title, "ascending" if title == "MR" else "descending"))
    note = "Test split. Click the title of a column to sort by it, and again to reverse"
    content = [
        element("p", f"{note} the order.", class_="note"),
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
        element("button", title_of(title), type="button"),
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
