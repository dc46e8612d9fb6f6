"""The figures of each relation, in a table that sorts and filters."""

from collections.abc import Mapping

from kblrn_pyg.evaluation import Metrics, Report
from kblrn_pyg.report.html import Html, Section, breakable, element, join, table
from kblrn_pyg.report.measures import FIGURES, figure_text, title_of


def relations_section(report: Report, short: Mapping[str, str]) -> Section:
    r"""Lists the relations of the test split, the most frequent first.

    Args:
        report (Report): What was found for the test split.
        short (dict): The short name of each relation.
    """
    rows = [_row(short[name], name, m) for name, m in report.by_relation.items()]
    header = [_header("relation", "ascending")]
    for title in FIGURES:
        # The best first, and a small mean rank is a good one.
        header.append(_header(title, "ascending" if title == "MR" else "descending"))
    note = "Test split. A click on the title of a column sorts by it, another one turns"
    content = [
        element("p", f"{note} the order round.", class_="note"),
        _filter(len(rows)),
        table(header, rows, "Metrics of each relation, test split", "relations"),
    ]
    return Section("relations", "Relations", join(content))


def _filter(number: int) -> Html:
    """A box that appears if there is a script to make use of it."""
    box = element("input", type="search", id="filter", autocomplete="off")
    count = element(
        "output", f"{number:,} of {number:,}", for_="filter", aria_live="polite"
    )
    label = element("label", "Only names with", for_="filter")
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
