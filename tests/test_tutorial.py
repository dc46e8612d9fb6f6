"""The tutorial runs, from CSV files to an explained prediction."""

import csv

import pytest
from scripts import run


@pytest.mark.slow
def test_tutorial_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("python", "examples/tutorial.py")
    assert done.code == 0, done.err
    assert "mrr=" in done.out
    assert "rank without latent" in done.out
    folder = tmp_path / "out" / "tutorial"
    assert (folder / "why.png").stat().st_size > 10_000
    words = ("Adea Hazelwright", "grandparent_of", "?", "--k", "1")
    done = run("kblrn", "predict", folder / "model.pt", *words)
    assert done.code == 0, done.err
    assert done.out.splitlines()[1].startswith("   1  Adea Hazelwright")


def test_tutorial_with_files_of_ones_own(tmp_path, monkeypatch):
    people = [f"person {i}" for i in range(60)]
    facts = [(people[i], "parent of", people[i + 20]) for i in range(40)]
    facts += [(people[i], "grandparent of", people[i + 40]) for i in range(20)]
    numbers = [
        (name, "born", 1900 + 30 * (i // 20) + i % 7) for i, name in enumerate(people)
    ]
    for name, rows in (("facts", facts), ("numbers", numbers)):
        with open(tmp_path / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows(rows)
    done = run("python", "examples/tutorial.py", str(tmp_path))
    assert done.code == 0, done.err
    assert "born" in done.out
    assert (tmp_path / "why.png").exists()
