"""A part of the attacks on what reads texts."""

import pytest
from attack.processes import run_apart

TRIALS = {
    "triples": 150,
    "numbers": 100,
    "rules": 150,
    "names": 100,
    "parquet": 100,
    "parquet_bits": 100,
    "folders": 60,
    "updates": 50,
    "recipes": 150,
    "trials": 20,
    "settings": 10,
}


def test_texts_are_read_or_refused():
    for needed in ("pyoxigraph", "pyarrow", "optuna"):
        pytest.importorskip(needed)
    found = run_apart({f"readers.attack_{name}": n for name, n in TRIALS.items()})
    assert [one.failure for one in found.values()] == [""] * len(TRIALS)
    for one in found.values():
        assert one.trials >= 10
        assert one.outcomes["refused"] > 2
