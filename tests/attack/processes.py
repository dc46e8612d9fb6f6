"""Attacks in processes of their own, so that a crash is a failure and not the end."""

import json
import os
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

from attack.trials import Outcome, run

TESTS = Path(__file__).parents[1]


def run_apart(attack: str, trials: int, number: int = 0, minutes: int = 20) -> Outcome:
    r"""Runs an attack in another process.

    Args:
        attack (str): Its module and name.
        trials (int): How often to try.
        number (int, optional): What the inputs are drawn by.
        minutes (int, optional): After which it is stopped.
    """
    paths = [str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    words = [sys.executable, "-X", "faulthandler", "-m", "attack.processes"]
    done = subprocess.run(
        [*words, attack, str(trials), str(number)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60 * minutes,
        env=environment,
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        reason = next((line for line in lines if line.startswith("Fatal")), lines[-1:])
        return Outcome(trials, Counter(), f"exit code {done.returncode}: {reason}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Outcome(found["trials"], Counter(found["outcomes"]), found["failure"])


def main() -> None:
    attack, trials, number = sys.argv[1:]
    module, name = attack.split(".")
    found = run(
        getattr(import_module(f"attack.{module}"), name), int(trials), int(number)
    )
    print(json.dumps(vars(found)))


if __name__ == "__main__":
    main()
