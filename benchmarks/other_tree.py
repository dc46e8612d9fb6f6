"""Another checkout of the library, timed in turns with this one.

Two versions cannot live in one process: the other one runs in a process of its
own, does a step whenever it is told to, and tells how long it took.
"""

import os
import subprocess
import sys
from pathlib import Path


class OtherTree:
    r"""A script of this folder, run with the package of another checkout.

    Args:
        script (str): The script; with :obj:`--worker` it reads names of steps,
            one a line, and answers each with its seconds.
        tree (str): The other checkout.
        *words (str): Further words behind the script.
    """

    def __init__(self, script: str, tree: str, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(Path(script).resolve()), "--worker", *words],
            env=os.environ | {"PYTHONPATH": str(Path(tree).resolve())},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, step: str) -> float:
        r"""Does a step and returns how long it took.

        Args:
            step (str): The name of the step.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{step}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the other tree died doing {step!r}")
        return float(line)


def serve(steps: dict[str, object]) -> None:
    r"""Does steps by name until there are no more lines.

    Args:
        steps (dict): What to call for each name; it returns seconds.
    """
    for line in sys.stdin:
        print(steps[line.strip()](), flush=True)  # type: ignore[operator]
