"""Exact training by one process and by several, each with one thread.

    python benchmarks/processes.py [--entities 150000] [--experts l lrn]
        [--batches 50] [--processes 2]

On a knowledge base that ``scale_generator.py`` makes. Prints the time of a batch, how
far losses are apart, and the memory of the embeddings of a process.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scale_parts import Case, generate_files, import_files, sample

from kblrn_pyg.nn import KBLRN
from kblrn_pyg.shard import process_rank
from kblrn_pyg.training import fit, set_threads
from kblrn_pyg.training.process import join_processes

QUERIES = 128
ROUNDS = 2  # of each number of processes, in turns
WARM_UP = 5  # batches that compile, and remember walks


def train(folder: Path, experts: str, num_batches: int) -> None:
    """Trains in a process, alone or beside others, and prints what was measured."""
    set_threads(1)
    join_processes()
    case = Case(folder, num_batches, beside_busy=False)
    kb = case.splits()["train"]
    exact = {"num_negatives": None, "negatives": "triple", "sparse": False}
    model = case.model(kb, experts, **exact)
    losses: list[float] = []
    times: list[float] = []
    loss = model.loss

    def timed(*batch: Any, **kwargs: Any) -> Any:
        times.append(time.perf_counter())
        value = loss(*batch, **kwargs)
        losses.append(value.item())
        return value

    model.loss = timed  # type: ignore[method-assign]
    sizes: list[int] = []
    step = KBLRN.own_evidence

    def measured(self: KBLRN, *triples: Any) -> Any:
        tables = [one for name, one in self.named_parameters() if "node_emb" in name]
        sizes.append(sum(one.numel() * one.element_size() for one in tables))
        return step(self, *triples)

    KBLRN.own_evidence = measured  # type: ignore[method-assign]
    part = sample(kb, num_batches * QUERIES // 2)
    fit(model, part, epochs=1, batch_size=QUERIES)
    if process_rank() == 0:
        seconds = [b - a for a, b in zip(times[WARM_UP:-1], times[WARM_UP + 1 :])]
        found = {"seconds": seconds, "losses": losses, "bytes": sizes[0]}
        print(json.dumps(found), flush=True)


def run(folder: Path, experts: str, options: argparse.Namespace, number: int) -> Any:
    """Starts processes, and returns what the first one printed."""
    words = [sys.executable]
    if number > 1:
        words += ["-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node", str(number)]
    words += [__file__, "--worker", str(folder), "--experts", experts]
    words += ["--batches", str(options.batches)]
    done = subprocess.run(
        words,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(folder: Path, experts: str, options: argparse.Namespace) -> None:
    """Prints one process beside several."""
    found: dict[int, list[Any]] = {1: [], options.processes: []}
    for _ in range(ROUNDS):
        for number in found:
            found[number].append(run(folder, experts, options, number))
    seconds = {
        number: min(statistics.median(one["seconds"]) for one in several)
        for number, several in found.items()
    }
    one, several = (found[number][0] for number in (1, options.processes))
    apart = max(abs(a - b) for a, b in zip(one["losses"], several["losses"]))
    print(
        f"{experts:4} one process {1000 * seconds[1]:.0f} ms a batch, "
        f"{options.processes} processes {1000 * seconds[options.processes]:.0f} ms: "
        f"{seconds[1] / seconds[options.processes]:.2f} times as fast; losses of "
        f"{len(one['losses'])} batches at most {apart:.1e} apart; embeddings of a "
        f"process {several['bytes'] / one['bytes']:.2f} of all",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--entities", type=int, default=150_000)
    parser.add_argument("--experts", nargs="+", default=["l", "lrn"])
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker is not None:
        train(options.worker, options.experts[0], options.batches)
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate_files(options.entities, folder)
        import_files(Case(folder, options.batches, beside_busy=False))
        for experts in options.experts:
            compare(folder, experts, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
