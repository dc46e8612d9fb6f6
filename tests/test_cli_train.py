import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from scripts import run

from kblrn_pyg.cli import main as main_module
from kblrn_pyg.cli.runs import load_run
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.training import Run, load_checkpoint

SMALL = [
    *("--experts", "lrn", "--hidden-channels", "8", "--num-negatives", "20"),
    *("--epochs", "4", "--validate-every", "2", "--lr", "0.01", "--threads", "1"),
    *("--batch-size", "4096", "--dropout", "0.1", "--preset", "paper"),
]
COMMANDS = {
    "train": ("train a model", "kblrn_pyg.cli.train"),
    "evaluate": ("evaluate the model of a run", "kblrn_pyg.cli.evaluate"),
}


@pytest.fixture(autouse=True)
def commands(monkeypatch):
    for name, command in COMMANDS.items():
        monkeypatch.setitem(main_module.COMMANDS, name, command)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    with pytest.MonkeyPatch.context() as patch:
        for name, command in COMMANDS.items():
            patch.setitem(main_module.COMMANDS, name, command)
        done = run("kblrn", "train", "Families", *SMALL, "--out", folder)
    assert done.code == 0, done.err
    return folder, done.out


def assert_same_weights(folder, expected):
    found, wanted = (load_checkpoint(f / "checkpoint.pt") for f in (folder, expected))
    for part in ("model", "best"):
        for name, weights in getattr(wanted, part).items():
            assert torch.equal(getattr(found, part)[name], weights), name
    metrics = [json.loads((f / "metrics.json").read_text()) for f in (folder, expected)]
    assert metrics[0]["test"] == metrics[1]["test"]


def test_train(finished):
    folder, out = finished
    lines = out.splitlines()
    assert lines[0].split() == "split MRR MR hits@1 hits@3 hits@10".split()
    assert [line.split()[0] for line in lines[1:3]] == ["val", "test"]
    assert lines[-1].endswith(f"saved {folder}")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["test"]["mrr"] > 0.05
    log = Run(folder).read_log()
    assert [line["epoch"] for line in log] == [2, 4]
    assert log[-1]["loss"] < log[0]["loss"]
    assert Run(folder).read_settings()["model"]["num_negatives"] == 20


def test_evaluate(finished, tmp_path):
    folder, _ = finished
    metrics = json.loads((folder / "metrics.json").read_text())
    for split in ("test", "val"):
        words = ["--split", split, "--json", tmp_path / f"{split}.json"]
        done = run("kblrn", "evaluate", folder, *words)
        assert done.code == 0, done.err
        figures = json.loads((tmp_path / f"{split}.json").read_text())
        assert figures["overall"] == metrics[split]
        assert done.out.splitlines()[1].split()[:2] == ["all", "3,318"]


def test_evaluate_relations(finished):
    folder, _ = finished
    words = ["--relation", "spouse", "--relation", "parent_of", "--per-relation"]
    done = run("kblrn", "evaluate", folder, *words)
    names = [line.split()[0] for line in done.out.splitlines() if line]
    assert names == "queries all heads tails relation parent_of spouse".split()
    done = run("kblrn", "evaluate", folder, *words, "--markdown")
    assert "| spouse " in done.out


def test_load_run(finished):
    folder, _ = finished
    model, splits, settings = load_run(folder)
    assert model.experts == "lrn"
    assert set(splits) == {"train", "val", "test"}
    assert settings["training"]["epochs"] == 4
    best = load_checkpoint(folder / "checkpoint.pt").best
    for name, weights in model.state_dict().items():
        assert torch.equal(weights, best[name])


