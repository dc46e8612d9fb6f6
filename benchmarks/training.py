"""Seconds an epoch on FB15k-237, beside PyKEEN and PyG in the same run.

    KBLRN_DATA=... python benchmarks/training.py [--batches 12] [--root DIR]
        [--against CHECKOUT] [--scorers [NAME ...] [--losses sampled exact]]

All train DistMult with embeddings of size 100, batches of 512 and Adam. PyKEEN
and KBLRN's sampled loss draw 500 negatives for each triple and side; KBLRN's
exact loss is over all entities, in batches of 512 distinct queries; PyG's own
loss has one negative a triple and is there for reference. Some batches are
timed, in turns so that a noisy minute hits everybody, and extrapolated to an
epoch. The last lines tell how far the exact loss is from its three matrix
products alone. Needs the extra ``bench``. ``--alone`` compares instances of this
library with the first of them; with ``--against``, they are timed in turns with
those of another checkout. ``--scorers`` compares each scorer and encoder with
PyKEEN's model of the same name.
"""

import argparse
import multiprocessing
import statistics
import sys
from pathlib import Path

import torch
from contestants import PAUSE, TURN, Contestant, adam_of, as_in_fit, forever, take_turn
from other_tree import OtherTree, serve
from torch import Tensor
from torch_geometric.nn.kge import DistMult
from training_scorers import BATCH, LOSSES, MODELS, NEGATIVES, compare_scorers, pykeen

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.training.process import keep_freed_memory

CHANNELS = 100
# What may stand behind the letters of an instance.
OPTIONS = {
    "layer": {"numerical": "layer"},
    "t0.1": {"threshold": 0.1},
    "kinds": {"evidence_kinds": True},
}


def kblrn(
    data: object,
    experts: str,
    num_negatives: int | None,
    negatives: str = "triple",
) -> Contestant:
    torch.manual_seed(0)
    letters, *others = experts.split(":")
    given = {name: value for one in others for name, value in OPTIONS[one].items()}
    model = KBLRN.from_data(
        data,
        letters,
        CHANNELS,
        num_negatives=num_negatives,
        negatives=negatives,
        **given,
    )
    optimizer = adam_of(model)
    loader = model.loader(
        *flat_triples(data), by_query=model.is_exact, batch_size=BATCH, shuffle=True
    )
    batches = forever(loader)

    def step() -> None:
        optimizer.zero_grad()
        with as_in_fit(model):
            model.loss(*next(batches)).backward()
            optimizer.step()

    kind = "exact" if num_negatives is None else "sampled"
    kind = "shared" if negatives == "shared" else kind
    return Contestant(f"KBLRN {experts}, {kind}", len(loader), step)


def our_contestants(data: object, instances: list[str]) -> list[Contestant]:
    """Every loss, with one expert after the other."""
    losses: list[tuple] = [(None,), (NEGATIVES,), (NEGATIVES, "shared")]
    return [kblrn(data, experts, *loss) for loss in losses for experts in instances]


