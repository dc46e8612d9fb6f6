"""Runs under attack: two trainings at once, edited settings, other threads."""

import json
import math
import os
import subprocess
import sys
import threading
import time
from copy import deepcopy
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest
import torch
from attack.ids import small_kb, small_model

from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, make_kb
from kblrn_pyg.datasets import write_local_kb
from kblrn_pyg.nn import KBLRN, ModelSettings, NodeExpert
from kblrn_pyg.rules import ConstantSettings, MineSettings
from kblrn_pyg.training import FitSettings, FoldInSettings, Run, fit
from kblrn_pyg.training.process import only_training

HOLD = """
import sys, time
from kblrn_pyg.training import Run
run = Run(sys.argv[1])
run.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def train(path, **changes):
    model = deepcopy(small_model("l", "sampled"))
    options = {"epochs": 1, "validate_every": 1, "run": Run(path)} | changes
    fit(model, small_kb(), small_kb(), **options)
    return model.state_dict()


def test_a_folder_has_one_training_at_a_time(tmp_path):
    path = tmp_path / "run"
    train(path)
    before = {one.name: one.read_bytes() for one in path.iterdir()}
    words = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        for resume in (True, False):
            with pytest.raises(DataError, match="run: another training is writing"):
                train(path, epochs=2, resume=resume)
        assert before == {one.name: one.read_bytes() for one in path.iterdir()}
        other.kill()  # which unlocks it
        other.wait()
    train(path, epochs=2)
    assert [line["epoch"] for line in Run(path).read_log()] == [1, 2]


def test_a_new_folder_of_another_training_is_not_removed(tmp_path):
    run = Run(tmp_path / "run")
    run.lock()
    with pytest.raises(DataError, match="another training is writing"):
        train(tmp_path / "run")
    assert (tmp_path / "run").is_dir()
    run.close()
    train(tmp_path / "run")


def test_two_threads_do_not_train_at_once(tmp_path):
    """They would change each other's random numbers."""
    found = []

    def other():
        try:
            train(tmp_path / "other")
        except RuntimeError as error:
            found.append(str(error))

    with only_training():
        with only_training():  # a training in a callback of the same thread
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert found == [
        "another thread of this process is training, use a process for each"
    ]
    train(tmp_path / "other")


