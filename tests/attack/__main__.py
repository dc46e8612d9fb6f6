"""All attacks, many times: ``make attack`` prints how many trials failed."""

import argparse
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

from attack.processes import run_apart
from attack.trials import Outcome

from kblrn_pyg.table import format_table

# How often each is tried, of 100,000, and about how many milliseconds one takes.
TRIALS = {
    "ids.attack_models": (14_000, 10),
    "ids.attack_experts": (8_000, 15),
    "ids.attack_features": (10_000, 12),
    "tables.attack_tables": (15_500, 2),
    "tables.attack_columns": (4_000, 1),
    "files.attack_bits": (10_000, 8),
    "files.attack_lengths": (3_000, 7),
    "files.attack_contents": (2_000, 120),
    "files.attack_pickles": (3_000, 20),
    "readers.attack_triples": (9_000, 15),
    "readers.attack_numbers": (6_000, 25),
    "readers.attack_rules": (6_000, 20),
    "readers.attack_names": (2_000, 10),
    "readers.attack_parquet": (1_500, 10),
    "readers.attack_parquet_bits": (1_000, 10),
    "readers.attack_folders": (1_200, 20),
    "readers.attack_updates": (1_000, 25),
    "readers.attack_recipes": (2_000, 15),
    "readers.attack_trials": (500, 40),
    "readers.attack_settings": (300, 40),
}
# A process for as many, so that a crash ends few of them; one begins in this time.
AT_ONCE, START_MILLISECONDS = 4000, 8000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fraction", type=float, default=1.0, help="of all trials")
    parser.add_argument("--seed", type=int, default=1, help="of the first process")
    parser.add_argument("--attack", action="append", help="only this one (repeatable)")
    parser.add_argument(
        "--processes", type=int, default=os.cpu_count(), help="at once (default: cores)"
    )
    options = parser.parse_args()
    names = options.attack or list(TRIALS)
    trials_of = {one: max(1, int(TRIALS[one][0] * options.fraction)) for one in names}
    rows = {one: [_title(one), 0, 0, 0.0] for one in names}
    failures: list[str] = []
    parts = list(_parts(trials_of, options.seed))
    progress = Progress(sum(_cost(one, number) for one, number, _ in parts))
    with ThreadPoolExecutor(options.processes) as pool:
        for future in as_completed([pool.submit(_attack, *part) for part in parts]):
            attack, number, seed, found, seconds = future.result()
            row = rows[attack]
            row[1:] = row[1] + found.trials, row[2], row[3] + seconds
            if found.failure:
                row[2] += 1
                failures.append(f"{attack}, seed {seed}: {found.failure}")
            progress.add(_cost(attack, number))
            told = f"{row[0]}: {row[1]:,} trials, {row[2]} failures; {progress}"
            print(told, flush=True)
    table = [[*row[:3], round(row[3])] for row in rows.values()]
    table.append(["all", *(sum(row[i] for row in table) for i in (1, 2, 3))])
    print(format_table(["attack", "trials", "failures", "seconds"], table))
    print(f"{progress.minutes():.0f} minutes, {options.processes} processes at once")
    for failure in failures:
        print(f"\n{failure}")
    raise SystemExit(bool(failures))


def _parts(trials_of: dict[str, int], seed: int) -> Iterator[tuple[str, int, int]]:
    """Yields each attack, how often a process tries it, and by which seed."""
    for attack, trials in trials_of.items():
        for part, begin in enumerate(range(0, trials, AT_ONCE)):
            yield attack, min(AT_ONCE, trials - begin), seed + part


def _attack(
    attack: str, number: int, seed: int
) -> tuple[str, int, int, Outcome, float]:
    start = time.perf_counter()
    found = run_apart({attack: number}, seed)[attack]
    return attack, number, seed, found, time.perf_counter() - start


def _cost(attack: str, number: int) -> float:
    return START_MILLISECONDS + number * TRIALS[attack][1]


def _title(attack: str) -> str:
    return attack.replace(".attack_", ": ")


class Progress:
    """Tells how long it has taken, and about how long the rest will take."""

    def __init__(self, cost: float) -> None:
        self.total, self.done = cost, 0.0
        self.start = time.perf_counter()

    def add(self, cost: float) -> None:
        self.done += cost

    def minutes(self) -> float:
        return (time.perf_counter() - self.start) / 60

    def __str__(self) -> str:
        so_far = self.minutes()
        left = so_far * (self.total - self.done) / self.done
        return f"{so_far:.0f} min so far, about {left:.0f} min left"


if __name__ == "__main__":
    main()
