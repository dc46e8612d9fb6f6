"""The paper's figures as data, compared with its LaTeX where that is at hand."""

import json
import os
import re
from pathlib import Path

import pytest
from scripts import REPOSITORY

from kblrn_pyg.datasets import DATASETS
from kblrn_pyg.evaluation import Metrics

FIGURES = json.loads(
    (REPOSITORY / "benchmarks/reproduction/paper_figures.json").read_text("utf-8")
)

LABELS = {
    "statistics": "tab:StatsKB",
    "benchmarks": "tab:exp-table1",
    "numerical": "tab:exp-table2",
    "rules": "tab:exp-table3",
    "representations": "tab:exp-nf",
    "relations": "tab:exp-perrel",
    "features": "tab:amie-features",
    "cardinality": "tab:cardinality",
    "usa": "tab:exp-fiber",
}
COUNTS = {
    "Entities": "entities",
    "Relation types": "relations",
    "Training triples": "train",
    "Validation triples": "val",
    "Test triples": "test",
    "Relational features": "relational_features",
}
# What the table of rules calls two data sets.
DATASET_NAMES = {"WN18+rules": "WN18", "FB122-all": "FB122"}
CITED = re.compile(r"quoted by the paper from \[(\w+)\]")


# Without the LaTeX: the data are in order.


def test_tables_and_labels():
    assert {line["table"]: line["label"] for line in FIGURES} == LABELS
    for line in FIGURES:
        assert line["label"] == LABELS[line["table"]]


def test_every_line_is_complete():
    for line in FIGURES:
        keys = {"table", "label", "row", "dataset", "metrics", "source"}
        if line["table"] == "features":
            keys |= {"body"}
        if line["table"] in ("relations", "cardinality"):
            keys |= {"judged_on"}  # their "dataset" is a part of one
        assert set(line) == keys
        assert line["source"] == "paper" or CITED.fullmatch(line["source"])
        assert bool(line["metrics"]) == (line["table"] != "features")
        if line["table"] != "features":
            assert line.get("judged_on", line["dataset"]) in DATASETS


def test_no_line_is_there_twice():
    keys = [(line["table"], line["row"], line["dataset"]) for line in FIGURES]
    assert len(keys) == len(set(keys))


def test_metrics_are_named_as_ours():
    ours = set(Metrics.of([1], [1]).to_dict()) | {"auc_pr"}
    for line in FIGURES:
        expected = set(COUNTS.values()) if line["table"] == "statistics" else ours
        assert set(line["metrics"]) <= expected


def test_metrics_are_in_range():
    for line in FIGURES:
        for name, value in line["metrics"].items():
            if line["table"] == "statistics":
                assert isinstance(value, int)
                assert value > 0
            elif name == "mr":
                assert 1 <= value < 41000
            else:
                assert 0 <= value < 1
        hits = [value for name, value in line["metrics"].items() if "hits" in name]
        assert hits == sorted(hits)


# With the LaTeX: every cell of every table.


@pytest.fixture(scope="module")
def latex():
    data = os.environ.get("KBLRN_DATA")
    path = Path(data or "").parent / "paper" / "kblrn.tex"
    if not data or not path.is_file():
        pytest.skip("the paper's LaTeX is not beside the directory of the raw data")
    return path.read_text(encoding="utf-8")


def cleaned(text):
    """Takes the commands off a cell."""
    text = re.sub(r"\\cite\{\w+\}", "", text)
    text = text.replace(r"$\_$", "_")
    for command, sign in (("exists", "∃"), ("wedge", "∧")):
        text = text.replace(f"\\{command}", sign)
    before = None
    while before != text:
        before = text
        text = re.sub(
            r"\\(?:textbf|textsc|texttt|mathbf|mathtt)\{([^{}]*)\}", r"\1", text
        )
    return " ".join(text.replace("$", "").replace("∃ x", "∃x").split())


def cells(line):
    """Splits a line, with what spans several columns in each of them."""
    out = []
    for cell in cleaned(line).split("&"):
        span = re.fullmatch(r"\s*\\multicolumn\{(\d)\}\{[^{}]*\}\{(.*)\}\s*", cell)
        out += [span[2].strip()] * int(span[1]) if span else [cell.strip()]
    return out


def grid(latex, label):
    """Returns the cells of a table, line by line."""
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", latex, re.DOTALL)
    (table,) = [table for table in tables if f"\\label{{{label}}}" in table]
    body = re.search(
        r"\\begin\{tabular\}\{[^}]*\}(.*?)\\end\{tabular\}", table, re.DOTALL
    )[1]
    body = re.sub(r"\\hline|\\cline\{[^}]*\}", "", body)
    return [cells(line) for line in body.split(r"\\") if line.strip()]


def number(text):
    return float(re.sub(r",\s*", "", text))


