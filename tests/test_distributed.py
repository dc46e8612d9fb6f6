"""Several processes: equal to one, and resumed when one dies or is interrupted."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from distributed_commands import commands
from scripts import run

from kblrn_pyg.training import load_checkpoint

TESTS = Path(__file__).parent
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def torchrun(*words, num_processes=2, restarts=0):
    options = ["--standalone", "--nproc-per-node", num_processes]
    options += ["--max-restarts", restarts]
    words = [sys.executable, "-m", "torch.distributed.run", *options, *words]
    return list(map(str, words))


def done(words):
    result = subprocess.run(
        list(map(str, words)),
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=240,
    )
    if result.returncode:
        raise RuntimeError(result.stderr[-3000:])
    return result


def train(folder, kind, epochs, num_processes=2, die_at=None, restarts=0):
    folder.mkdir(exist_ok=True)
    words = [TESTS / "distributed_training.py", folder, kind, epochs]
    words += [] if die_at is None else [die_at]
    if num_processes > 1:
        done(torchrun(*words, num_processes=num_processes, restarts=restarts))
    else:
        done([sys.executable, *words])
    return torch.load(folder / "result.pt", weights_only=True)


@pytest.mark.parametrize(
    "kind", ["exact", "shared", pytest.param("complex", marks=pytest.mark.slow)]
)
def test_two_processes_equal_one(tmp_path, kind):
    one = train(tmp_path / "one", kind, 2, num_processes=1)
    two = train(tmp_path / "two", kind, 2)
    assert two["losses"] == pytest.approx(one["losses"], rel=1e-5)
    assert two["mrr"] == pytest.approx(one["mrr"], rel=2e-3)
    # Sums in another order: a rank may change by a place, but hardly any does.
    assert (two["ranks"] != one["ranks"]).double().mean() < 0.05
    for name in ("head", "steps", "support"):
        assert torch.equal(one["rules"][name], two["rules"][name])
    assert len(set(one["missing"]) & set(two["missing"])) >= 18
    for name, weight in one["weights"].items():
        torch.testing.assert_close(two["weights"][name], weight, rtol=1e-2, atol=1e-3)


def test_a_process_that_dies(tmp_path):
    expected = train(tmp_path / "undisturbed", "exact", 2)
    # In the second epoch, so that there is something to go on from.
    found = train(tmp_path / "disturbed", "exact", 2, die_at=70, restarts=1)
    assert found["losses"] == expected["losses"]
    assert found["weights"].keys() == expected["weights"].keys()
    for name, weight in expected["weights"].items():
        assert torch.equal(found["weights"][name], weight), name


def test_ctrl_c_and_commands(tmp_path):
    two, one = tmp_path / "two", tmp_path / "one"
    found = done(torchrun(TESTS / "distributed_commands.py", two))
    shutil.copytree(two / "run", one / "run")
    expected = [run("kblrn", *words) for words in commands(one)]
    out = "".join(each.out for each in expected)
    assert found.stdout.replace(str(two), str(one)) == out
    for name in ("rules.tsv", "missing.csv", "metrics.json"):
        assert (two / name).read_bytes() == (one / name).read_bytes()


@pytest.mark.slow
def test_ctrl_c_of_torchrun(tmp_path):
    words = ["-m", "kblrn_pyg.cli", "train", "Families", "--out", tmp_path / "run"]
    words += ["--num-negatives", "all", "--experts", "l", "--validate-every", "1"]
    words += ["--lr", "0.001", "--patience", "1000", "--epochs", "1000"]
    process = subprocess.Popen(
        torchrun(*words), env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    log = tmp_path / "run" / "log.jsonl"
    while process.poll() is None and not (log.exists() and log.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert process.returncode
    assert error.count("kblrn train: interrupted, resume with: kblrn train") == 1
    # Within an epoch or at its end, but where both processes stopped.
    assert load_checkpoint(tmp_path / "run" / "checkpoint.pt").position["epoch"] > 0


@pytest.mark.slow
def test_mistakes_of_commands(tmp_path):
    with pytest.raises(RuntimeError, match=r"kblrn evaluate: .*not a run"):
        done(torchrun("-m", "kblrn_pyg.cli", "evaluate", tmp_path))
    help_text = done(torchrun("-m", "kblrn_pyg.cli", "mine", "--help")).stdout
    assert help_text.count("usage: ") == 1


@pytest.mark.slow
def test_other_numbers_of_processes_go_on(tmp_path):
    expected = train(tmp_path / "two", "exact", 2)
    for before, after in ((2, 1), (1, 2), (3, 2)):
        folder = tmp_path / f"{before} and {after}"
        train(folder, "exact", 1, num_processes=before)
        found = train(folder, "exact", 2, num_processes=after)
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-5)


@pytest.mark.slow
def test_negatives_of_each_triple_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="'negatives' must be shared"):
        train(tmp_path, "triple", 1)
