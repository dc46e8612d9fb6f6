"""'kblrn train' by recipes: the default one, names, files, and going on."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from scripts import run
from test_recipes import ages, facts

from kblrn_pyg.nn import KBLRN
from kblrn_pyg.recipes import Recipe, Stage, read_recipe, write_recipe
from kblrn_pyg.runs import load_model, load_run
from kblrn_pyg.training import Run, load_checkpoint

QUICK = ("--epochs", "2", "--hidden-channels", "4", "--threads", "1")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    """The directory of a small data set."""
    folder = tmp_path_factory.mktemp("kb")
    for name, rows in (("facts.csv", facts()), ("numbers.csv", ages())):
        with open(folder / name, "w", newline="") as file:
            csv.writer(file).writerows(rows)
    words = ["--train", folder / "facts.csv", "--numerical", folder / "numbers.csv"]
    words += ["--holdout", "0.08", "--out", folder / "imported"]
    done = run("kblrn", "import", *words)
    assert done.code == 0, done.err
    return folder / "imported"


@pytest.fixture(scope="module")
def finished(kb, tmp_path_factory):
    """A run by the recipe that is the default, but shorter."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    done = run("kblrn", "train", kb, *QUICK, "--out", folder)
    assert done.code == 0, done.err
    return folder, done


def assert_same_weights(folder, expected):
    found, wanted = (load_checkpoint(f / "checkpoint.pt") for f in (folder, expected))
    assert found.model.keys() == wanted.model.keys()
    for name, values in wanted.model.items():
        assert torch.equal(found.model[name], values), name
    metrics = [json.loads((f / "metrics.json").read_text()) for f in (folder, expected)]
    assert metrics[0]["test"] == metrics[1]["test"]


def test_the_default_recipe(finished):
    folder, done = finished
    timing, line = (one for one in done.err.splitlines() if one.startswith("recipe"))
    assert timing == "recipe auto: timing the first batches on this machine"
    assert line.startswith("recipe auto: for 100 entities and 202 triples: l (complex")
    assert "learned apart and balanced on the validation set" in line
    assert "within 60m" in line
    lines = done.out.splitlines()
    assert [one.split()[0] for one in lines[:3]] == ["split", "val", "test"]
    assert lines[-1].startswith("factors of experts: relational")
    assert lines[-1].endswith(f"; saved {folder}")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics["stages"]) == {"l", "rneo"}
    assert metrics["test"]["mrr"] > 0.3
    assert set(load_model(folder).instance) == set("lrneo")
    plan, chosen = read_recipe(folder / "stages" / "plan.json"), read_recipe(folder)
    assert plan.experts == chosen.experts == "lrneo"
    assert len(chosen.stages) == 2 < len(plan.stages)
    assert chosen.factors == metrics["factors"]
    settings = Run(folder).read_settings()
    assert settings["model"]["hidden_channels"] == 4
    assert settings["device"] == "cpu"


def test_other_commands_take_such_a_run(finished, tmp_path):
    folder, _ = finished
    metrics = json.loads((folder / "metrics.json").read_text())
    _, splits, _ = load_run(folder)
    assert set(splits) == {"train", "val", "test"}
    done = run("kblrn", "evaluate", folder, "--json", tmp_path / "test.json")
    assert done.code == 0, done.err
    figures = json.loads((tmp_path / "test.json").read_text())
    assert figures["overall"] == metrics["test"]
    for words in (
        ["predict", folder, "person0", "lives_in", "?"],
        ["explain", folder, "person0", "lives_in", "place0"],
        ["report", folder, "--out", tmp_path / "report.html"],
    ):
        done = run("kblrn", *words)
        assert done.code == 0, done.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "1-l: Epochs: 2" in page
    done = run("kblrn", "control", folder)
    assert done.code == 0, done.err
    assert "numbers are" in done.out.splitlines()[-1]


