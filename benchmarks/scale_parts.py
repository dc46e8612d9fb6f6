"""What ``scale.py`` measures, one part at a time.

A part is a function of a :class:`Case`; it returns its figures by name. Each is run
in a process of its own, so that its memory is its own, too.
"""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scale_generator import Size, generate, write_csv
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import ask, flat_triples, make_kb, read_kb
from kblrn_pyg.datasets import Families, load_dataset, write_local_kb
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.rules import RuleSet, mine_rules
from kblrn_pyg.training import Progress, Run, fit

CHANNELS, BATCH, NEGATIVES = 100, 1024, 1024
SAMPLED = {"num_negatives": NEGATIVES, "negatives": "shared", "sparse": True}
BY_ROWS = {"optimizer": "adagrad", "lr": 0.05}
ROUNDS = 3  # epochs that are timed, behind one that compiles and prepares
PRODUCTS_A_ROUND = 5
# The exact loss: up to this number of entities, and by batches of that many scores.
MOST_FOR_EXACT, SCORES = 200_000, 20_000_000
MOST_FOR_CONFIDENCES = 1_000_000

Figures = dict[str, float]


@dataclass(frozen=True)
class Case:
    r"""A knowledge base to measure with.

    Args:
        folder (Path): Where its files are.
        num_batches (int): The number of batches in a round of training.
        beside_busy (bool): Whether to train beside a busy process, too.
    """

    folder: Path
    num_batches: int
    beside_busy: bool

    def splits(self) -> dict[str, HeteroData]:
        """Loads what was imported, as the commands do."""
        return load_dataset(str(self.folder / "kb"))

    def model(self, train: HeteroData, experts: str, **settings: Any) -> KBLRN:
        """Makes a model with the rules that were mined."""
        torch.manual_seed(0)
        if "r" in experts:
            settings["rules"] = self._rules(train)
        settings = SAMPLED | settings
        return KBLRN.from_data(train, experts, CHANNELS, **settings)

    def _rules(self, train: HeteroData) -> RuleSet:
        path = self.folder / "rules.pt"
        if not path.exists():
            mine_rules(train, confidences=False).save(path)
        return RuleSet.load(path)


def generate_files(num_entities: int, folder: Path) -> Figures:
    start = time.perf_counter()
    kb = generate(Size.of(num_entities))
    write_csv(kb, folder)
    return {
        "seconds": time.perf_counter() - start,
        "triples": len(kb.train[0]),
        "relations": kb.size.num_relations,
    }


def import_files(case: Case) -> Figures:
    files = [case.folder / f"{name}.csv" for name in ("train", "valid", "test")]
    files.append(case.folder / "numerical.csv")
    start = time.perf_counter()
    write_local_kb(case.folder / "kb", *read_kb(*files))
    seconds = time.perf_counter() - start
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    return {"seconds": seconds, "speed": megabytes / seconds}


def mine(case: Case, confidences: bool = False) -> Figures:
    mine_rules(Families()[0], confidences=confidences)  # compiles
    train = case.splits()["train"]
    start = time.perf_counter()
    rules = mine_rules(train, confidences=confidences)
    seconds = time.perf_counter() - start
    if not confidences:
        rules.save(case.folder / "rules.pt")
    return {"seconds": seconds, "rules": len(rules)}


def mine_with_confidences(case: Case) -> Figures:
    return mine(case, confidences=True)


def sampled(experts: str) -> Callable[[Case], Figures]:
    """Trains with negatives that a batch shares."""

    def run(case: Case) -> Figures:
        train = case.splits()["train"]
        model = case.model(train, experts)
        part = sample(train, case.num_batches * BATCH)
        # A product forward and two back for each of the sides.
        products = Products(BATCH, NEGATIVES, sides=2)
        times = time_training(case, model, part, BATCH, products)
        num_triples = flat_triples(part)[0].numel()
        return times.figures(num_triples / BATCH, num_triples)

    return run