def compare_trees(options: argparse.Namespace, data: object) -> None:
    """Times this library and that of another checkout in turns."""
    words = ["--root", options.root] if options.root else []
    words += ["--instances", *options.instances]
    other = OtherTree(__file__, options.against, *words)
    ours = our_contestants(data, options.instances)
    timed: dict[str, tuple[list[float], list[float]]]
    timed = {one.name: ([], []) for one in ours}
    for number in range(1 + -(-options.batches // TURN)):
        for one in ours:
            here = take_turn(one.run)
            there = take_turn(lambda name=one.name: other.seconds(name))
            if number > 0:  # behind compilation and first touches
                for seconds, more in zip(timed[one.name], (here, there)):
                    seconds += more
    print(f"{'':28}{'a batch':>10}{'there':>10}   here / there")
    for name, both in timed.items():
        # The quicker batches: what is slow was disturbed by something else.
        here, there = (1000 * statistics.quantiles(one, n=4)[0] for one in both)
        print(f"{name:28}{here:7.1f} ms{there:7.1f} ms{here / there:9.2f}")


def compare_instances(options: argparse.Namespace, data: object) -> None:
    """Times instances of this library in turns, by the exact loss.

    A turn has several batches, which follow each other as in an epoch: after a batch
    of another instance, nothing is where processors have it at hand.
    """
    ours = [kblrn(data, experts, None) for experts in options.instances]
    for one in ours:
        one.warm_up()
    for _ in range(-(-options.batches // TURN)):
        for one in ours:
            one.take_turn(PAUSE, TURN)
    print(f"{'':28}{'a batch':>10}   / {ours[0].name}")
    for one in ours:
        print(
            f"{one.name:28}{1000 * one.batch:7.1f} ms{one.batch / ours[0].batch:8.2f}"
        )


def pyg(data: object) -> Contestant:
    model = DistMult(data["entity"].num_nodes, len(data.edge_types), CHANNELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loader = model.loader(*flat_triples(data), batch_size=BATCH, shuffle=True)
    batches = forever(loader)

    def step() -> None:
        optimizer.zero_grad()
        model.loss(*next(batches)).backward()
        optimizer.step()

    return Contestant("PyG DistMult, 1 negative", len(loader), step)


def matrix_products(num_nodes: int, num_batches: int) -> Contestant:
    query = torch.randn(BATCH, CHANNELS)
    table = torch.randn(num_nodes, CHANNELS)
    grad = torch.randn(BATCH, num_nodes)

    def step() -> tuple[Tensor, ...]:
        return query @ table.t(), grad @ table, grad.t() @ query

    return Contestant("three matrix products alone", num_batches, step)


def peak_of_training(name: str, root: str | None) -> float:
    """Trains some batches with either loss, alone in a process."""
    data = load_dataset(name, root)["train"]
    for num_negatives in (None, NEGATIVES):
        one = kblrn(data, "lrn", num_negatives)
        for _ in range(4):
            one.step()
    # ru_maxrss would remember the process that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batches", type=int, default=12, help="batches to time")
    parser.add_argument("--root", help="where data sets are kept")
    parser.add_argument(
        "--instances",
        nargs="+",
        default=["l", "lr", "lrn"],
        help="of KBLRN; lrn:layer has layers of numbers, lrne:kinds kinds of evidence",
    )
    parser.add_argument(
        "--alone", action="store_true", help="time instances by the exact loss alone"
    )
    parser.add_argument(
        "--scorers",
        nargs="*",
        choices=MODELS,
        metavar="SCORER",
        help=f"time scorers beside PyKEEN's: {', '.join(MODELS)} (default: all)",
    )
    parser.add_argument(
        "--losses", nargs="+", choices=LOSSES, default=LOSSES, help="of --scorers"
    )
    parser.add_argument("--against", help="another checkout to compare with")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    keep_freed_memory()  # as 'fit' does
    data = load_dataset("FB15k-237", options.root)["train"]
    if options.worker:
        serve({one.name: one.run for one in our_contestants(data, options.instances)})
        return 0
    if options.against:
        compare_trees(options, data)
        return 0
    if options.scorers is not None:
        scorers = options.scorers or list(MODELS)
        compare_scorers(data, scorers, options.losses, options.batches)
        return 0
    if options.alone:
        compare_instances(options, data)
        return 0
    ours = our_contestants(data, options.instances)
    theirs = pykeen(data, "distmult", "sampled")
    products = matrix_products(data["entity"].num_nodes, ours[0].num_batches)
    everybody = [*ours, pyg(data), products, theirs]
    for one in everybody:
        one.warm_up()
    for _ in range(options.batches):
        for one in everybody:
            one.run()
    print(f"{'':28}{'a batch':>10}{'batches':>9}{'an epoch':>10}   PyKEEN / it")
    for one in everybody:
        print(
            f"{one.name:28}{1000 * one.batch:7.0f} ms{one.num_batches:9,}"
            f"{one.epoch:8.1f} s{theirs.epoch / one.epoch:11.1f}"
        )
    for one in ours[: len(options.instances)]:
        ratio = one.batch / products.batch
        print(f"{one.name} / matrix products alone: {ratio:.2f}")
    for name in ("FB15k-237", "FB15k"):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            peak = pool.apply(peak_of_training, (name, options.root))
        print(f"peak memory of training lrn on {name}: {peak:,.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
