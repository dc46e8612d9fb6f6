"""Seconds to evaluate on FB15k-237's test set, beside PyKEEN and PyG in the same run.

    KBLRN_DATA=... python benchmarks/evaluation.py [--root DIR] [--against CHECKOUT]

Filtered, both sides, 20,466 triples. PyKEEN's evaluator ranks with its DistMult
and is timed on some of the triples, PyG's ``test`` (unfiltered, tails only) on
a few; both are extrapolated. Needs the extra ``bench``. With ``--against``, only
this library is timed, in turns with that of another checkout.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from other_tree import OtherTree, serve
from torch_geometric.nn.kge import DistMult

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate

CHANNELS, TURNS = 100, 7
INSTANCES = ("l", "lr", "lrn")
NUM_FOR_PYKEEN, NUM_FOR_PYG = 2000, 200


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def time_pykeen(splits: dict) -> float:
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import DistMult as TheirDistMult
    from pykeen.triples import CoreTriplesFactory

    def triples(split: str) -> torch.Tensor:
        return torch.stack(flat_triples(splits[split], "edge_label_index"), dim=1)

    train = CoreTriplesFactory(
        triples("train"),
        num_entities=splits["train"]["entity"].num_nodes,
        num_relations=len(splits["train"].edge_types),
    )
    model = TheirDistMult(triples_factory=train, embedding_dim=CHANNELS)
    order = torch.randperm(
        len(triples("test")), generator=torch.Generator().manual_seed(0)
    )
    some = triples("test")[order[:NUM_FOR_PYKEEN]]
    return seconds(
        lambda: RankBasedEvaluator().evaluate(
            model=model,
            mapped_triples=some,
            additional_filter_triples=[
                triples("train"),
                triples("val"),
                triples("test"),
            ],
            batch_size=256,
            use_tqdm=False,
        )
    )


def evaluations(splits: dict) -> dict[str, Callable[[], float]]:
    """What evaluates each instance, and tells how long it took."""

    def timed(experts: str) -> Callable[[], float]:
        model = KBLRN.from_data(splits["train"], experts, CHANNELS)
        test, known = splits["test"], (splits["val"],)
        return lambda: seconds(lambda: evaluate(model, test, filter_with=known))

    return {experts: timed(experts) for experts in INSTANCES}


def compare_trees(options: argparse.Namespace, splits: dict) -> None:
    """Times this library and that of another checkout in turns."""
    words = ["--root", options.root] if options.root else []
    other = OtherTree(__file__, options.against, *words)
    print(f"{'':12}{'here':>10}{'there':>10}   here / there")
    for experts, ours in evaluations(splits).items():
        pairs = [(ours(), other.seconds(experts)) for _ in range(1 + TURNS)][1:]
        here, there = map(statistics.median, zip(*pairs))
        print(f"KBLRN {experts:6}{here:8.2f} s{there:8.2f} s{here / there:9.2f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument("--against", help="another checkout to compare with")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    splits = load_dataset("FB15k-237", options.root)
    if options.worker:
        serve(evaluations(splits))
        return 0
    if options.against:
        compare_trees(options, splits)
        return 0
    test = splits["test"]
    asked = flat_triples(test, "edge_label_index")
    number = asked[0].numel()

    pyg = DistMult(test["entity"].num_nodes, len(test.edge_types), CHANNELS)
    few = [index[:NUM_FOR_PYG] for index in asked]
    pyg.test(*few, 20000, log=False)  # first touches
    theirs = {
        "PyKEEN DistMult": time_pykeen(splits) * number / NUM_FOR_PYKEEN,
        "PyG DistMult (tails)": seconds(lambda: pyg.test(*few, 20000, log=False))
        * number
        / NUM_FOR_PYG,
    }
    for name, time_taken in theirs.items():
        print(
            f"{name:24}{time_taken:8.1f} s, {1e3 * time_taken / number:.2f} ms a triple"
        )
    for experts, timed in evaluations(splits).items():
        timed()  # compiles
        ours = timed()
        ratios = [f"{name} / it {taken / ours:.1f}" for name, taken in theirs.items()]
        each = f"{1e3 * ours / number:.2f} ms a triple"
        print(f"KBLRN {experts:18}{ours:8.1f} s, {each}; {', '.join(ratios)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
