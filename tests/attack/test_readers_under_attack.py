"""A part of the attacks on what reads texts."""

import pytest
from attack.processes import run_apart


def test_texts_are_read_or_refused():
    pytest.importorskip("pyoxigraph")
    trials = {
        "triples": 150,
        "numbers": 100,
        "rules": 150,
        "names": 100,
        "settings": 10,
    }
    found = run_apart({f"readers.attack_{name}": n for name, n in trials.items()})
    assert [one.failure for one in found.values()] == [""] * len(trials)
    for one in found.values():
        assert one.trials >= 10
        assert one.outcomes["refused"] > 2
