"""All attacks, many times: ``make attack`` prints how many trials failed."""

import argparse
import time

from attack.processes import run_apart

from kblrn_pyg.table import format_table

# Out of 100,000 trials; those of one row take about the same time each.
TRIALS = {
    "ids.attack_models": 20_000,
    "ids.attack_experts": 10_000,
    "ids.attack_features": 15_000,
    "files.attack_bits": 10_000,
    "files.attack_lengths": 3_000,
    "files.attack_contents": 3_000,
    "files.attack_pickles": 4_000,
    "readers.attack_triples": 12_000,
    "readers.attack_numbers": 8_000,
    "readers.attack_rules": 10_000,
    "readers.attack_names": 4_500,
    "readers.attack_settings": 500,
}
# A process for as many, so that a crash ends few of them.
AT_ONCE = 2500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fraction", type=float, default=1.0, help="of all trials")
    parser.add_argument("--seed", type=int, default=1, help="of the first process")
    parser.add_argument("--attack", action="append", help="only this one (repeatable)")
    options = parser.parse_args()
    rows, failures = [], []
    for attack in options.attack or TRIALS:
        left, trials, failed = int(TRIALS[attack] * options.fraction), 0, 0
        seed, start = options.seed, time.perf_counter()
        while left > 0:
            found = run_apart({attack: min(left, AT_ONCE)}, seed)[attack]
            trials, left, seed = trials + found.trials, left - AT_ONCE, seed + 1
            if found.failure:
                failed += 1
                failures.append(f"{attack}, seed {seed - 1}: {found.failure}")
        seconds = round(time.perf_counter() - start)
        rows.append([attack.replace(".attack_", ": "), trials, failed, seconds])
        print(f"{rows[-1][0]}: {trials:,} trials, {failed} failures", flush=True)
    rows.append(["all", *(sum(row[i] for row in rows) for i in (1, 2, 3))])
    print(format_table(["attack", "trials", "failures", "seconds"], rows))
    for failure in failures:
        print(f"\n{failure}")
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
