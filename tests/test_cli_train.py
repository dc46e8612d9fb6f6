import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields

import pytest
import torch
from scripts import run
from trainable import same

from kblrn_pyg.cli.options import add_settings, settings_from
from kblrn_pyg.cli.train import GROUPS
from kblrn_pyg.datasets import Families, load_dataset
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import mine_rules, write_rules
from kblrn_pyg.runs import load_model, load_run
from kblrn_pyg.settings import default_of
from kblrn_pyg.training import Run, fit, load_checkpoint

SMALL = [
    *("--experts", "lrn", "--hidden-channels", "8", "--num-negatives", "20"),
    *("--epochs", "4", "--validate-every", "2", "--lr", "0.01", "--threads", "1"),
    *("--batch-size", "4096", "--dropout", "0.1", "--preset", "paper"),
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that nobody disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    done = run("kblrn", "train", "Families", *SMALL, "--out", folder)
    assert done.code == 0, done.err
    return folder, done.out


def assert_same_weights(folder, expected):
    found, wanted = (load_checkpoint(f / "checkpoint.pt") for f in (folder, expected))
    for one, other in [(found.model, wanted.model), (found.best, wanted.best)]:
        assert same(dict(one), dict(other))
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


def tiny_kb(folder):
    """Imports a small data set and returns its directory."""
    rows = "".join(f"p{i},parent_of,p{i + 1}\n" for i in range(8))
    (folder / "train.csv").write_text(rows)
    (folder / "valid.csv").write_text("p0,parent_of,p2\n")
    (folder / "test.csv").write_text("p1,parent_of,p3\n")
    words = [f"--{name}={folder / name}.csv" for name in ("train", "valid", "test")]
    done = run("kblrn", "import", *words, "--out", folder / "imported")
    assert done.code == 0, done.err
    return str(folder / "imported")


def test_load_run(finished, tmp_path):
    folder, _ = finished
    model, splits, settings = load_run(folder)
    assert model.instance == "lrn"
    assert not model.training
    assert set(splits) == {"train", "val", "test"}
    assert settings["training"]["epochs"] == 4
    best = load_checkpoint(folder / "checkpoint.pt").best["val"]
    assert same(dict(model.state_dict()), dict(best))
    assert same(dict(KBLRN.load(folder / "model.pt").state_dict()), dict(best))
    with pytest.raises(ValueError, match="over the entities and relations of 'dat"):
        load_run(folder, dataset=tiny_kb(tmp_path))


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
    words = ["train", "Families", *SMALL, "--out", str(folder)]
    process = subprocess.Popen([sys.executable, "-m", "kblrn_pyg.cli", *words])
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
        (
            ["Families", "--out", "{new}", "--resume"],
            "is not a run, leave out '--resume'",
        ),
        (
            ["Families", "--out", "{finished}", "--resume", "--lr", "0.5"],
            "the run was made with lr 0.01, it cannot continue with 0.5",
        ),
        (["WN18", "--out", "{finished}", "--resume"], "the run was made with dataset"),
        (["Nobody", "--out", "{new}"], "unknown data set"),
        (
            ["Families", "--scorer", "magic", "--out", "{new}"],
            "argument --scorer: must be one of distmult, complex",
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
        ([tmp_path], "settings.json: no such file, not a run"),
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
    wanted = load_model(finished[0]).experts["latent"].state_dict()
    found = load_model(tmp_path / "begun").experts["latent"].state_dict()
    for name, values in wanted.items():
        assert torch.allclose(found[name], values)
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


def test_incomplete_runs(finished, tmp_path):
    Run(tmp_path).write_settings({"dataset": "Families", "root": None})
    done = run("kblrn", "evaluate", tmp_path)
    assert done.code == 2
    assert "has no model.pt, expected a run" in done.err
    settings = Run(finished[0]).read_settings()
    settings["model"]["depth"] = 3
    Run(tmp_path).write_settings(settings)
    done = run("kblrn", "train", "Families", "--out", tmp_path, "--resume")
    assert done.code == 2
    assert "unknown settings: depth" in done.err


# --- settings --------------------------------------------------------------------


def test_options_are_the_fields_of_settings():
    parser = argparse.ArgumentParser()
    for cls in GROUPS.values():
        add_settings(parser, cls)
    assert vars(parser.parse_args([])) == {}
    words = "--scorer ComplEx,transe --num-negatives all --learn-rbf --lr 0.5"
    options = parser.parse_args([*words.split(), "--threshold", "0.5"])
    found = {name: settings_from(options, cls) for name, cls in GROUPS.items()}
    changes = {
        "model": {
            "scorer": ["complex", "transe"],
            "num_negatives": None,
            "learn_rbf": True,
            "threshold": 0.5,
        },
        "training": {"lr": 0.5},
    }
    for name, settings in found.items():
        defaults = {one.name: default_of(one) for one in fields(settings)}
        assert asdict(settings) == defaults | changes.get(name, {})
    text = " ".join(parser.format_help().split())
    assert "--patience N the number of consecutive validations" in text
    assert "--num-negatives N|all" in text
    assert "(default: 0.9)" in text
    assert "(default: 0)" in text


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--experts", "n", "--dropout", "0.5"], "dropout"),
        (["--experts", "n", "--preset", "paper"], "preset"),
        (["--experts", "l", "--feature-lr", "0.5"], "feature_lr"),
    ],
)
def test_an_option_without_effect_is_reported(tmp_path, words, name):
    small = ["--epochs", "0", "--hidden-channels", "100"]
    done = run("kblrn", "train", "Families", *words, *small, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    (line,) = done.err.splitlines()
    assert line.startswith(f"kblrn train: warning: '{name}' has no effect")


def test_rules_of_a_file(tmp_path):
    rules = mine_rules(Families()[0], max_rules_per_relation=2)
    write_rules(rules, tmp_path / "rules.tsv", "amie")
    words = ["--experts", "r", "--epochs", "0", "--rules", tmp_path / "rules.tsv"]
    done = run("kblrn", "train", "Families", *words, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    (expert,) = load_model(tmp_path / "run").experts.values()
    assert len(expert.features.rules) == len(rules)
    words[-1] = "provided"
    done = run("kblrn", "train", "Families", *words, "--out", tmp_path / "other")
    assert done.code == 2
    assert "the data set comes without rules" in done.err
    assert not (tmp_path / "other").exists()


# --- runs without their data set -------------------------------------------------


def answers(folder):
    """What the commands that ask a model print."""
    found = []
    for words in (
        ["predict", folder, "p0", "parent_of", "?", "--novel", "--k", "3"],
        ["explain", folder, "p0", "parent_of", "p2"],
        ["complete", folder, "--k", "2"],
    ):
        done = run("kblrn", *words)
        assert done.code == 0, done.err
        found.append(done.out)
    return found


def test_a_run_works_without_its_data_set(tmp_path):
    dataset, folder = tiny_kb(tmp_path), tmp_path / "run"
    words = ["--hidden-channels", "4", "--num-negatives", "3", "--epochs", "2"]
    words += ["--validate-every", "1", "--experts", "lr", "--out", folder]
    done = run("kblrn", "train", dataset, *words)
    assert done.code == 0, done.err
    before = answers(folder)
    done = run("kblrn", "predict", folder, "p0", "parent_of", "?")
    assert " p2 " in done.out
    assert " p2 " not in before[0]  # known from validation, not from training
    shutil.rmtree(dataset)
    folder.rename(tmp_path / "moved")
    shutil.copytree(tmp_path / "moved", tmp_path / "copied")
    shutil.rmtree(tmp_path / "moved")
    assert answers(tmp_path / "copied") == before
    assert answers(tmp_path / "copied" / "model.pt") == before
    done = run("kblrn", "evaluate", tmp_path / "copied")
    assert done.code == 2
    assert "unknown data set" in done.err
    (tmp_path / "again").mkdir()
    again = tiny_kb(tmp_path / "again")
    done = run("kblrn", "evaluate", tmp_path / "copied", "--dataset", again)
    assert done.code == 0, done.err


def test_an_unfinished_run_has_its_last_weights(tmp_path):
    splits = load_dataset(tiny_kb(tmp_path))
    model = KBLRN.from_data(splits["train"], "l", 4, num_negatives=3)
    seen = []

    def fail_at_last(progress):
        seen.append({k: v.clone() for k, v in progress.model.state_dict().items()})
        if progress.epoch == 3:
            raise MemoryError

    with pytest.raises(MemoryError):
        fit(
            model,
            splits["train"],
            epochs=3,
            validate_every=1,
            run=Run(tmp_path / "run"),
            callbacks=[fail_at_last],
        )
    assert same(dict(load_model(tmp_path / "run").state_dict()), seen[1])


def test_a_run_of_fit_answers_too(tmp_path):
    splits = load_dataset(tiny_kb(tmp_path))
    model = KBLRN.from_data(splits["train"], "l", 4, num_negatives=3, dropout=0.5)
    folder, splits_known = tmp_path / "run", [splits["test"]]
    fit(
        model,
        splits["train"],
        splits["val"],
        splits_known,
        epochs=3,
        validate_every=1,
        run=Run(folder),
    )
    assert " p2 " not in answers(folder)[0]
    loaded = load_model(folder)
    assert not loaded.training
    assert same(dict(loaded.state_dict()), dict(model.state_dict()))
    done = run("kblrn", "evaluate", folder)
    assert done.code == 2
    message = "the run does not say which data set it is of, add --dataset"
    assert message in done.err
    done = run("kblrn", "evaluate", folder, "--dataset", tmp_path / "imported")
    assert done.code == 0, done.err


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
