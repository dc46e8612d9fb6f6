"""Each table as Markdown: the paper's figures beside ours, from records alone."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kblrn_pyg.training.benchmark_recipes import RECIPES
from reproduction.cells import chosen, mean_of, paper_figures, paper_row
from reproduction.markdown import NONE, figure, markdown_table
from reproduction.records import Record
from reproduction.sizes import STATISTICS
from reproduction.tables import TABLES, Row, Table

TITLES = {"paper": "recipe paper", "modern": "recipe modern"}
_RELATIONS = {
    "capital_of": "/location/country/capital",
    "spouse_of": "/people/marriage/spouse",
    "influenced_by": "/influence/influence_node/influenced_by",
}

Pick = Callable[[Record, str], float | None]


class Line(NamedTuple):
    r"""A line of a table.

    Args:
        title (str): What it is about.
        theirs (dict): The paper's figures.
        dataset (str): The data set that records are judged on.
        row (Row, optional): What was trained; :obj:`None` if only quoted.
        pick (callable): Takes a figure out of a record.
    """

    title: str
    theirs: dict[str, float]
    dataset: str
    row: Row | None
    pick: Pick


def overall(record: Record, metric: str) -> float | None:
    """A figure of the whole test set."""
    return record["test"]["overall"].get(metric)


def beside(
    lines: Sequence[Line],
    metrics: Sequence[str],
    records: list[Record],
    recipes: Sequence[str] = tuple(TITLES),
) -> str:
    r"""Returns the paper's figures, if it has any, and those of either recipe.

    Args:
        lines (sequence): The lines.
        metrics (sequence): The figures.
        records (list): All records.
        recipes (sequence, optional): Only these. (default: all)
    """
    is_theirs = any(line.theirs for line in lines)
    whose = ["paper"] if is_theirs else []
    header = [""]
    for who in (*whose, *(TITLES[recipe] for recipe in recipes)):
        header += [f"{who}: {metric_title(metric)}" for metric in metrics]
    rows = []
    for line in lines:
        cells = []
        if is_theirs:
            cells += [figure(metric, line.theirs.get(metric)) for metric in metrics]
        for recipe in recipes:
            found = []
            if line.row is not None:
                found = chosen(records, line.dataset, line.row, recipe)
            cells += [
                figure(m, mean_of(found, lambda r, p=line.pick, m=m: p(r, m)))
                for m in metrics
            ]
        rows.append([line.title, *cells])
    return markdown_table(header, rows)


def metric_title(metric: str) -> str:
    """Returns the name of a figure as the paper prints it."""
    return metric.upper().replace("HITS", "Hits").replace("_", "-")


def table_text(
    name: str, records: list[Record], datasets: Sequence[str] | None = None
) -> str:
    r"""Returns a table as Markdown.

    Args:
        name (str): The table.
        records (list): All records.
        datasets (sequence, optional): Only these. (default: :obj:`None`, all)
    """
    if name == STATISTICS:
        return f"## The data sets\n\n{_statistics(records)}"
    table = TABLES[name]
    records = [record for record in records if "job" in record]
    parts = [f"## {table.title}\n"]
    for dataset in datasets or table.datasets:
        parts.append(f"### {dataset}\n")
        if name == "features":
            parts.append(_features(table, dataset, records))
            continue
        lines = list(table_lines(name, dataset))
        parts.append(beside(lines, table.metrics, records, table.recipes))
        if any("test-I" in record for record in records if _is_on(record, dataset)):
            parts.append(_parts_of_test(table, dataset, records))
    return "\n".join(parts)


def table_lines(name: str, dataset: str) -> Iterator[Line]:
    r"""Returns the lines of a table.

    Args:
        name (str): The table, one of figures.
        dataset (str): The data set.
    """
    return _LINES.get(name, _grid_lines)(name, TABLES[name], dataset)


def _is_on(record: Record, dataset: str) -> bool:
    return record["job"]["dataset"] == dataset


def _grid_lines(name: str, table: Table, dataset: str) -> Iterator[Line]:
    """One line for each row of the paper, whether we trained it or quote it."""
    trained = {row.name for row in table.rows}
    for line in paper_figures():
        is_here = (line["table"], line["dataset"]) == (name, dataset)
        if is_here and line["row"] not in trained:
            title = f"{line['row']} (quoted)"
            yield Line(title, line["metrics"], dataset, None, overall)
    for row in table.rows:
        theirs = paper_row(name, dataset, row.name)
        yield Line(row.name, theirs, dataset, row, overall)


def _relation_lines(name: str, table: Table, dataset: str) -> Iterator[Line]:
    for short, full in _RELATIONS.items():
        for row in table.rows:

            def pick(record: Record, metric: str, full: str = full) -> float | None:
                by_relation = record["test"]["by_relation"]
                names = [one for one in by_relation if full in one]
                return by_relation[names[0]][metric] if names else None

            theirs = paper_row(name, short, row.name)
            yield Line(f"{short}, {row.name}", theirs, dataset, row, pick)


def _cardinality_lines(name: str, table: Table, dataset: str) -> Iterator[Line]:
    for kind in ("one", "many"):
        for row in table.rows:

            def pick(record: Record, metric: str, kind: str = kind) -> float | None:
                parts = record["test"].get("by_cardinality", {})
                return parts.get(kind, {}).get(metric)

            theirs = paper_row(name, kind.upper(), row.name)
            yield Line(f"{kind.upper()}, {row.name}", theirs, dataset, row, pick)


def _usa_lines(name: str, table: Table, dataset: str) -> Iterator[Line]:
    for row in table.rows:
        theirs = paper_row(name, dataset, row.name)
        yield Line(
            row.name,
            theirs,
            dataset,
            row,
            lambda r, m: r.get("usa_contains", {}).get(m),
        )


def _penalty_lines(name: str, table: Table, dataset: str) -> Iterator[Line]:
    """The paper has some of the rows in its table of rules."""
    for row in table.rows:
        theirs = paper_row("rules", dataset, row.name)
        yield Line(row.name, theirs, dataset, row, overall)


_LINES = {
    "penalties": _penalty_lines,
    "relations": _relation_lines,
    "cardinality": _cardinality_lines,
    "usa": _usa_lines,
}


def _parts_of_test(table: Table, dataset: str, records: list[Record]) -> str:
    """What the rules cannot (test-I) and can (test-II) infer from training."""
    lines = [
        Line(
            f"{row.name}, {part}",
            {},
            dataset,
            row,
            lambda r, m, part=part: r.get(part, {}).get(m),
        )
        for part in ("test-I", "test-II")
        for row in table.rows
    ]
    return beside(lines, table.metrics, records, table.recipes)


def _features(
    table: Table, dataset: str, records: list[Record], number: int = 12
) -> str:
    rows = [
        [f"{line['body']} ⇒ {line['row']}", "paper", NONE, NONE]
        for line in paper_figures()
        if line["table"] == "features"
    ]
    for recipe in RECIPES:
        for record in chosen(records, dataset, table.rows[0], recipe)[:1]:
            for rule in record["heaviest_rules"][:number]:
                text = f"{rule['body']} ⇒ {rule['relation']}(h, t)"
                # The last segment of a relation's name, which says enough here.
                text = re.sub(r"/\S*/([^/(]+)\(", r"\1(", text)
                figures = f"{rule['weight']:.2f}", f"{rule['triples']:,}"
                rows.append([text, TITLES[recipe], *figures])
    return markdown_table(["rule", "model", "weight", "test triples"], rows)


def _statistics(records: list[Record]) -> str:
    rows = []
    for counts in (record[STATISTICS] for record in records if STATISTICS in record):
        name = counts["dataset"]
        theirs = paper_row(STATISTICS, name, name).get("relational_features")
        sizes = ("entities", "relations", "train", "val", "test")
        rules = "; ".join(f"{text}: {n:,}" for text, n in counts["rules"].items())
        rows.append(
            [
                name,
                *(f"{counts[size]:,}" for size in sizes),
                NONE if theirs is None else f"{theirs:,}",
                rules,
            ]
        )
    header = ["data set", "entities", "relations", "train", "valid", "test"]
    return markdown_table([*header, "the paper's features", "our features"], rows)
