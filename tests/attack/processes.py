"""Attacks in processes of their own, so that a crash is a failure and not the end."""

import contextlib
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from attack.trials import Outcome, run

_MAX_BYTES = 8 << 30
TESTS = Path(__file__).parents[1]


def run_apart(
    attacks: Mapping[str, int], number: int = 0, minutes: int = 30
) -> dict[str, Outcome]:
    r"""Runs attacks in one other process; a crash is a failure of the one it is in.

    Args:
        attacks (dict): How often to try each attack, by its module and name.
        number (int, optional): What the inputs are drawn by.
        minutes (int, optional): After which it is stopped.
    """
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    # Threads of torch wait for each other for longer than such small tensors take.
    environment |= {"OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-X", "faulthandler", "-m", "attack.processes"]
    done = subprocess.run(
        [*words, json.dumps(attacks), str(number)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60 * minutes,
        env=environment,
    )
    found = {}
    for line in done.stdout.splitlines():
        name, trials, outcomes, failure = json.loads(line)
        found[name] = Outcome(trials, Counter(outcomes), failure)
    if done.returncode != 0:
        name = next(name for name in attacks if name not in found)
        reason = f"exit code {done.returncode}: {done.stderr.strip()[:500]}"
        found[name] = Outcome(attacks[name], failure=reason)
    return found


def main() -> None:
    # What takes more is refused for want of memory, instead of ending other processes.
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_BYTES, _MAX_BYTES))
    attacks, number = json.loads(sys.argv[1]), int(sys.argv[2])
    for attack, trials in attacks.items():
        module, name = attack.split(".")
        # What an attack prints is none of its outcome.
        with contextlib.redirect_stdout(sys.stderr):
            found = run(
                getattr(import_module(f"attack.{module}"), name), trials, number
            )
        line = [attack, found.trials, found.outcomes, found.failure]
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
