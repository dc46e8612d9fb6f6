"""What is chosen by size, and how progress is shown without a terminal."""

import io
import json
import logging
import sys

import pytest
import torch

from kblrn_pyg import KBLRN, sizes
from kblrn_pyg.cli.main import main
from kblrn_pyg.data import make_kb
from kblrn_pyg.datasets import Families
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.training import fit


@pytest.fixture
def small_is_large(monkeypatch):
    monkeypatch.setattr(sizes, "LARGE", 1000)


def test_a_large_model(small_is_large, caplog):
    caplog.set_level(logging.INFO, "kblrn_pyg")
    data = Families()[0]
    model = KBLRN.from_data(data, "l", 8)
    chosen = {"num_negatives": 1024, "negatives": "shared", "sparse": True}
    assert chosen.items() <= model.config.items()
    assert "chosen for 2,232 entities: num_negatives=1024" in caplog.text
    fit(model, data, epochs=1, lr=0.05)
    assert (
        "chosen for 2,232 entities: optimizer=adagrad, batch_size=1024" in caplog.text
    )
    # What is given is not chosen.
    exact = KBLRN.from_data(data, "l", 8, num_negatives=None)
    assert exact.is_exact
    assert not exact.config["sparse"]
    # Without embeddings there are no rows.
    assert not KBLRN.from_data(data, "n").config["sparse"]


def test_a_small_model():
    model = KBLRN.from_data(Families()[0], "l", 8)
    assert (model.num_negatives, model.negatives) == (500, "triple")


def test_the_command_says_what_it_chose(small_is_large, capsys, tmp_path):
    out = tmp_path / "run"
    words = ["train", "Families", "--experts", "l", "--hidden-channels", "4"]
    main([*words, "--epochs", "1", "--out", str(out)])
    error = capsys.readouterr().err
    assert "chosen for 2,232 entities: num_negatives=1024, negatives=shared" in error
    assert "optimizer=adagrad, lr=0.05, batch_size=1024" in error
    settings = json.loads((out / "settings.json").read_text())
    assert settings["model"]["sparse"]
    assert settings["training"]["batch_size"] == 1024
    # A run that goes on keeps what was chosen, and does not choose again.
    main(["train", "Families", "--epochs", "2", "--out", str(out), "--resume"])
    assert "chosen" not in capsys.readouterr().err


def test_lines_without_a_terminal(monkeypatch):
    for seconds, is_shown in ((0.0, True), (60.0, False)):
        monkeypatch.setattr("kblrn_pyg.progress.LINE_SECONDS", seconds)
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        for _ in ProgressBar(range(3), desc="Counting"):
            pass
        text = sys.stderr.getvalue()
        assert ("Counting: 100%" in text) == is_shown
        assert "\r" not in text


def test_nothing_as_large_as_all_entities(monkeypatch):
    """A step of a model of many entities allocates no more than that of few."""
    largest = []
    for num_nodes in (2_000, 200_000):
        ids = torch.arange(1000)
        triples = ids, ids % 3, (7 * ids + 1) % 1000
        names = [str(i) for i in range(num_nodes)]
        data = make_kb(names, ["a", "b", "c"], triples)
        settings = {"num_negatives": 64, "negatives": "shared", "sparse": True}
        model = KBLRN.from_data(data, "l", 8, **settings)
        with torch.profiler.profile(profile_memory=True) as profile:
            loss = model.loss(*triples)
            loss.backward()
        sizes_of = [event.cpu_memory_usage for event in profile.events()]
        largest.append(max(sizes_of))
    assert largest[1] < 1.5 * largest[0]
