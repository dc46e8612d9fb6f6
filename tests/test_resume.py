"""A training that was stopped or killed ends as if nothing had happened."""

import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest
import torch
from trainable import NUM_BATCHES, FakeModel, assert_same_end, train_fake, two_sets

import kblrn_pyg.data.whole as whole_module
import kblrn_pyg.training.loop as loop_module
from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError
from kblrn_pyg.datasets import Families
from kblrn_pyg.training import (
    Interrupted,
    Run,
    fit,
    load_checkpoint,
    save_checkpoint,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished")
    train_fake(folder)
    return folder


def test_more_epochs_continue_a_run(finished, tmp_path):
    train_fake(tmp_path, epochs=4)
    train_fake(tmp_path, epochs=6)
    assert_same_end(tmp_path, finished)
    train_fake(tmp_path, resume=False, epochs=2)
    assert len(Run(tmp_path).read_log()) == 1


def test_half_a_line_in_the_log_is_dropped(finished, tmp_path):
    train_fake(tmp_path, epochs=4)
    with Run(tmp_path).log_path.open("a") as file:
        file.write('{"epoch": 6, "lo')
    train_fake(tmp_path)
    assert_same_end(tmp_path, finished)


@pytest.mark.parametrize("number", [2, 6, 8, 10, 11])
def test_several_validation_sets_continue(tmp_path, number):
    # One set stops after four validations, the other after seven.
    wanted = {"val": two_sets(), "patience": 1, "validate_every": 1}
    wanted |= {"lr": 0.1, "epochs": 12}
    train_fake(tmp_path / "one", **wanted)
    with pytest.MonkeyPatch.context() as patch:
        at_call(patch, loop_module, "evaluate", number, press_ctrl_c)
        with pytest.raises(Interrupted):
            train_fake(tmp_path / "two", **wanted)
    train_fake(tmp_path / "two", **wanted)
    assert_same_end(tmp_path / "two", tmp_path / "one")
    stopping = load_checkpoint(tmp_path / "two" / "checkpoint.pt").stopping
    assert {name: one["best_epoch"] for name, one in stopping.items()} == {
        "all": 2,
        "some": 5,
    }


# --- Ctrl-C ----------------------------------------------------------------------


def at_call(monkeypatch, place, name, number, act):
    """Lets something happen when a function is called for the n-th time."""
    function, calls = getattr(place, name), []

    def wrapped(*arguments, **kwargs):
        calls.append(name)
        if len(calls) == number:
            act()
        return function(*arguments, **kwargs)

    monkeypatch.setattr(place, name, wrapped)


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("place", "name", "number", "batches_done"),
    [
        (FakeModel, "loss", 1, 1),
        (FakeModel, "loss", NUM_BATCHES + 3, NUM_BATCHES + 3),
        (FakeModel, "loss", 2 * NUM_BATCHES, 2 * NUM_BATCHES),
        (FakeModel, "loss", 6 * NUM_BATCHES, 6 * NUM_BATCHES),
        (loop_module, "evaluate", 2, 4 * NUM_BATCHES),
        (loop_module, "save_checkpoint", 3, 2 * NUM_BATCHES),
        (Run, "log", 1, 2 * NUM_BATCHES),
    ],
)
def test_ctrl_c(finished, tmp_path, place, name, number, batches_done):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.MonkeyPatch.context() as patch:
        at_call(patch, place, name, number, press_ctrl_c)
        with pytest.raises(Interrupted):
            train_fake(tmp_path)
    assert signal.getsignal(signal.SIGINT) is handler
    position = load_checkpoint(tmp_path / "checkpoint.pt").position
    assert position["epoch"] * NUM_BATCHES + position["batch"] == batches_done
    train_fake(tmp_path)
    assert_same_end(tmp_path, finished)


