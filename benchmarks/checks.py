"""What checks of ids and scores cost: steps with them and without, in turns.

    python benchmarks/checks.py [--dataset Families] [--root DIR] [--turns 100]

Wrong ids would be read as foreign memory, so methods check them; this measures how
much longer training, evaluation and prediction take by that. Each step is done with
checks and with functions in their place that do nothing, one after the other; the
first of both changes from turn to turn. What is compared is the processor's time of
all threads, which other work on the machine changes less than time that passes.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, ids
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.evaluation import model as scores_of_models
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import seed_all

CHANNELS, BATCH, NUM_QUERIES = 100, 512, 100
# Functions that refuse something and return nothing, where modules have imported them.
CHECKS = ("check_ids", "check_distinct", "check_shape")
# Steps take milliseconds, and whole evaluations a second.
MOST_EVALUATIONS = 10
Step = Callable[[], object]


def nothing(*_: Any, **__: Any) -> None:
    """Checks nothing."""


def unchecked_scores(_: Any, __: Any, ___: Any, scores: torch.Tensor) -> torch.Tensor:
    """Returns scores as they are."""
    return scores.detach()


@contextmanager
def no_checks() -> Iterator[None]:
    """Lets all functions of the library check nothing."""
    changed = [patch.object(ids.IdRanges, "_check", nothing)]
    changed.append(patch.object(ids, "_check_lengths", nothing))
    changed.append(patch.object(scores_of_models, "checked_scores", unchecked_scores))
    for name, module in list(sys.modules.items()):
        if name.startswith("kblrn_pyg"):
            there = [one for one in CHECKS if one in vars(module)]
            changed += [patch.object(module, one, nothing) for one in there]
    for one in changed:
        one.start()
    try:
        yield
    finally:
        for one in changed:
            one.stop()


def training_step(model: KBLRN, batches: list[Any]) -> Step:
    """Returns what trains on the next batch."""
    optimizer = torch.optim.Adam(model.parameters())
    state = {"next": 0}

    def step() -> None:
        batch = batches[state["next"] // 2 % len(batches)]  # twice the same
        state["next"] += 1
        optimizer.zero_grad()
        model.loss(*batch).backward()
        optimizer.step()

    return step


def steps(splits: dict[str, Any]) -> dict[str, Step]:
    """Returns what is measured, by its name."""
    train, test = splits["train"], splits["test"]
    rules = mine_rules(train, confidences=True)
    found: dict[str, Step] = {}
    for letters, number in (("l", None), ("lrn", 500), ("lrne", None)):
        model = KBLRN.from_data(
            train,
            letters,
            CHANNELS,
            rules=rules if "r" in letters else None,
            num_negatives=number,
        )
        title = f"{letters}, {number or 'all'} negatives"
        batches = list(model.loader(*flat_triples(train), batch_size=BATCH))
        found[f"training step, {title}"] = training_step(model, batches)
    model.eval()  # the last one, of all experts
    found["evaluation, lrne"] = lambda: evaluate(model, test, [splits["val"]])
    entities = list(range(NUM_QUERIES))
    found["prediction, lrne, one query"] = lambda: model.predict_tails(0, 0)
    found[f"prediction, lrne, {NUM_QUERIES} queries"] = lambda: model.predict_tails(
        entities, [0] * NUM_QUERIES
    )
    return found


def seconds(step: Step) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


def measure(step: Step, turns: int) -> tuple[float, float]:
    """Returns the median seconds with checks and without."""
    step()
    with no_checks():
        step()
    times: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(turns):
        for checks in (True, False) if turn % 2 else (False, True):
            if checks:
                times[True].append(seconds(step))
            else:
                with no_checks():
                    times[False].append(seconds(step))
    return statistics.median(times[True]), statistics.median(times[False])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="Families", help="(default: Families)")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--turns", type=int, default=100, help="(default: 100)")
    options = parser.parse_args()
    seed_all(0)
    found = steps(load_dataset(options.dataset, options.root))
    print(f"{'':40}{'checked':>12}{'unchecked':>12}{'ratio':>8}")
    for name, step in found.items():
        is_long = name.startswith("evaluation")
        turns = min(options.turns, MOST_EVALUATIONS) if is_long else options.turns
        checked, unchecked = (1e3 * one for one in measure(step, turns))
        ratio = checked / unchecked
        print(f"{name:40}{checked:9.2f} ms{unchecked:9.2f} ms{ratio:8.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
