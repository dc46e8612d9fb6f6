"""Speed and memory of rule mining and path features.

    KBLRN_DATA=... python benchmarks/mining.py [--part datasets constants scipy ...]

Every figure is taken after compilation, in a process of its own:

1. datasets: rules, seconds and peak memory for every data set, with supports
   only, with all confidences, and with the paper's preset.
2. constants: rules with constants of every data set, all with a support of 2, and
   those with a standard confidence of at least 0.5; seconds to save and load all.
3. scipy: the same supports of FB15k-237 by boolean products of all pairs of
   relations with SciPy, timed on some of the pairs and extrapolated.
4. queries: the features of all candidates of every distinct training query.
5. scaling: random knowledge bases of growing size and constant mean degree.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.datasets import DATASETS, load_dataset
from kblrn_pyg.rules import (
    PAPER,
    ConstantRuleSet,
    PathFeatures,
    mine_constants,
    mine_rules,
)

BATCH = 2048
SCIPY_SAMPLE = 300


def in_own_process(function: Callable, *arguments: object) -> object:
    """Runs a function where nothing else has used memory or compiled code."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def peak_megabytes() -> float:
    # ru_maxrss would remember the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def load_training(name: str, root: str | None) -> object:
    return load_dataset(name, root)["train"]


def warm_up() -> None:
    data = load_training("Families", None)
    for settings in ({"confidences": False}, {}, PAPER):
        mine_rules(data, **settings)


def time_mining(
    name: str, root: str | None
) -> tuple[list[tuple[int, float]], float, float]:
    data = load_training(name, root)
    warm_up()
    before = peak_megabytes()
    found = []
    for settings in ({"confidences": False}, {}, PAPER):
        start = time.perf_counter()
        rules = mine_rules(data, **settings)
        found.append((len(rules), time.perf_counter() - start))
    return found, peak_megabytes(), before


def datasets(root: str | None) -> None:
    print(
        f"{'':14}{'supports':>18}{'confidences':>18}{'paper preset':>18}  peak memory"
    )
    for name in DATASETS:
        found, peak, before = in_own_process(time_mining, name, root)
        cells = "".join(f"{rules:>9,} {seconds:6.2f} s" for rules, seconds in found)
        print(f"{name:14}{cells}  {peak:,.0f} MB ({before:,.0f} before mining)")


def time_constants(name: str, root: str | None) -> tuple[list, list, float, float]:
    settings = ({}, {"min_confidence": 0.5})
    for chosen in settings:  # compiles
        mine_constants(load_training("Families", None), **chosen)
    data = load_training(name, root)
    before = peak_megabytes()
    found = []
    for chosen in settings[::-1]:
        start = time.perf_counter()
        rules = mine_constants(data, **chosen)
        found.append((len(rules), time.perf_counter() - start))
    peak = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.pt"
        start = time.perf_counter()
        rules.save(path)
        middle = time.perf_counter()
        ConstantRuleSet.load(path)
        files = [middle - start, time.perf_counter() - middle]
    return found[::-1], files, peak, before


def constants(root: str | None) -> None:
    print(f"{'':14}{'support 2':>21}{'confidence 0.5':>21}   save   load  peak memory")
    for name in DATASETS:
        found, files, peak, before = in_own_process(time_constants, name, root)
        cells = "".join(f"{rules:>12,} {seconds:6.2f} s" for rules, seconds in found)
        cells += "".join(f" {seconds:4.1f} s" for seconds in files)
        print(f"{name:14}{cells}  {peak:,.0f} MB ({before:,.0f} before mining)")


def time_scipy(root: str | None) -> tuple[float, float, int]:
    """Supports of random pairs of codes: a product, then a look-up of all facts."""
    from scipy.sparse import csr_matrix

    data = load_training("FB15k-237", root)
    warm_up()
    start = time.perf_counter()
    mine_rules(data, confidences=False)
    ours = time.perf_counter() - start

    head, rel, tail = (np.array(index) for index in flat_triples(data))
    size, num_relations = data["entity"].num_nodes, len(data.edge_types)
    steps = []
    for r in range(num_relations):
        chosen = rel == r
        ones = np.ones(chosen.sum(), bool)
        forward = csr_matrix((ones, (head[chosen], tail[chosen])), (size, size))
        steps += [forward, forward.T.tocsr()]
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, len(steps), (SCIPY_SAMPLE, 2))
    start = time.perf_counter()
    for first, second in pairs:
        product = steps[first] @ steps[second]
        holds = np.asarray(product[head, tail]).ravel()
        np.bincount(rel[holds], minlength=num_relations)
    return time.perf_counter() - start, ours, len(steps) ** 2


