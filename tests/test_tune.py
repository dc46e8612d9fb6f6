"""Tuning: trials that are kept, pruned and gone on with, and what comes out."""

import json
import logging
import sys

import pytest
from scripts import run
from test_cli_recipes import kb  # noqa: F401, a fixture
from test_recipes import APART, FEATURES, LATENT, splits  # noqa: F401, a fixture

from kblrn_pyg.data import DataError
from kblrn_pyg.recipes import (
    Recipe,
    Stage,
    read_recipe,
    train_by_recipe,
    tune,
    write_recipe,
)
from kblrn_pyg.recipes.apply import train_stage
from kblrn_pyg.recipes.named import dropped, features, multiplied
from kblrn_pyg.recipes.space import parameters_of, suggest_stage
from kblrn_pyg.recipes.trials import TRIALS_NAME, open_study
from kblrn_pyg.training import Run

optuna = pytest.importorskip("optuna")

SMALL = {"hidden_channels": 4, "epochs": 2, "batch_size": 64, "validate_every": 1}


def trials_of(folder, name):
    study = optuna.load_study(
        study_name=name, storage=f"sqlite:///{folder / TRIALS_NAME}"
    )
    return study.trials


@pytest.mark.parametrize(
    "stage",
    [
        multiplied(128, 100),
        multiplied(64, 100, n3=0.2),
        dropped(64, 100),
        features("rne", 20, kinds=True),
        features("re", 4, kinds=False),
    ],
)
def test_stages_of_recipes_can_be_suggested(stage):
    values = parameters_of(stage, {})
    found = suggest_stage(stage, optuna.trial.FixedTrial(values), {})
    assert found.model_settings == stage.model_settings
    assert found.fit_settings == stage.fit_settings
    assert "hidden_channels" not in parameters_of(stage, {"hidden_channels": 3})


def test_what_no_trial_suggests():
    assert parameters_of(Stage("l", {"hidden_channels": 17}), {}) is None
    assert parameters_of(Stage("l", {}, {"lr": 3.0}), {}) is None


def test_tuning_in_python(splits, tmp_path):  # noqa: F811
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    folder = Run(tmp_path / "tuned")
    found = tune(train, val, known, trials=3, recipe=APART, run=folder, **SMALL)
    assert found.trials == {"l": 2, "re": 1}
    assert found.recipe.groups == ["l", "re"]
    assert read_recipe(folder.path) == found.recipe
    for stage in found.recipe.stages:
        assert stage.fit_settings.batch_size == 64  # fixed
    # The MRR is that of training by the recipe.
    result = train_by_recipe(train, val, known, recipe=found.recipe)
    for group, mrr in found.mrr.items():
        assert result.stages[group].best_mrr == pytest.approx(mrr)

    again = tune(train, val, known, trials=6, recipe="auto", run=folder, **SMALL)
    assert again.trials == {"l": 4, "re": 2}
    assert all(again.mrr[one] >= found.mrr[one] for one in found.mrr)
    tried = [one.params for one in trials_of(folder.path, "l")]
    assert len({json.dumps(one, sort_keys=True) for one in tried}) == 4


def test_killed_trials_do_not_count(splits, tmp_path, monkeypatch, caplog):  # noqa: F811
    train, val = splits["train"], splits["val"]
    recipe, folder = Recipe("one", (FEATURES,)), tmp_path / "tuned"
    calls = []

    def killed(*_, **__):
        calls.append(1)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("kblrn_pyg.recipes.tuning.train_stage", killed)
        patch.setattr(logging.getLogger("optuna"), "propagate", True)
        with pytest.raises(KeyboardInterrupt):
            tune(train, val, trials=1, recipe=recipe, run=Run(folder), **SMALL)
    assert len(calls) == 1
    assert not caplog.records  # such as a traceback
    found = tune(train, val, trials=1, recipe=recipe, run=Run(folder), **SMALL)
    assert found.trials == {"re": 1}
    states = [one.state.name for one in trials_of(folder, "re")]
    assert states == ["FAIL", "COMPLETE"]


@pytest.mark.parametrize("begun", [1, 2, 4])
def test_a_killed_search_ends_as_another(splits, tmp_path, monkeypatch, begun):  # noqa: F811
    train, val = splits["train"], splits["val"]
    options = {"trials": 5, "recipe": Recipe("one", (FEATURES,)), **SMALL}
    whole = tune(train, val, run=Run(tmp_path / "whole"), **options)
    calls = []

    def killed(*arguments, **others):
        calls.append(1)
        if len(calls) == begun:
            raise KeyboardInterrupt
        return train_stage(*arguments, **others)

    with monkeypatch.context() as patch:
        patch.setattr("kblrn_pyg.recipes.tuning.train_stage", killed)
        with pytest.raises(KeyboardInterrupt):
            tune(train, val, run=Run(tmp_path / "killed"), **options)
    assert tune(train, val, run=Run(tmp_path / "killed"), **options) == whole
    tried = [
        [one.params for one in trials_of(tmp_path / name, "re") if one.values]
        for name in ("whole", "killed")
    ]
    assert tried[0] == tried[1]