def test_ctrl_c_in_every_batch(finished, tmp_path):
    interruptions = 0
    while True:
        with pytest.MonkeyPatch.context() as patch:
            at_call(patch, FakeModel, "loss", 1, press_ctrl_c)
            try:
                train_fake(tmp_path)
                break
            except Interrupted:
                interruptions += 1
    assert interruptions == 6 * NUM_BATCHES
    assert_same_end(tmp_path, finished)


def test_ctrl_c_without_a_folder(monkeypatch):
    at_call(monkeypatch, FakeModel, "loss", 3, press_ctrl_c)
    with pytest.raises(KeyboardInterrupt) as caught:
        train_fake()
    assert not isinstance(caught.value, Interrupted)


def test_ctrl_c_twice(finished, tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        at_call(patch, FakeModel, "loss", 9, press_ctrl_c)
        at_call(patch, whole_module.os, "replace", 3, press_ctrl_c)
        with pytest.raises(Interrupted):
            train_fake(tmp_path)
    train_fake(tmp_path)
    assert_same_end(tmp_path, finished)


# --- kill -9 ---------------------------------------------------------------------


def train_until_killed(folder, place, name, number):
    """Runs in a process of its own, which it kills."""
    places = {"loop": loop_module, "whole.os": whole_module.os}
    places |= {"model": FakeModel, "run": Run}
    with pytest.MonkeyPatch.context() as patch:
        if place is not None:
            kill = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
            at_call(patch, places[place], name, number, kill)
        train_fake(folder, pause=0.002)


@pytest.fixture(scope="module")
def start():
    """Starts processes that need not import torch again."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])

    def start_process(folder, place=None, name="", number=0):
        arguments = (folder, place, name, number)
        process = context.Process(target=train_until_killed, args=arguments)
        process.start()
        return process

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        yield start_process


@pytest.mark.parametrize(
    ("place", "name", "number"),
    [
        ("model", "loss", 3),
        ("model", "loss", 4 * NUM_BATCHES),
        ("loop", "evaluate", 1),
        ("loop", "evaluate", 3),
        ("whole.os", "fsync", 4),
        ("whole.os", "replace", 2),
        ("whole.os", "replace", 5),
        ("whole.os", "fsync", 11),
        ("run", "log", 2),
        ("run", "log", 3),
    ],
)
def test_kill_at_a_bad_moment(start, finished, tmp_path, place, name, number):
    process = start(tmp_path, place, name, number)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    process = start(tmp_path)
    process.join()
    assert process.exitcode == 0
    assert_same_end(tmp_path, finished)


def test_kill_at_random_moments(start, finished, tmp_path):
    moments, kills = random.Random(), 0
    checkpoint = tmp_path / "checkpoint.pt"
    while True:
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else None
        process = start(tmp_path)
        while process.is_alive() and (
            not checkpoint.exists() or checkpoint.stat().st_mtime_ns == before
        ):
            time.sleep(0.001)
        process.join(moments.uniform(0, 0.05) if kills < 8 else None)
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        kills += 1
    assert kills > 0
    assert_same_end(tmp_path, finished)


def test_settings_that_came_later_have_their_defaults(tmp_path):
    """A checkpoint that was made before there was a setting is continued."""
    data = Families(split="train")[0]
    run = Run(tmp_path)

    def train(epochs, **settings):
        torch.manual_seed(0)
        model = KBLRN.from_data(data, "l", 4, **settings)
        return fit(model, data, run=run, epochs=epochs, batch_size=4096)

    train(1)
    checkpoint = load_checkpoint(run.checkpoint_path)
    del checkpoint.settings["dura"], checkpoint.settings["lr_decay"]
    save_checkpoint(run.checkpoint_path, checkpoint)
    assert train(2).epochs_done == 2
    del checkpoint.settings["l2"]
    save_checkpoint(run.checkpoint_path, checkpoint)
    with pytest.raises(DataError, match=r"was made with l2 = 0\.0, expected 0\.5"):
        train(2, l2=0.5)