def fraction(metric, text):
    """Tables have percent for everything but ranks and the area."""
    return number(text) / (1 if metric in ("mr", "auc_pr") else 100)


def metric_of(title):
    name = title.lower().replace("-", "_")
    return re.sub(r"^h@", "hits@", name)


def two_headers(lines):
    """Yields the two titles, the first cell and the text of each figure."""
    upper, lower, *rest = lines
    for line in rest:
        for one, two, text in zip(upper[1:], lower[1:], line[1:]):
            if re.search(r"\d", text):
                yield one, two, line[0], text


def statistics_of(lines):
    header, *rest = lines
    for title, *texts in rest:
        for dataset, text in zip(header[1:], texts):
            yield dataset, dataset, COUNTS[title], number(text)


def grid_of(lines):
    for dataset, title, row, text in two_headers(lines):
        metric = metric_of(title)
        name = DATASET_NAMES.get(dataset, dataset)
        yield row, name, metric, fraction(metric, text)


def relations_of(lines):
    for row, title, relation, text in two_headers(lines):
        metric = metric_of(title)
        yield row, relation, metric, fraction(metric, text)


def cardinality_of(lines):
    for title, kind, row, text in two_headers(lines):
        metric = metric_of(title)
        yield row, kind.upper(), metric, fraction(metric, text)


def plain_of(dataset):
    def read(lines):
        header, *rest = lines
        for row, *texts in rest:
            for title, text in zip(header[1:], texts):
                metric = metric_of(title)
                yield row, dataset, metric, fraction(metric, text)

    return read


READERS = {
    "statistics": statistics_of,
    "benchmarks": grid_of,
    "numerical": grid_of,
    "rules": grid_of,
    "representations": plain_of("FB15k-237-num"),
    "relations": relations_of,
    "cardinality": cardinality_of,
    "usa": plain_of("FB15k-237"),
}


@pytest.mark.parametrize("table", READERS)
def test_every_figure(latex, table):
    lines = grid(latex, LABELS[table])
    read = list(READERS[table](lines))
    figures = [
        cell for line in lines for cell in line if re.fullmatch(r"[\d., ]+", cell)
    ]
    assert len(read) == len(figures), "a cell was not read"
    theirs = {(row, dataset, metric): value for row, dataset, metric, value in read}
    ours = {
        (line["row"], line["dataset"], metric): value
        for line in FIGURES
        if line["table"] == table
        for metric, value in line["metrics"].items()
    }
    assert len(theirs) == len(read)
    assert set(ours) == set(theirs)
    for key, value in theirs.items():
        assert ours[key] == pytest.approx(value, abs=1e-12), key


def test_relational_features(latex):
    header, *rest = grid(latex, LABELS["features"])
    assert header == ["Relational Feature", "Triple (h, r, t)"]
    ours = [line for line in FIGURES if line["table"] == "features"]
    found = [[line["body"], line["row"]] for line in ours]
    assert found == [[re.sub(r",\s*", ", ", cell) for cell in line] for line in rest]


def test_no_table_is_left_out(latex):
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", latex, re.DOTALL)
    labels = {re.search(r"\\label\{(.*?)\}", table)[1] for table in tables}
    assert labels == set(LABELS.values())


def test_what_is_judged_on(latex):
    """The captions say so, where the table does not."""
    for table, dataset in (
        ("representations", "FB15k-237-num"),
        ("relations", "FB15k-237"),
        ("cardinality", "FB15k-237-num"),
    ):
        caption = re.search(rf"\\label\{{{LABELS[table]}\}}(.*)", latex)[1]
        named = re.findall(r"FB15k[-\w]*", caption)
        assert named == [dataset]
        for line in FIGURES:
            if line["table"] == table:
                assert line.get("judged_on", line["dataset"]) == dataset


def test_sources_are_the_papers(latex):
    """Who is said to be quoted is quoted for that method, and no one else is."""
    text = re.sub(r"\s+", " ", latex)
    said = re.search(
        r"For FB15k and FB15k-237, the results for .*?ASR-ComplEx are .*?\. ", text
    )
    rules = said[0].index("For WN18-rules")
    parts = {"benchmarks": said[0][:rules], "rules": said[0][rules:]}
    for line in FIGURES:
        cited = CITED.fullmatch(line["source"])
        quoted = {}
        for names, key in re.findall(
            r"results for (.*?) are taken from\s?~?\s?\\cite\{(\w+)\}",
            parts.get(line["table"], ""),
        ):
            for name in re.findall(r"[A-Z][\w+-]*", names):
                quoted[name.lower()] = key
        name = line["row"].lower()
        name = "kale" if name.startswith("kale") else name
        assert quoted.get(name) == (cited[1] if cited else None), line["row"]