def test_clocks_that_go_backwards(tmp_path, monkeypatch):
    """Neither the time of day nor that of files decides what is learned."""
    expected = train(tmp_path / "undisturbed", epochs=2)
    now = iter(range(10**9, 0, -3600))
    for clock in ("time", "perf_counter", "monotonic"):
        monkeypatch.setattr(time, clock, lambda: float(next(now)))
    train(tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        os.utime(path, (4e9, 4e9))  # far in the future
    found = train(tmp_path / "run", epochs=2, resume=True)
    assert all(torch.equal(found[name], value) for name, value in expected.items())
    assert [line["epoch"] for line in Run(tmp_path / "run").read_log()] == [1, 2]
    KBLRN.load(tmp_path / "run" / "model.pt")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edited")
    kbs = dict.fromkeys(("train", "val", "test"), small_kb())
    write_local_kb(folder / "kb", kbs)
    words = "--experts l --hidden-channels 4 --num-negatives 5 --epochs 1".split()
    run = ["--out", str(folder / "run")]
    assert main(["train", str(folder / "kb"), *words, *run]) == 0
    return folder


def test_what_a_training_writes_to_is_not_calibrated(trained, capfd):
    run, path = Run(trained / "run"), trained / "run" / "model.pt"
    before = path.read_bytes()
    run.lock()
    try:
        assert main(["calibrate", str(run.path)]) == 2
    finally:
        run.close()
    assert "another training is writing to this folder" in capfd.readouterr().err
    assert path.read_bytes() == before


EDITS = {
    "another size": {"model": {"hidden_channels": 5}},
    "a text": {"model": {"hidden_channels": "many"}},
    "a fraction": {"training": {"batch_size": 2.5}},
    "nothing": {"training": {"lr": None}},
    "a list": {"training": []},
    "no letters": {"model": {"experts": 7}},
    "an unknown name": {"training": {"hops": 2}},
    "not a number": {"training": {"lr": float("nan")}},
    "hundreds of digits": {"training": {"lr": 10**400}},
    "too many epochs": {"training": {"epochs": 2**63}},
    "a data set of a number": {"dataset": 5},
    "a root of a list": {"root": ["/"]},
    "a missing data set": {"dataset": "/nowhere/\x1b[2J"},
    "threads": {"threads": "two"},
    "negative threads": {"threads": -3},
}


@pytest.mark.parametrize("edit", EDITS)
def test_edited_settings_are_refused_in_a_line(trained, capfd, edit):
    path = trained / "run" / "settings.json"
    before = path.read_text()
    settings = json.loads(before)
    for name, value in EDITS[edit].items():
        if isinstance(value, dict):
            settings[name] |= value
        else:
            settings[name] = value
    path.write_text(json.dumps(settings))
    dataset, run = str(trained / "kb"), str(trained / "run")
    try:
        codes = [
            main(["train", dataset, "--out", run, "--resume", "--epochs", "2"]),
            main(["evaluate", run]),
        ]
    finally:
        path.write_text(before)
    error = capfd.readouterr().err
    assert set(codes) <= {0, 2}
    assert codes[0] == 2
    assert "Traceback" not in error
    assert "\x1b" not in error
    assert all(
        line.startswith("kblrn ") for line in error.splitlines() if line[:3] != "the"
    )


@pytest.mark.parametrize("start", [5, [], "x", True, None])
def test_a_start_of_another_form_is_no_reason_to_fail(trained, capfd, start):
    """'kblrn control' ended with a traceback."""
    path = trained / "run" / "settings.json"
    before = path.read_text()
    path.write_text(json.dumps(json.loads(before) | {"start": start}))
    try:
        code = main(["control", str(path.parent)])
    finally:
        path.write_text(before)
    assert code == 2
    words = "has no numbers to control" if start is None else "'start' must be values"
    assert words in capfd.readouterr().err


SETTINGS = (
    FitSettings,
    FoldInSettings,
    ModelSettings,
    MineSettings,
    ConstantSettings,
)


@pytest.mark.parametrize("cls", SETTINGS)
def test_settings_have_the_types_that_they_are_declared_with(cls):
    """Texts were compared with numbers, fractions and NaN counted, and True was 1."""
    for field in fields(cls):
        kinds = get_args(field.type) or (field.type,)
        wrong = ["x", b"x", {}, Run, *([None] if type(None) not in kinds else [])]
        if bool not in kinds:
            wrong += [True, 0.5 if int in kinds else math.nan, math.inf, 10**400]
        if str in kinds or field.type == list[str]:
            wrong.remove("x")
        for value in wrong:
            with pytest.raises(ValueError, match=f"'{field.name}' must"):
                cls(**{field.name: value})


def test_settings_that_are_numbers_of_numpy(tmp_path):
    """They are what a search over settings draws; their runs could not be read."""
    made = {"hidden_channels": np.int64(4), "threshold": np.float64(0.1)}
    made |= {"dropout": np.float32(0.5), "num_negatives": np.int64(5)}
    model = KBLRN.from_data(small_kb(), "ln", reciprocal=np.True_, **made)
    model.num_negatives = np.int64(4)
    options = {"lr": np.float64(0.1), "batch_size": np.int64(8), "seed": np.int32(1)}
    for epochs in np.array([1, 2]):
        options |= {"epochs": epochs, "validate_every": torch.tensor(1)}
        run = {"run": Run(tmp_path / "run"), "resume": bool(epochs > 1)}
        fit(model, small_kb(), small_kb(), **options, **run)
    found = KBLRN.load(tmp_path / "run" / "model.pt")
    assert type(found.num_negatives) is int
    assert found.config == model.config
    expert = NodeExpert(small_kb(), weight_decay=np.float32(0.5))
    KBLRN.from_data(small_kb(), [expert]).save(tmp_path / "node.pt")
    (found,) = KBLRN.load(tmp_path / "node.pt").experts.values()
    assert found.weight_decay == 0.5


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, "\x00", '{"model": 1}'])
def test_settings_of_another_form(trained, capfd, text):
    path = trained / "run" / "settings.json"
    before = path.read_text()
    path.write_text(text)
    try:
        code = main(
            ["train", str(trained / "kb"), "--out", str(path.parent), "--resume"]
        )
    finally:
        path.write_text(before)
    assert code == 2
    assert capfd.readouterr().err.count("\n") == 1


def test_numbers_that_require_gradients(tmp_path):
    kb = small_kb().clone()
    kb["entity"].x = kb["entity"].x.clone().requires_grad_()
    model = KBLRN.from_data(kb, "n", threshold=0.1, num_negatives=3)
    fit(model, kb, kb, epochs=1, validate_every=1, run=Run(tmp_path / "run"))
    some = torch.tensor([0, 1])
    expected = KBLRN.load(tmp_path / "run" / "model.pt").score_tails(some, some)
    assert torch.equal(model.score_tails(some, some), expected)


def test_relations_of_one_name_are_refused():
    with pytest.raises(
        ValueError, match=r"'relations' must not repeat \(got 'r' twice"
    ):
        make_kb(["a", "b"], ["r", "r"], tuple(torch.tensor([[0, 0], [0, 1], [1, 1]])))


@pytest.mark.parametrize(
    "content", [b"\xff\xfe{", b"[" * 100_000, b"1\n", b"{}\n[]\n", b"\0"]
)
def test_logs_of_others(tmp_path, content):
    """Errors were those of Python, of whatever it was that read the log."""
    (tmp_path / "log.jsonl").write_bytes(content)
    with pytest.raises(DataError, match=r"log.jsonl: (is not a log|must hold a JSON)"):
        Run(tmp_path).read_log()


def test_errors_shorten_paths():
    error = DataError("is wrong", "\x1b[2J" + "x" * 20_000, 3)
    assert len(str(error)) < 2200
    assert "\x1b" not in str(error)
    assert len(error.path) > 20_000