def test_bad_trials_are_pruned(splits, monkeypatch):  # noqa: F811
    """Those below the median of what the first ones had after as many epochs."""
    epochs = []

    def fake(stage, material, rules, callbacks):
        class Progress:
            pass

        value = 0.5 if len(epochs) < 3 else 0.1
        epochs.append(0)
        for epoch in (1, 2):
            Progress.line, Progress.epoch = {"val": {"mrr": value}}, epoch
            epochs[-1] = epoch
            callbacks[0](Progress)

        class Result:
            best_mrr = value

        return None, Result

    monkeypatch.setattr("kblrn_pyg.recipes.tuning.train_stage", fake)
    recipe = Recipe("one", (LATENT,))
    found = tune(splits["train"], splits["val"], trials=5, recipe=recipe)
    assert epochs == [2, 2, 2, 1, 1]
    assert found.trials == {"l": 5}
    assert found.mrr == {"l": 0.5}


def test_without_optuna(splits, monkeypatch):  # noqa: F811
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'kblrn_pyg\[tune\]'"):
        tune(splits["train"], splits["val"])
    monkeypatch.setattr("kblrn_pyg.cli.tune.find_spec", lambda name: None)
    done = run("kblrn", "tune", "Families")
    assert done.code == 2
    assert "pip install 'kblrn_pyg[tune]'" in done.err


def test_wrong_numbers(splits):  # noqa: F811
    with pytest.raises(ValueError, match="'trials' must be positive"):
        tune(splits["train"], splits["val"], trials=0)


def test_the_command(kb, tmp_path):  # noqa: F811
    small = ["--hidden-channels", "4", "--epochs", "1", "--experts", "le"]
    words = [*small, "--out", tmp_path / "tuned"]
    done = run("kblrn", "tune", kb, "--trials", "2", *words)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].split() == ["experts", "trials", "val", "MRR"]
    path = tmp_path / "tuned" / "recipe.json"
    assert lines[-1] == f"saved {path}: kblrn train {kb} --recipe {path}"
    recipe = read_recipe(path)
    assert recipe.groups == ["l", "e"]
    assert path.read_text() in done.out
    done = run("kblrn", "train", kb, "--recipe", path, "--out", tmp_path / "run")
    assert done.code == 0, done.err
    assert "recipe tuned: the best of 2 trials" in done.err


@pytest.mark.parametrize("damage", ["text", "half", "schema", "directory"])
def test_damaged_trials_are_refused_in_a_line(kb, tmp_path, damage):  # noqa: F811
    folder = tmp_path / "tuned"
    words = ["kblrn", "tune", kb, "--trials", "1", "--out", folder, "--epochs", "1"]
    words += ["--hidden-channels", "4", "--recipe", tmp_path / "one.json"]
    write_recipe(Recipe("one", (LATENT,)), tmp_path / "one.json")
    assert run(*words).code == 0
    path = folder / TRIALS_NAME
    raw = path.read_bytes()
    path.unlink()
    if damage == "directory":
        path.mkdir()
    else:
        changed = raw.replace(b"CREATE TABLE trials", b"CREATE TABLE triols", 1)
        half = raw[: len(raw) // 2]
        path.write_bytes({"text": b"a" * 999, "half": half, "schema": changed}[damage])
    done = run(*words)
    assert done.code == 2
    assert done.err.startswith(f"kblrn tune: {path}: ")
    assert done.err.count("\n") == 1


def test_a_folder_has_one_search_at_a_time(splits, tmp_path):  # noqa: F811
    """Another one would end the trials that are not its own."""
    other = Run(tmp_path / "tuned")
    other.lock()
    options = {"trials": 1, "recipe": Recipe("one", (LATENT,)), **SMALL}
    with pytest.raises(DataError, match="another training is writing"):
        tune(splits["train"], splits["val"], run=Run(other.path), **options)
    other.close()
    tune(splits["train"], splits["val"], run=Run(other.path), **options)


def test_a_full_disk_is_told(splits, tmp_path, monkeypatch):  # noqa: F811
    import sqlalchemy.exc

    def full(*_, **__):
        raise sqlalchemy.exc.OperationalError("", {}, Exception("disk is full"))

    monkeypatch.setattr("optuna.study.Study.optimize", full)
    options = {"trials": 1, "recipe": Recipe("one", (LATENT,)), **SMALL}
    folder = Run(tmp_path / "tuned")
    with pytest.raises(DataError, match=r"trials\.db: .* \(disk is full\)"):
        tune(splits["train"], splits["val"], run=folder, **options)


@pytest.mark.parametrize("name", ["a?mode=memory", "a{b}", "a%20#c", "ä: b"])
def test_trials_are_kept_in_folders_of_any_name(tmp_path, name):
    """The address of a database has a syntax of its own."""
    path = tmp_path / name / "trials.db"
    path.parent.mkdir()
    study = open_study(path, "l")
    study.optimize(lambda one: one.suggest_float("lr", 0.1, 1), n_trials=2)
    assert len(open_study(path, "l").trials) == 2
    assert [one.name for one in tmp_path.rglob("*.db")] == ["trials.db"]
    assert path.stat().st_size > 0
