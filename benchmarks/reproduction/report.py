"""RESULTS.md and the table of the README, generated from records and notes."""

import re
from collections.abc import Iterator
from pathlib import Path

from kblrn_pyg.data.whole import write_text
from kblrn_pyg.training.benchmark_recipes import RECIPES
from reproduction.cells import Cell, chosen, mean_of, paper_row
from reproduction.layout import Line, beside, overall, table_lines, table_text
from reproduction.markdown import figure, markdown_table
from reproduction.records import Record, read_records, record_path
from reproduction.sizes import STATISTICS
from reproduction.tables import TABLES, jobs_of

_NOTES = Path(__file__).with_name("notes.md")
_BEGIN, _END = "<!-- results: made by benchmarks/paper.py -->", "<!-- end -->"
# How far below the paper a figure may be without an explanation.
_TOLERANCE = 0.015
# What a data set alone would not tell.
_PLACES = {"usa": "(USA, contains, ?)"}


def write_report(folder: Path, results: Path) -> None:
    r"""Writes RESULTS.md and the table of the README.

    Args:
        folder (Path): The folder of the repository.
        results (Path): The folder of all records.
    """
    records, notes = read_records(results), _read_notes()
    parts = ["# The paper's tables, reproduced\n", notes["introduction"]]
    for name in (STATISTICS, *TABLES):
        parts.append(table_text(name, records))
        if name in notes:
            parts.append(notes[name])
    runs = [record for record in records if "job" in record]
    parts += [_shortfalls(runs), notes.get("shortfalls", "")]
    parts += [_not_run(results), _all_runs(runs)]
    write_text(folder / "benchmarks" / "RESULTS.md", "\n".join(parts))
    _write_between_marks(folder / "README.md", readme_table(runs))


def _read_notes() -> dict[str, str]:
    """The texts about tables; all figures in tables come from records."""
    text = _NOTES.read_text(encoding="utf-8")
    found = re.split(r"^# (.*)$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() + "\n" for name, body in zip(found[::2], found[1::2])}


def _shortfalls(records: list[Record]) -> str:
    """Every cell of the recipe of the paper that is well below the paper."""
    text = "## Below the paper by more than 1.5 points, recipe paper\n\n"
    return text + ("".join(_short_lines(records)) or "None of those that were run.\n")


def _short_lines(records: list[Record]) -> Iterator[str]:
    for name, table in TABLES.items():
        for dataset in table.datasets if "mrr" in table.metrics else ():
            for line in table_lines(name, dataset):
                theirs, ours = line.theirs.get("mrr"), _our_mrr(line, records)
                if theirs is None or ours is None or ours.mean >= theirs - _TOLERANCE:
                    continue
                gap = 100 * (theirs - ours.mean)
                yield (
                    f"- {_PLACES.get(name, dataset)}, {line.title}: MRR "
                    f"{figure('mrr', ours)}, {gap:.1f} points below the paper's "
                    f"{figure('mrr', theirs)}\n"
                )


def _our_mrr(line: Line, records: list[Record]) -> Cell | None:
    if line.row is None:
        return None
    found = chosen(records, line.dataset, line.row, "paper")
    return mean_of(found, lambda record: line.pick(record, "mrr"))


def _not_run(results: Path) -> str:
    """Every training run that a table needs and that has no record."""
    missing = {
        (job.name, dataset): f"- {_description(job.described(dataset))}\n"
        for recipe in RECIPES.values()
        for table in TABLES.values()
        for dataset in table.datasets
        for job in jobs_of(table, recipe, [dataset])
        if not record_path(results, job.name, dataset).exists()
    }
    return "## Not run yet\n\n" + ("".join(missing.values()) or "Nothing.\n")


def _all_runs(records: list[Record]) -> str:
    rows = [
        [
            _description(record["job"]),
            f"{record['best_epoch']} of {record['epochs']}",
            f"{record['seconds'] / 60:.0f}",
            f"{record['peak_memory_mb']:,.0f}",
            figure("mrr", record["val"]["mrr"]),
            figure("mrr", record["test"]["overall"]["mrr"]),
        ]
        for record in records
    ]
    header = ["training run", "best epoch", "minutes", "peak MB", "val MRR", "test MRR"]
    return f"## All training runs\n\n{markdown_table(header, rows)}"


def _description(job: dict) -> str:
    parts = [job["dataset"], job["recipe"], f"KB{job['experts']}"]
    if "l" in job["experts"]:
        parts.append(job["scorer"])
    if job["numerical"] != "rbf":
        parts.append(job["numerical"])
    if job["permuted"]:
        parts.append("permuted")
    if job.get("negatives") == "shared":
        parts.append("shared negatives")
    if job["hidden_channels"]:
        parts.append(f"size {job['hidden_channels']}")
    return ", ".join([*parts, f"seed {job['seed']}"])


def readme_table(records: list[Record]) -> str:
    r"""Returns MRR and Hits@10 of all instances, on the data sets that matter most.

    Args:
        records (list): The records of all training runs.
    """
    lines = [
        Line(
            f"{dataset}, {row.name}",
            paper_row(name, dataset, row.name),
            dataset,
            row,
            overall,
        )
        for name, dataset in (
            ("benchmarks", "FB15k-237"),
            ("numerical", "FB15k-237-num"),
        )
        for row in TABLES[name].rows
        if row.name.startswith("KB")
    ]
    return beside(lines, ("mrr", "hits@10"), records)


def _write_between_marks(path: Path, text: str) -> None:
    whole = path.read_text(encoding="utf-8")
    before, _, rest = whole.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    if not after:
        raise ValueError(f"{path} must have the marks {_BEGIN!r} and {_END!r}")
    write_text(path, f"{before}{_BEGIN}\n\n{text}\n{_END}{after}")
