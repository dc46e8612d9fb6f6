"""The figure of a cell: chosen by validation, averaged over seeds."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kblrn_pyg.training.benchmark_recipes import RECIPES
from reproduction.records import Record, matching
from reproduction.tables import Row


class Cell(NamedTuple):
    r"""A figure with its spread.

    Args:
        mean (float): The mean over seeds.
        deviation (float, optional): The standard deviation, if there are several.
        num_seeds (int): The number of seeds.
        mark (str): A star if negatives were drawn once for a batch.
    """

    mean: float
    deviation: float | None
    num_seeds: int
    mark: str


@cache
def paper_figures() -> list[dict]:
    """Returns all figures of the paper."""
    path = Path(__file__).with_name("paper_figures.json")
    return json.loads(path.read_text(encoding="utf-8"))


def paper_row(table: str, dataset: str, row: str) -> dict[str, float]:
    r"""Returns the figures of a row of the paper, none if it has no such row.

    Args:
        table (str): The table.
        dataset (str): The data set.
        row (str): The row.
    """
    wanted = {"table": table, "dataset": dataset, "row": row}
    for line in paper_figures():
        if all(line.get(key) == value for key, value in wanted.items()):
            return line["metrics"]
    return {}


def chosen(records: list[Record], dataset: str, row: Row, recipe: str) -> list[Record]:
    r"""Returns the records of a row, one for each seed.

    Among embedding sizes and scorers, the best on the validation set is chosen.

    Args:
        records (list): All records.
        dataset (str): The data set to judge on.
        row (Row): The row.
        recipe (str): The name of the recipe.
    """
    by_seed: dict[int, list[Record]] = defaultdict(list)
    own = row.recipe(RECIPES[recipe], dataset)
    for choice in () if own is None else row.choices(own):
        for record in matching(records, dataset=dataset, recipe=own.name, **choice):
            by_seed[record["job"]["seed"]].append(record)
    return [
        max(by_seed[seed], key=lambda record: record["val"]["mrr"])
        for seed in sorted(by_seed)
    ]


def mean_of(
    records: list[Record], pick: Callable[[Record], float | None]
) -> Cell | None:
    r"""Returns the mean of a figure, or :obj:`None` if no record has it.

    Args:
        records (list): The records, one for each seed.
        pick (callable): Takes the figure out of a record.
    """
    values = [value for value in map(pick, records) if value is not None]
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    is_shared = any(one["job"].get("negatives") == "shared" for one in records)
    mark = "*" if is_shared else ""
    return Cell(statistics.mean(values), deviation, len(values), mark)