def scipy(root: str | None) -> None:
    seconds, ours, num_pairs = in_own_process(time_scipy, root)
    total = seconds * num_pairs / SCIPY_SAMPLE
    print(f"SciPy, {SCIPY_SAMPLE} of {num_pairs:,} pairs of codes   {seconds:8.2f} s")
    print(f"  extrapolated to all pairs          {total:8.0f} s")
    ratio = f"{total / ours:,.0f} x faster"
    print(f"mine_rules, supports                 {ours:8.2f} s, {ratio}")


def time_queries(root: str | None) -> list[tuple[str, int, int, float]]:
    data = load_training("FB15k-237", root)
    rules = mine_rules(data)
    features = PathFeatures(data, rules)
    head, rel, tail = (index.numpy() for index in flat_triples(data))
    found = []
    for side, entity, answer in (
        ("tails", head, features.tails),
        ("heads", tail, lambda tail, rel: features.heads(rel, tail)),
    ):
        queries = np.unique(np.stack([rel, entity]), axis=1)
        answer(queries[1, :8], queries[0, :8])
        start, entries = time.perf_counter(), 0
        for i in range(0, queries.shape[1], BATCH):
            part = queries[:, i : i + BATCH]
            entries += len(answer(part[1], part[0]).rule)
        seconds = time.perf_counter() - start
        found.append((side, queries.shape[1], entries, seconds))
    return found


def queries(root: str | None) -> None:
    found = in_own_process(time_queries, root)
    for side, number, entries, seconds in found:
        print(f"{side}: {number:,} queries, {entries:,} entries, {seconds:.2f} s")
    print(f"together {sum(seconds for *_, seconds in found):.2f} s")


def time_random(num_triples: int) -> tuple[int, float, float, float]:
    warm_up()
    rng = np.random.default_rng(0)
    num_entities, num_relations = num_triples // 5, 20
    rel = rng.integers(0, num_relations, num_triples)
    head, tail = rng.integers(0, num_entities, (2, num_triples))
    # Every fifth triple closes a path of two others, so that there are rules.
    closing = np.arange(0, num_triples - 2, 5)
    tail[closing + 1] = head[closing + 2]
    head[closing], tail[closing] = head[closing + 1], tail[closing + 2]
    rel[closing] = (rel[closing + 1] + rel[closing + 2]) % num_relations
    data = make_kb(
        [""] * num_entities,
        [f"r{i}" for i in range(num_relations)],
        tuple(torch.from_numpy(ids) for ids in (head, rel, tail)),
    )
    repeats = max(1, 200_000 // num_triples)
    start = time.perf_counter()
    for _ in range(repeats):
        mine_rules(data, confidences=False)
    middle = time.perf_counter()
    for _ in range(repeats):
        rules = mine_rules(data)
    end = time.perf_counter()
    return (
        len(rules),
        (middle - start) / repeats,
        (end - middle) / repeats,
        peak_megabytes(),
    )


def scaling(_: str | None) -> None:
    per_triple = []
    for exponent in range(4, 8):
        size = 10**exponent
        rules, supports, everything, peak = in_own_process(time_random, size)
        per_triple.append((supports / size, everything / size))
        print(
            f"10^{exponent} triples: {rules:,} rules, supports {supports:.3f} s "
            f"({1e6 * supports / size:.2f} us a triple), with confidences "
            f"{everything:.3f} s ({1e6 * everything / size:.2f} us), {peak:,.0f} MB"
        )
    for name, values in zip(("supports", "with confidences"), zip(*per_triple)):
        ends, most = values[-1] / values[0], max(values) / min(values)
        print(
            f"{name}: time per triple, 10^7 / 10^4 {ends:.2f}, most / least {most:.2f}"
        )


PARTS = {
    "datasets": datasets,
    "constants": constants,
    "scipy": scipy,
    "queries": queries,
    "scaling": scaling,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--root", help="where data sets are kept")
    options = parser.parse_args()
    for part in options.part:
        print(f"# {part}")
        PARTS[part](options.root)
    return 0


if __name__ == "__main__":
    sys.exit(main())
