"""Compares the default recipe with two settings for all knowledge bases.

    python benchmarks/recipes.py [--graph NAME ...] [--seed N] [--budget TIME]

Trains on the embedded data set and on generated knowledge bases of several kinds: by
the settings of the paper, which were the defaults of ``kblrn train`` once, by those of
``kblrn demo``, and by recipe auto. Everything is chosen on the validation set.
"""

import argparse
import random
import time
import warnings

from recipe_graphs import GRAPHS
from torch_geometric.data import HeteroData

from kblrn_pyg.data import numerical_features, read_kb
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.recipes import Recipe, Stage, train_by_recipe
from kblrn_pyg.table import format_table

PAPER = Recipe("paper's", (Stage("lrn"),))
DEMO = Recipe(
    "demo's",
    (
        Stage(
            "lrn",
            {"hidden_channels": 32, "num_negatives": None, "dropout": 0.3},
            {"lr": 0.02, "epochs": 10},
        ),
    ),
)


def load(name: str, seed: int) -> dict[str, HeteroData]:
    """Loads a data set, or generates one."""
    if name not in GRAPHS:
        return load_dataset(name)
    facts, numbers = GRAPHS[name](random.Random(seed))
    return read_kb(facts, numerical=numbers or None, holdout=0.05, seed=seed)[0]


def compare(name: str, seed: int, budget: str) -> list[list[object]]:
    """Returns a row for each recipe."""
    splits = load(name, seed)
    has_numbers = len(numerical_features(splits["train"])) > 0
    rows = []
    for recipe in (PAPER, DEMO, "auto"):
        if isinstance(recipe, Recipe):
            recipe = recipe.restricted("lrn" if has_numbers else "lr")
        start = time.perf_counter()
        result = train_by_recipe(
            splits["train"],
            splits["val"],
            [splits["test"]],
            recipe=recipe,
            budget=budget if recipe == "auto" else None,
            seed=seed,
        )
        seconds = time.perf_counter() - start
        mrr = [
            evaluate(result.model, splits[one], [splits[other]]).metrics().mrr
            for one, other in (("val", "test"), ("test", "val"))
        ]
        rows.append([name, result.recipe.name, *mrr, round(seconds)])
        print(*rows[-1], result.recipe.why, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["Families", *GRAPHS]
    parser.add_argument("--graph", nargs="+", default=names, help=", ".join(names))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", default="1h", help="of recipe auto (default: 1h)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [
        row
        for name in options.graph
        for row in compare(name, options.seed, options.budget)
    ]
    header = ["data set", "recipe", "val MRR", "test MRR", "seconds"]
    print(format_table(header, rows))


if __name__ == "__main__":
    main()