def exact(experts: str) -> Callable[[Case], Figures]:
    """Trains with the loss over all entities, by batches of queries."""

    def run(case: Case) -> Figures:
        train = case.splits()["train"]
        exact = {"num_negatives": None, "negatives": "triple", "sparse": False}
        model = case.model(train, experts, **exact)
        size = max(1, min(512, SCORES // model.num_nodes))
        part = sample(train, case.num_batches * size // 2)
        products = Products(size, model.num_nodes, sides=1)
        times = time_training(case, model, part, size, products)
        # Of a sample, queries have fewer answers, which take no time: an epoch is
        # as long as its queries.
        num_queries = count_queries(part)
        share = num_queries / count_queries(train)
        all_triples = flat_triples(train)[0].numel()
        return times.figures(num_queries / size, share * all_triples)

    return run


def evaluation(case: Case) -> Figures:
    splits = case.splits()
    model, test = case.model(splits["train"], "lrn"), splits["test"]
    filter_with = [splits["val"]]
    few = ask(test, tuple(i[:4] for i in flat_triples(test, "edge_label_index")))
    evaluate(model, few, filter_with)  # compiles
    start = time.perf_counter()
    table = evaluate(model, test, filter_with)
    return {"seconds": time.perf_counter() - start, "triples": len(table) / 2}


def whole_way(case: Case) -> Figures:
    """Trains a tenth of an epoch, continues from the file, predicts and explains."""
    splits = case.splits()
    train, num_triples = splits["train"], flat_triples(splits["train"])[0].numel()
    tenth, run = sample(train, num_triples // 10), Run(case.folder / "run")
    watch = Stopwatch()
    model = case.model(train, "lrn")
    watch.lap("build")
    fit(model, tenth, run=run, epochs=1, batch_size=BATCH, **BY_ROWS)
    watch.lap("train")
    model = None  # both would not be in memory
    model = case.model(train, "lrn")
    watch.lap("build again")
    # Nothing is left to do.
    fit(model, tenth, run=run, epochs=1, batch_size=BATCH, **BY_ROWS)
    watch.lap("resume")
    model = None
    model = KBLRN.load(run.model_path)
    watch.lap("load")
    ids = flat_triples(splits["test"], "edge_label_index")
    head, rel, tail = (int(index[0]) for index in ids)
    model.predict_tails(head, rel)
    watch.lap("predict")
    model.explain(head, rel, tail)
    watch.lap("explain")
    return watch.laps | {"file": run.model_path.stat().st_size / 1e6}


PARTS: dict[str, Callable[[Case], Figures]] = {
    "import": import_files,
    "mine": mine,
    "l": sampled("l"),
    "lrn": sampled("lrn"),
    "exact l": exact("l"),
    "exact lrn": exact("lrn"),
    "evaluate": evaluation,
    "whole": whole_way,
    "confidences": mine_with_confidences,
}


def parts_for(num_entities: int) -> list[str]:
    """Returns what is measured at a size."""
    limits = {"exact": MOST_FOR_EXACT, "confidences": MOST_FOR_CONFIDENCES}
    return [
        part
        for part in PARTS
        if num_entities <= limits.get(part.split()[0], num_entities)
    ]


def measure(part: str, case: Case) -> Figures:
    r"""Measures one part, and the memory of the process behind it.

    Args:
        part (str): One of :obj:`PARTS`.
        case (Case): The knowledge base.
    """
    figures = PARTS[part](case)
    status = Path("/proc/self/status").read_text()
    for name, key in (("resident", "VmRSS:"), ("peak", "VmHWM:")):
        figures[name] = int(status.split(key)[1].split()[0]) / 1024
    return figures


def sample(kb: HeteroData, number: int) -> HeteroData:
    """Returns a knowledge base of some of the facts over the same entities.

    Half a minute of training must be enough, and an epoch may take hours.
    """
    triples = flat_triples(kb)
    rows = np.random.default_rng(0).permutation(triples[0].numel())[:number]
    entity, relations = kb["entity"], [relation for _, relation, _ in kb.edge_types]
    chosen = [index[torch.from_numpy(rows)] for index in triples]
    return make_kb(entity.name, relations, tuple(chosen), entity.x, kb.attribute_names)


def count_queries(kb: HeteroData) -> int:
    """Returns the number of distinct queries of both sides."""
    head, rel, tail = (index.numpy() for index in flat_triples(kb))
    number = kb["entity"].num_nodes
    return sum(len(np.unique(rel * number + entity)) for entity in (head, tail))


class Products:
    r"""The matrix products of a batch, which no training can do without.

    Args:
        num_queries (int): The number of queries.
        num_candidates (int): The number of candidates of each.
        sides (int): How often it is done in a batch.
    """

    def __init__(self, num_queries: int, num_candidates: int, sides: int) -> None:
        self.query = torch.randn(num_queries, CHANNELS)
        self.table = torch.randn(num_candidates, CHANNELS)
        self.grad = torch.randn(num_queries, num_candidates)
        self.sides = sides

    def seconds(self) -> float:
        start = time.perf_counter()
        for _ in range(self.sides):
            _ = self.query @ self.table.t()
            _ = self.grad @ self.table
            _ = self.grad.t() @ self.query
        return time.perf_counter() - start


class Busy:
    """Another process that takes a core whenever it is not stopped."""

    def __enter__(self) -> "Busy":
        self.process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.stop()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


class Times(NamedTuple):
    r"""The seconds of each round.

    Args:
        first (float): That of the first one, which compiles and prepares.
        alone (list): Those with nothing else going on.
        beside (list): Those beside a busy process.
        products (list): Those of the matrix products of a batch.
    """

    first: float
    alone: list[float]
    beside: list[float]
    products: list[float]

    def figures(self, num_batches: float, num_triples: float) -> Figures:
        """Brings rounds of so many batches and triples to one of them."""
        alone = statistics.median(self.alone)
        found = {
            "prepare": max(0.0, self.first - alone),
            "batch": 1000 * alone / num_batches,
            "speed": num_triples / alone,
            "products": 1000 * statistics.median(self.products),
        }
        if self.beside:
            found["beside"] = 1000 * statistics.median(self.beside) / num_batches
        return found


def time_training(
    case: Case, model: KBLRN, part: HeteroData, batch_size: int, products: Products
) -> Times:
    """Trains some epochs, in turns with the products, and beside a busy process."""
    found: list[float] = []
    with Busy() as busy:

        def between(progress: Progress) -> None:
            busy.stop()
            products.seconds()  # brings its matrices back into the cache
            found.extend(products.seconds() for _ in range(PRODUCTS_A_ROUND))
            if case.beside_busy and progress.epoch % 2:
                busy.go_on()

        epochs = 1 + ROUNDS * (1 + case.beside_busy)
        settings = {"epochs": epochs, "batch_size": batch_size, "validate_every": 1}
        settings |= {} if model.is_exact else BY_ROWS
        result = fit(model, part, callbacks=[between], **settings)
    ends = [0.0, *(line["seconds"] for line in result.history)]
    first, *others = np.diff(ends).tolist()
    # Behind an epoch with an odd number, the other process is busy.
    beside = others[0::2] if case.beside_busy else []
    alone = others[1::2] if case.beside_busy else others
    return Times(first, alone, beside, found)


class Stopwatch:
    """Takes the seconds from lap to lap."""

    def __init__(self) -> None:
        self.laps: Figures = {}
        self.start = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self.start = now - self.start, now