@pytest.mark.parametrize("number", [1, 6, 16])
def test_ctrl_c_and_resume(finished, tmp_path, number):
    loss, calls = KBLRN.loss, []

    def interrupted(*arguments):
        calls.append(number)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGINT)
        return loss(*arguments)

    folder = tmp_path / "a run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KBLRN, "loss", interrupted)
        done = run("kblrn", "train", "Families", *SMALL, "--out", folder)
    assert done.code == 130
    command = f"kblrn train Families --out '{folder}' --resume"
    assert done.err == f"kblrn train: interrupted, resume with: {command}\n"
    assert len(calls) == number
    done = run("kblrn", "train", "Families", "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert_same_weights(folder, finished[0])


def test_kill_and_resume(finished, tmp_path):
    folder = tmp_path / "run"
    script = (
        "import sys; from kblrn_pyg.cli import main; "
        f"main.COMMANDS |= {COMMANDS!r}; sys.exit(main.main())"
    )
    words = ["train", "Families", *SMALL, "--out", str(folder)]
    process = subprocess.Popen([sys.executable, "-c", script, *words])
    while process.poll() is None and not (folder / "checkpoint.pt").exists():
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    done = run("kblrn", "train", "Families", "--out", folder, "--resume")
    assert done.code == 0, done.err
    assert_same_weights(folder, finished[0])


def test_more_epochs(finished, tmp_path):
    words = ["--out", tmp_path / "run"]
    first = ["2" if word == "4" else word for word in SMALL]
    assert run("kblrn", "train", "Families", *first, *words).code == 0
    done = run("kblrn", "train", "families", *words, "--resume", "--epochs", "4")
    assert done.code == 0, done.err
    assert_same_weights(tmp_path / "run", finished[0])


@pytest.mark.parametrize(
    "words",
    [
        "--experts l --scorer complex --num-negatives all --n3 0.01",
        "--experts l --scorer distmult,transe --l2 0.01",
        "--experts r --min-head-coverage 0.1",
        "--experts n --numerical sign",
        "--experts rn --learn-rbf --negatives shared",
    ],
)
def test_kinds_of_models(tmp_path, words):
    small = "--hidden-channels 4 --num-negatives 5 --batch-size 8192 --epochs 1"
    words = [*small.split(), *words.split(), "--out", tmp_path / "run"]
    done = run("kblrn", "train", "Families", *words)
    assert done.code == 0, done.err
    done = run("kblrn", "evaluate", tmp_path / "run")
    assert done.code == 0, done.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert f"{metrics['test']['mrr']:.4g}" in done.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Families", "--out", "{finished}"], "exists, add '--resume' to continue"),
        (["Families", "--out", "{new}", "--resume"], "is no run, leave out '--resume'"),
        (
            ["Families", "--out", "{finished}", "--resume", "--lr", "0.5"],
            "the run was made with lr 0.01, it cannot continue with 0.5",
        ),
        (["WN18", "--out", "{finished}", "--resume"], "the run was made with dataset"),
        (["Nobody", "--out", "{new}"], "unknown data set"),
        (
            ["Families", "--scorer", "magic", "--out", "{new}"],
            "'scorer' must be one of",
        ),
        (
            ["Families", "--n3", "-5", "--out", "{new}"],
            "'n3' must not be negative (got -5.0)",
        ),
        (
            ["Families", "--min-head-coverage", "5", "--out", "{new}"],
            "'min_head_coverage' must lie in 0 to 1 (got 5.0)",
        ),
    ],
)
def test_train_mistakes(finished, tmp_path, words, message):
    places = {"finished": finished[0], "new": tmp_path / "new"}
    done = run("kblrn", "train", *(word.format(**places) for word in words))
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--epochs", "-1"],
        ["--batch-size", "0"],
        ["--num-negatives", "some"],
        ["--experts", "x"],
    ],
)
def test_wrong_words(words, capsys):
    assert run("kblrn", "train", "Families", *words).code == 2


def test_evaluate_mistakes(finished, tmp_path):
    folder, _ = finished
    for words, message in [
        ([tmp_path], "settings.json: no such file, no run"),
        ([folder, "--split", "dev"], "unknown split 'dev', expected one of train"),
        ([folder, "--relation", "nothing"], "unknown relation 'nothing'"),
    ]:
        done = run("kblrn", "evaluate", *words)
        assert done.code == 2
        assert message in done.err
        assert len(done.err.splitlines()) == 1


def test_begin_with_another_run(finished, tmp_path):
    words = [*SMALL, "--experts", "l", "--epochs", "1", "--lr", "1e-12"]
    words += ["--begin-with", finished[0]]
    done = run("kblrn", "train", "Families", *words, "--out", tmp_path / "begun")
    assert done.code == 0, done.err
    wanted = load_run(finished[0])[0].latent.state_dict()
    weights = load_checkpoint(tmp_path / "begun" / "checkpoint.pt").model
    for name, values in wanted.items():
        assert torch.allclose(weights[f"latent.{name}"], values)
    settings = json.loads((tmp_path / "begun" / "settings.json").read_text())
    assert settings["start"] == {"begin_with": str(finished[0])}

    moved = tmp_path / "moved"
    settings["start"]["begin_with"] = str(moved)  # which is not there any more
    (tmp_path / "begun" / "settings.json").write_text(json.dumps(settings))
    again = ["--out", tmp_path / "begun", "--resume"]
    done = run("kblrn", "train", "Families", *again, "--epochs", "2")
    assert done.code == 0, done.err

    words[words.index("8")] = "9"
    done = run("kblrn", "train", "Families", *words, "--out", tmp_path / "other")
    assert done.code == 2
    assert "its latent expert is different" in done.err
    assert not (tmp_path / "other").exists()


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--experts", "n", "--epochs", "1", "--batch-size", "8192", "--seed", "3"]
    done = run("kblrn", "train", "Families", *words)
    assert done.code == 0, done.err
    assert (tmp_path / "runs" / "Families-n-seed3" / "metrics.json").exists()


def test_incomplete_settings(tmp_path):
    Run(tmp_path).write_settings({"dataset": "Families", "root": None})
    done = run("kblrn", "evaluate", tmp_path)
    assert done.code == 2
    assert "settings.json: has no experts, hidden_channels" in done.err


def test_no_epochs_can_be_evaluated(tmp_path):
    words = ["--experts", "n", "--epochs", "0", "--out", tmp_path / "run"]
    done = run("kblrn", "train", "Families", *words)
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].startswith("0 epochs; saved")
    out = tmp_path / "new" / "figures.json"
    done = run("kblrn", "evaluate", tmp_path / "run", "--json", out)
    assert done.code == 0, done.err
    assert json.loads(out.read_text())["overall"]["mrr"] > 0


def test_wrong_numbers_of_the_demo():
    done = run("kblrn", "demo", "--epochs", "-1")
    assert done.code == 2
    assert "'epochs' must not be negative (got -1)" in done.err.splitlines()[-1]
