"""A part of the attacks on what reads texts."""

import pytest
from attack.processes import run_apart


@pytest.mark.parametrize(
    ("attack", "trials"),
    [
        ("triples", 300),
        ("numbers", 150),
        ("rules", 300),
        ("names", 300),
        ("settings", 25),
    ],
)
def test_texts_are_read_or_refused(attack, trials):
    if attack == "triples":
        pytest.importorskip("pyoxigraph")
    found = run_apart(f"readers.attack_{attack}", trials)
    assert not found.failure
    assert found.trials >= trials
    assert found.outcomes["refused"] > 5
