"""Kills real commands at random moments: ``make kill-test``.

Each command writes something. A process of it is killed, with no chance to clean up,
at a random moment of the time that it takes; then it must have left what was there
before, or what an undisturbed one leaves, and be able to run again to the same end.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kblrn_pyg.data import DataError
from kblrn_pyg.data.store import load_splits
from kblrn_pyg.evaluation import RankTable
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.table import format_table
from kblrn_pyg.training.checkpoint import load_checkpoint

_TRAIN = "--experts lr --hidden-channels 8 --num-negatives 20 --validate-every 1 --lr 0.05".split()
_TESTS = Path(__file__).parents[1]
_PATHS = os.pathsep.join([str(_TESTS), str(_TESTS.parent)])
# Hidden files that a killed process could not remove are not read by anything.
_HALF = ".*"


@dataclass(frozen=True)
class Command:
    """A command, and the file or folder that it writes."""

    words: tuple[str, ...]
    out: str
    again: tuple[str, ...] = ()  # added where there is something to continue
    processes: int = 1
    begins_with: str = ""  # a folder that is copied to where it writes
    overwrites: bool = True  # or it refuses to write where there is anything
    module: str = "kblrn_pyg.cli"


# Two stages that learn apart, and are multiplied.
RECIPE = {
    "name": "own",
    "stages": [
        {
            "experts": letters,
            "model": {"num_negatives": "all", **model},
            "training": {"epochs": 2, "validate_every": 1, "lr": 0.01},
        }
        for letters, model in (("l", {"hidden_channels": 8}), ("re", {}))
    ],
}


def commands(epochs: int) -> dict[str, Command]:
    train = ("train", "kb", *_TRAIN, "--epochs", str(epochs), "--out", "run")
    together = (*train, "--negatives", "shared")  # of processes
    files = ("--train", "facts.tsv", "--holdout", "0.1", "--numerical", "numbers.tsv")
    return {
        "import": Command(("import", *files, "--out", "new"), "new", overwrites=False),
        "mine .tsv": Command(("mine", "kb", "--out", "rules.tsv"), "rules.tsv"),
        "mine .pt": Command(("mine", "kb", "--out", "rules.pt"), "rules.pt"),
        "train": Command(train, "run", ("--resume",)),
        "torchrun": Command(together, "run", ("--resume",), processes=2),
        "predict": Command(
            ("predict", "done", "e1", "r0", "?", "--out", "some.csv"), "some.csv"
        ),
        "complete": Command(("complete", "done", "--out", "all.csv"), "all.csv"),
        "explain": Command(
            ("explain", "done", "e1", "r0", "e2", "--out", "why.txt"), "why.txt"
        ),
        "evaluate": Command(("evaluate", "done", "--json", "m.json"), "m.json"),
        "report": Command(("report", "done", "--out", "page.html"), "page.html"),
        "complete .parquet": Command(
            ("complete", "done", "--out", "all.parquet"), "all.parquet"
        ),
        "complete .nt": Command(("complete", "done", "--out", "all.nt"), "all.nt"),
        "score": Command(("score", "done", "facts.tsv", "--out", "s.csv"), "s.csv"),
        "update": Command(
            ("update", "done", "--triples", "more.tsv", "--out", "updated.pt"),
            "updated.pt",
        ),
        "calibrate": Command(
            ("calibrate", "calibrated"), "calibrated", begins_with="done"
        ),
        "recipe": Command(
            ("train", "kb", "--recipe", "recipe.json", "--out", "staged"),
            "staged",
            ("--resume",),
        ),
        "tune": Command(
            ("tune", "kb", "--recipe", "recipe.json", "--trials", "3")
            + ("--hidden-channels", "8", "--epochs", "1", "--out", "tuned"),
            "tuned",
        ),
        "data set": Command(("processed",), "processed", module="attack.processing"),
    }


class Harness:
    """A folder in which commands are killed."""

    def __init__(self, folder: Path, epochs: int, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        self.commands = commands(epochs)
        self.ends: dict[str, Any] = {}  # what undisturbed commands leave
        self.seconds: dict[str, float] = {}
        self._write_facts()
        self._run(("import", *self.commands["import"].words[1:-1], "kb"))
        train = self.commands["train"].words
        self._run((*train[:-1], "done"))

    def _write_facts(self) -> None:
        number = random.Random(0)
        # Neighbours on a circle, so that there is something to learn.
        facts = {
            (h, r, (h + r + i) % 60)
            for h in range(60)
            for r in range(4)
            for i in range(4)
        }
        lines = [f"e{h}\tr{r}\te{t}\n" for h, r, t in sorted(facts)]
        (self.folder / "facts.tsv").write_text("".join(lines))
        values = [f"e{i}\tborn\t{number.gauss(1900, 50):.1f}\n" for i in range(60)]
        (self.folder / "numbers.tsv").write_text("".join(values))
        (self.folder / "more.tsv").write_text("new\tr0\te1\ne2\tr1\tnew\n")
        (self.folder / "recipe.json").write_text(json.dumps(RECIPE))

    def _start(self, command: Command | tuple[str, ...]) -> "subprocess.Popen[bytes]":
        words, processes, module = command, 1, "kblrn_pyg.cli"
        if isinstance(command, Command):
            words, processes = command.words, command.processes
            module = command.module
            if command.again and (self.folder / command.out / "settings.json").exists():
                words = (*words, *command.again)
        begin = [sys.executable, "-m", module]
        if processes > 1:
            begin = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
            begin += [f"--nproc-per-node={processes}", "-m", module]
        return subprocess.Popen(
            [*begin, *words],  # type: ignore[misc]
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": _PATHS},
        )

    def _run(self, command: Command | tuple[str, ...]) -> None:
        process = self._start(command)
        _, errors = process.communicate(timeout=1200)
        if process.returncode != 0:
            raise RuntimeError(f"{command} failed: {errors.decode()[-2000:]}")

    def prepare(self, name: str) -> None:
        """Runs a command undisturbed, for its end and its time."""
        command = self.commands[name]
        self._remove(command)
        start = time.perf_counter()
        self._run(command)
        self.seconds[name] = time.perf_counter() - start
        self.ends[name] = self._end(command)

    def kill(self, name: str) -> str:
        """Kills a command once, looks at what it left, and runs it to its end."""
        command, out = self.commands[name], self.folder / self.commands[name].out
        self._remove(command)
        old = self.random.random() < 0.5 and out.suffix != ""
        if old:
            out.write_text("old\n")
        process = self._start(command)
        # Most of the time is that of imports; files are written in the rest.
        begin = self.random.choice([0.0, 0.6]) * self.seconds[name]
        time.sleep(self.random.uniform(begin, 1.05 * self.seconds[name]))
        done = process.poll() is not None
        if not done:
            _kill_all(process.pid)
        process.communicate(timeout=60)
        problem = self._look(command, name, old, done)
        if problem:
            return problem
        # It may have been killed behind its work, which is then there, whole.
        if command.overwrites or not out.exists():
            try:
                self._run(command)
            except RuntimeError as error:
                return f"{name} cannot run again after a kill: {error}"
        if self._end(command) != self.ends[name]:
            return f"{name} ended differently after a kill"
        return ""

    def _look(self, command: Command, name: str, old: bool, done: bool) -> str:
        out = self.folder / command.out
        if out.is_file():
            content = out.read_bytes()
            if content == self.ends[name] or (old and not done and content == b"old\n"):
                return ""
            if out.suffix == ".pt":
                (KBLRN if name == "update" else RuleSet).load(out)
                return ""
            return f"{name} left {len(content)} bytes of {out.name}"
        if out.is_dir():
            return _damage(out)
        return f"{name} has removed {out.name}" if old else ""

    def _end(self, command: Command) -> Any:
        out = self.folder / command.out
        if out.is_file():
            return out.read_bytes()
        found: dict[str, Any] = {}
        for path in sorted(out.rglob("*")):
            if path.name in ("log.jsonl", "metrics.json", "import.json"):
                continue  # times differ
            if path.name.startswith("trials.db"):
                continue  # which counts trials that were killed
            if path.name == "checkpoint.pt":
                weights = load_checkpoint(path).model
                found[str(path.relative_to(out))] = {
                    k: v.tolist() for k, v in weights.items()
                }
            elif path.name == "model.pt":
                model = KBLRN.load(path)
                weights = model.state_dict()
                if model.calibration is not None:
                    weights["slope"] = model.calibration.slope
                found[str(path.relative_to(out))] = {
                    k: v.tolist() for k, v in weights.items()
                }
            elif path.is_file() and not path.match(_HALF):
                found[str(path.relative_to(out))] = path.read_bytes()
        return found

    def _remove(self, command: Command) -> None:
        out = self.folder / command.out
        if out.is_dir():
            shutil.rmtree(out)
        out.unlink(missing_ok=True)
        for half in self.folder.glob(f".{out.name}.*"):
            shutil.rmtree(half) if half.is_dir() else half.unlink()
        if command.begins_with:
            shutil.copytree(self.folder / command.begins_with, out)


def _kill_all(leader: int) -> None:
    """Kills a process and all that it started, as the end of a machine does: torchrun
    gives its workers sessions of their own, and they would wait for it."""
    os.killpg(leader, signal.SIGSTOP)  # nothing is started any more
    of_parent: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            of_parent.setdefault(parent, []).append(int(stat.parent.name))
    found = [leader]
    for pid in found:
        found += of_parent.get(pid, [])
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _damage(folder: Path) -> str:
    """Returns which file of a folder is not whole."""
    loaders: dict[str, Any] = {
        "checkpoint.pt": load_checkpoint,
        "model.pt": KBLRN.load,
        "splits.kb": load_splits,
        "ranks.npz": RankTable.load,
    }
    for path in folder.rglob("[!.]*"):
        try:
            if path.name in loaders:
                loaders[path.name](path)
        except DataError as error:
            return str(error)
        if path.suffix == ".json" and not path.read_text().endswith("}\n"):
            return f"{path.name} is not whole"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="of all commands")
    parser.add_argument("--epochs", type=int, default=4, help="of trainings")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--command", action="append", help="only this (repeatable)")
    options = parser.parse_args()
    rows, problems, start, done = [], [], time.perf_counter(), 0
    with tempfile.TemporaryDirectory(prefix="kblrn_kill_") as folder:
        harness = Harness(Path(folder), options.epochs, options.seed)
        names = options.command or list(harness.commands)
        for i, name in enumerate(names):
            harness.prepare(name)
            share = options.kills * (i + 1) // len(names) - options.kills * i // len(
                names
            )
            found = []
            for _ in range(share):
                found += filter(None, [harness.kill(name)])
                done += 1
                seconds = time.perf_counter() - start
                left = seconds * (options.kills - done) / done
                print(
                    f"{name}: kill {done} of {options.kills}, {len(found)} failures; "
                    f"{seconds / 60:.0f} min so far, about {left / 60:.0f} min left",
                    flush=True,
                )
            rows.append([name, share, len(found), harness.seconds[name]])
            problems += found
    rows.append(["all", *(sum(row[i] for row in rows) for i in (1, 2)), None])
    print(format_table(["command", "kills", "failures", "seconds undisturbed"], rows))
    for problem in problems:
        print(problem)
    raise SystemExit(bool(problems))


if __name__ == "__main__":
    main()
