"""Training by several processes: equal to that of one, and resumed when one dies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parent / "distributed_training.py"


def train(folder, kind, epochs, num_processes=2, die_at=None, restarts=0):
    folder.mkdir(exist_ok=True)
    words = [sys.executable]
    if num_processes > 1:
        words += ["-m", "torch.distributed.run", "--standalone"]
        words += ["--nproc-per-node", num_processes, "--max-restarts", restarts]
    words += [SCRIPT, folder, kind, epochs]
    words += [] if die_at is None else [die_at]
    done = subprocess.run(
        list(map(str, words)),
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=240,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
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
