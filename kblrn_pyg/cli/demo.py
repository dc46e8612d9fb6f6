"""Train models on the embedded data set and show what each expert adds."""

import argparse
from typing import Any

from kblrn_pyg.cli.options import shows_progress
from kblrn_pyg.table import format_table
from kblrn_pyg.training.settings import FitSettings

_INSTANCES = {
    "l": "embeddings",
    "lr": "embeddings and paths",
    "ln": "embeddings and numbers",
    "lrn": "embeddings, paths and numbers",
    "rneo": "paths, numbers, the best evidence and loops",
}
_EMBEDDINGS: dict[str, Any] = {"hidden_channels": 32, "dropout": 0.3}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--epochs", type=int, default=10, help="epochs of each model (default: 10)"
    )
    parser.add_argument("--seed", type=int, default=0, help="the seed (default: 0)")


def run(options: argparse.Namespace) -> None:
    settings = FitSettings(epochs=options.epochs, lr=0.02, seed=options.seed)
    # Only now, as torch takes seconds to import.
    import torch

    from kblrn_pyg.datasets import load_dataset
    from kblrn_pyg.evaluation import evaluate
    from kblrn_pyg.nn import KBLRN
    from kblrn_pyg.rules import mine_rules
    from kblrn_pyg.training import fit

    splits = load_dataset("Families")
    rules = mine_rules(splits["train"], progress=shows_progress())
    print(f"{len(rules)} rules mined, for example")
    best = rules.filter(min_pca_confidence=0.8, max_rules_per_relation=1)
    print("\n".join(f"  {line}" for line in str(best).splitlines()[:4]))
    rows = []
    for experts, what in _INSTANCES.items():
        torch.manual_seed(options.seed)
        model = KBLRN.from_data(
            splits["train"],
            experts,
            rules=rules if "r" in experts else None,
            num_negatives=None,
            **(_EMBEDDINGS if "l" in experts else {}),
        )
        print(f"training KB{experts}: {what}")
        fit(model, splits["train"], progress=shows_progress(), settings=settings)
        found = evaluate(model, splits["test"], (splits["val"],)).metrics()
        rows.append([f"KB{experts}", what, found.mr, found.mrr, found.hits_at_10])
    print()
    print(format_table(["model", "experts", "MR", "MRR", "Hits@10"], rows))