@pytest.mark.parametrize("number", [1, 6, 12])
def test_ctrl_c_and_resume(kb, finished, tmp_path, number):
    loss, calls = KBLRN.loss, []

    def interrupted(*arguments):
        calls.append(number)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(*arguments)

    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KBLRN, "loss", interrupted)
        plan = finished[0] / "stages" / "plan.json"
        done = run(
            "kblrn", "train", kb, "--recipe", plan, "--threads", 1, "--out", folder
        )
    assert done.code == 130
    assert f"kblrn train {kb} --out {folder} --resume" in done.err
    done = run("kblrn", "train", kb, "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert_same_weights(folder, finished[0])


def test_kill_and_resume(kb, finished, tmp_path):
    folder = tmp_path / "run"
    plan = finished[0] / "stages" / "plan.json"
    words = ["train", kb, "--recipe", plan, "--threads", "1", "--out", folder]
    command = [sys.executable, "-m", "kblrn_pyg.cli", *map(str, words)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob("stages/2-*/checkpoint.pt")):
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = run("kblrn", "train", kb, "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert_same_weights(folder, finished[0])


def test_more_epochs(kb, tmp_path):
    words = ["--recipe", "auto", "--experts", "le", "--hidden-channels", "4"]
    words += ["--threads", "1", "--validate-every", "1"]
    for epochs in ("1", "3"):
        done = run(
            *("kblrn", "train", kb, *words, "--epochs", epochs),
            *("--out", tmp_path / epochs),
        )
        assert done.code == 0, done.err
    done = run("kblrn", "train", kb, "--out", tmp_path / "1", "--resume", "--epochs", 3)
    assert done.code == 0, done.err
    assert "recipe" not in done.err  # nothing is chosen anew
    assert_same_weights(tmp_path / "1", tmp_path / "3")


def test_a_run_does_not_continue_with_other_settings(kb, finished):
    again = ["kblrn", "train", kb, "--out", finished[0], "--resume"]
    for words, message in [
        (["--lr", "0.5"], "made with another lr, it cannot continue with 0.5"),
        (["--recipe", "best"], "made by recipe auto, it cannot continue by best"),
        (["--experts", "l"], "made with another experts"),
    ]:
        done = run(*again, *words)
        assert done.code == 2
        assert message in done.err


def test_the_paper_is_one_stage(kb, tmp_path):
    words = ["--recipe", "paper", "--epochs", "1", "--hidden-channels", "4"]
    done = run("kblrn", "train", kb, *words, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert "recipe paper: section 5 of the paper\n" in done.err
    settings = Run(tmp_path / "run").read_settings()
    assert settings["model"]["experts"] == "lrn"
    assert settings["model"]["num_negatives"] == 500
    assert settings["rules"]["preset"] == "paper"
    assert settings["training"]["validate_every"] == 5
    assert not (tmp_path / "run" / "stages").exists()
    done = run("kblrn", "train", kb, "--out", tmp_path / "run", "--resume")
    assert done.code == 0, done.err


def test_a_hint_when_the_best_epoch_was_the_last(kb, tmp_path):
    words = ["--experts", "l", "--hidden-channels", "4", "--num-negatives", "all"]
    words += ["--validate-every", "1", "--epochs", "2"]
    for lr, is_hinted in (("0.01", True), ("1e-9", False)):
        done = run("kblrn", "train", kb, *words, "--lr", lr, "--out", tmp_path / lr)
        assert done.code == 0, done.err
        assert ("the best epoch of l was the last one" in done.out) == is_hinted


def test_all_facts(kb, finished, tmp_path):
    words = ["--recipe", finished[0], "--all-facts", "--out", tmp_path / "run"]
    done = run("kblrn", "train", kb, *words)
    assert done.code == 0, done.err
    assert "no evaluation is possible" in done.err
    assert "MRR" not in done.out
    model = load_model(tmp_path / "run")
    edges = sum(model.kb[kind].edge_index.size(1) for kind in model.kb.edge_types)
    assert edges == 240
    assert read_recipe(tmp_path / "run").stages == read_recipe(finished[0]).stages
    done = run("kblrn", "evaluate", tmp_path / "run")
    assert done.code == 2
    assert "the model has learned all facts" in done.err
    # A run that goes on learns all facts, too.
    done = run("kblrn", "train", kb, "--out", tmp_path / "run", "--resume")
    assert done.code == 0, done.err
    assert "no evaluation is possible" in done.err


def test_all_facts_need_a_choice(kb, finished, tmp_path):
    plan = finished[0] / "stages" / "plan.json"
    for words in ([], ["--recipe", "best"], ["--experts", "l"], ["--recipe", plan]):
        done = run("kblrn", "train", kb, *words, "--all-facts", "--out", tmp_path / "x")
        assert done.code == 2
        assert "--all-facts needs" in done.err
        assert not (tmp_path / "x").exists()
    words = ["--experts", "n", "--epochs", "1", "--all-facts", "--out", tmp_path / "x"]
    assert run("kblrn", "train", kb, *words).code == 0


def test_devices(kb, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words = ["--device", "cuda", "--out", tmp_path / "run"]
    done = run("kblrn", "train", kb, *words)
    assert done.code == 2
    assert "'device' must be cpu on this machine" in done.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--recipe", "nonsense"], "--recipe must be one of auto, best, paper, none"),
        (["--budget", "soon"], "'budget' must be a time such as"),
        (["--budget", "1h", "--experts", "l"], "--budget has no effect on recipe none"),
        (["--recipe", "auto", "--begin-with", "x"], "--begin-with has no effect"),
    ],
)
def test_mistakes(kb, tmp_path, words, message):
    done = run("kblrn", "train", kb, *words, "--out", tmp_path / "new")
    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "new").exists()


def test_the_same_command_goes_on_by_its_file(kb, tmp_path):
    path, folder = tmp_path / "mine.json", tmp_path / "run"
    stages = tuple(
        Stage(letters, {"num_negatives": 5, **more}, {"epochs": 1})
        for letters, more in (("l", {"hidden_channels": 4}), ("r", {}))
    )
    write_recipe(Recipe("named otherwise", stages), path)
    words = ["kblrn", "train", kb, "--recipe", path, "--out", folder]
    assert run(*words).code == 0
    done = run(*words, "--resume")
    assert done.code == 0, done.err
    write_recipe(Recipe("another", stages), path)
    assert "it cannot continue by another" in run(*words, "--resume").err
