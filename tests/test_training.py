import errno
import json
import math
import platform
import random
import resource
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData
from trainable import (
    SETTINGS,
    FakeModel,
    same,
    small_kb,
    train_fake,
    two_sets,
    without_times,
)

import kblrn_pyg.data.whole as whole_module
import kblrn_pyg.training.loop as loop_module
from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, as_kb, ask, flat_triples, make_kb, read_kb
from kblrn_pyg.data.store import save_tensors
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.training import (
    Checkpoint,
    EarlyStopping,
    FitSettings,
    Run,
    fit,
    load_checkpoint,
    save_checkpoint,
    seed_all,
)
from kblrn_pyg.training.process import derive_seed, get_rng_states, set_rng_states


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a training that nobody disturbed."""
    folder = tmp_path_factory.mktemp("finished")
    train_fake(folder)
    return folder


# --- the stopping rule -----------------------------------------------------------


@pytest.mark.parametrize(
    ("patience", "values", "stops_at", "best_epoch"),
    [
        (0, [0.1, 0.2, 0.3], None, 3),
        (0, [0.1, 0.3, 0.2, 0.4], 3, 2),
        (0, [0.1, 0.1], 2, 1),
        (1, [0.1, 0.3, 0.2, 0.4, 0.4, 0.3], 6, 4),
        (2, [0.3, 0.1, 0.2, 0.25], 4, 1),
    ],
)
def test_early_stopping(patience, values, stops_at, best_epoch):
    stopping = EarlyStopping(patience)
    for epoch, value in enumerate(values, 1):
        continued = EarlyStopping(patience)
        continued.load_state_dict(stopping.state_dict())
        assert continued == stopping
        stopping.update(epoch, value)
        if stopping.stopped:
            break
    assert (epoch if stopping.stopped else None) == stops_at
    assert stopping.best_epoch == best_epoch
    assert stopping.best_value == max(values[:epoch])


def test_early_stopping_mistakes():
    with pytest.raises(ValueError, match="'patience' must not be negative"):
        EarlyStopping(-1)
    with pytest.raises(ValueError, match="got nan"):
        EarlyStopping().update(1, math.nan)


# --- random numbers --------------------------------------------------------------


def test_seeds_differ():
    numbers = [(1,), (1, 0), (1, 0, 0), (1, 0, 0, 1), (0, 1), (2,)]
    assert len({derive_seed(*each) for each in numbers}) == len(numbers)


def test_random_numbers_continue_from_a_file(tmp_path):
    def draw():
        return torch.rand(1).item(), np.random.standard_normal(), random.gauss(0, 1)

    seed_all(3)
    draw()  # leaves half a pair of Gaussian numbers behind
    torch.save(get_rng_states(), tmp_path / "states.pt")
    expected = draw()
    seed_all(4)
    assert draw() != expected
    set_rng_states(torch.load(tmp_path / "states.pt", weights_only=True))
    assert draw() == expected


def test_the_random_numbers_of_the_caller_stay():
    seed_all(5)
    expected = get_rng_states()
    model, (train, val) = FakeModel(), small_kb()
    set_rng_states(expected)
    fit(model, train, val, epochs=1)
    assert same(get_rng_states(), expected)


# --- checkpoints -----------------------------------------------------------------


@pytest.fixture
def saved(finished, tmp_path):
    """A copy of a good checkpoint."""
    checkpoint = load_checkpoint(finished / "checkpoint.pt")
    save_checkpoint(tmp_path / "checkpoint.pt", checkpoint)
    return tmp_path / "checkpoint.pt"


def full_disk(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_checkpoint(saved, monkeypatch, function):
    before = saved.read_bytes()
    checkpoint = load_checkpoint(saved)
    monkeypatch.setattr(whole_module.os, function, full_disk)
    with pytest.raises(DataError, match=r"cannot be written \(No space left") as caught:
        save_checkpoint(saved, checkpoint)
    assert "\n" not in str(caught.value)
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_a_full_disk_in_the_middle_of_a_training(tmp_path):
    train_fake(tmp_path, epochs=1)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(DataError, match="cannot be written"):
            train_fake(tmp_path, epochs=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_damaged_checkpoints_are_refused(saved):
    good = saved.read_bytes()
    for length in range(0, len(good), 397):
        saved.write_bytes(good[:length])
        with pytest.raises(DataError) as caught:
            load_checkpoint(saved)
        assert "\n" not in str(caught.value)
    for place in range(0, len(good), 397):
        saved.write_bytes(good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :])
        with pytest.raises(DataError):
            load_checkpoint(saved)


def test_foreign_files_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        load_checkpoint(tmp_path / "nowhere.pt")
    save_tensors({"model": {}}, tmp_path / "model.pt", "model")
    with pytest.raises(DataError, match="is a model"):
        load_checkpoint(tmp_path / "model.pt")
    save_tensors({"model": {}}, tmp_path / "other.pt", "checkpoint")
    with pytest.raises(DataError, match="is a checkpoint of another version"):
        load_checkpoint(tmp_path / "other.pt")


def test_other_models_and_settings_are_refused(saved):
    (train, val), before = small_kb(), saved.read_bytes()
    run = Run(saved.parent)
    with pytest.raises(DataError, match="was made by another model"):
        fit(FakeModel("other"), train, val, run=run, **SETTINGS)
    with pytest.raises(DataError, match=r"was made with lr = 0.01, expected 0.5"):
        fit(FakeModel(), train, val, run=run, **SETTINGS | {"lr": 0.5})
    model = FakeModel()
    model.config = {"channels": 5}
    with pytest.raises(DataError, match=r"was made with channels = 4, expected 5"):
        fit(model, train, val, run=run, **SETTINGS)
    with pytest.raises(DataError, match="was made with triples = "):
        fit(FakeModel(), val, train, run=run, **SETTINGS)
    assert saved.read_bytes() == before


def test_versions_are_kept(saved, caplog):
    checkpoint = load_checkpoint(saved)
    assert set(checkpoint.versions) == {
        "kblrn_pyg",
        "torch",
        "torch_geometric",
        "numpy",
    }
    checkpoint.versions["torch"] = "0.1"
    save_checkpoint(saved, Checkpoint(**vars(checkpoint)))
    train_fake(saved.parent)
    assert caplog.messages == [f"{saved} was made with torch 0.1"]


# --- learning --------------------------------------------------------------------


def test_the_seed_decides():
    weights, result = train_fake(seed=1)
    again, same_result = train_fake(seed=1)
    assert same(weights, again)
    assert without_times(result.history) == without_times(same_result.history)
    assert not same(weights, train_fake(seed=2)[0])


def test_the_folder_changes_nothing(finished):
    weights, result = train_fake()
    checkpoint = load_checkpoint(finished / "checkpoint.pt")
    assert same(weights, checkpoint.best["val"])
    assert result.epochs_done == 6
    assert not result.stopped_early


def test_it_learns_and_logs(finished):
    lines = [json.loads(line) for line in (finished / "log.jsonl").open()]
    assert [line["epoch"] for line in lines] == [2, 4, 6]
    for line in lines:
        assert set(line) == {"epoch", "loss", "seconds", "triples_per_second", "val"}
        assert 0 < line["val"]["mrr"] <= 1
    assert lines[-1]["loss"] < lines[0]["loss"]
    assert lines[0]["seconds"] < lines[-1]["seconds"]


def with_validations(monkeypatch, values):
    """Lets validations give these values, and returns the weights at each."""
    seen, values = [], iter(values)

    class Table:
        def metrics(self):
            return self

        mrr = property(lambda self: self.value)

        def to_dict(self):
            return {"mrr": self.value}

    def evaluate(model, data, filter_with):
        seen.append({k: v.clone() for k, v in model.state_dict().items()})
        table = Table()
        table.value = next(values)
        return table

    monkeypatch.setattr(loop_module, "evaluate", evaluate)
    return seen


def test_the_best_weights_win(monkeypatch, tmp_path):
    seen = with_validations(monkeypatch, [0.1, 0.3, 0.2, 0.25])
    weights, result = train_fake(tmp_path, epochs=9, patience=1)
    assert (result.best_epoch, result.best_mrr) == (4, 0.3)
    assert (result.epochs_done, result.stopped_early) == (8, True)
    assert same(dict(weights), seen[1])
    again, same_result = train_fake(tmp_path, epochs=9, patience=1)  # is finished
    assert same(again, weights)
    assert same_result == result
    assert same(dict(result.best["val"].weights), seen[1])
    assert same(dict(Run(tmp_path).best_weights()), seen[1])


def test_a_last_validation_out_of_turn_stops_nothing(monkeypatch, tmp_path):
    with_validations(monkeypatch, [0.1, 0.3, 0.2, 0.4, 0.35])
    _, result = train_fake(tmp_path, epochs=5, patience=0)  # after 2, 4 and 5
    assert (result.best_epoch, result.stopped_early) == (4, False)
    _, result = train_fake(tmp_path, epochs=9, patience=0)
    assert (result.best_epoch, result.epochs_done) == (6, 8)
    assert result.stopped_early


def test_no_epochs_leave_a_model(tmp_path):
    weights, result = train_fake(tmp_path, epochs=0)
    assert (result.epochs_done, result.history) == (0, [])
    assert same(Run(tmp_path).best_weights(), weights)


def test_without_validation(tmp_path):
    weights, result = train_fake(tmp_path, val=None, epochs=3)
    assert (result.best_epoch, result.best_mrr) == (None, None)
    assert [line["epoch"] for line in result.history] == [2, 3]
    assert same(Run(tmp_path).best_weights(), weights)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": -1}, "'epochs' must not be negative"),
        ({"batch_size": 0}, "'batch_size' must be positive"),
        ({"lr": 0.0}, "'lr' must be positive"),
        ({"val": ask(small_kb()[0], torch.empty(3, 0, dtype=torch.long))}, "'val' must have"),
        ({"val": make_kb(["a"], ["r"], torch.zeros(3, 1, dtype=torch.long))}, "of 'val', "),
    ],
)  # fmt: skip
def test_wrong_arguments(changes, message):
    with pytest.raises(ValueError, match=message):
        train_fake(**changes)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number(monkeypatch, value):
    monkeypatch.setattr(FakeModel, "loss", lambda *_: torch.tensor(value))
    with pytest.raises(DataError, match=f"the loss became {value} in epoch 1, batch 1"):
        train_fake()


# --- the folder ------------------------------------------------------------------


def test_settings(tmp_path):
    run = Run(tmp_path / "deep" / "folder")
    run.write_settings({"lr": 0.1, "relation": "ü"})
    assert run.read_settings() == {"lr": 0.1, "relation": "ü"}
    run.settings_path.write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        run.read_settings()
    with pytest.raises(DataError, match="not a run"):
        Run(tmp_path / "nowhere").read_settings()


def test_tensorboard_is_optional(tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    train, val = small_kb()
    fit(FakeModel(), train, val, epochs=1, run=Run(tmp_path, tensorboard=True))
    assert caplog.messages == [
        "tensorboard is not installed, only log.jsonl is written"
    ]
    assert len(Run(tmp_path).read_log()) == 1


def test_features_have_a_learning_rate_of_their_own():
    data = small_kb()[0]
    model, new = FakeModel(), FakeModel()
    fit(model, data, epochs=1, lr=1e-12, feature_lr=0.1)
    assert torch.allclose(model.entity.weight, new.entity.weight, atol=1e-9)
    assert not torch.allclose(model.relation.weight, new.relation.weight, atol=1e-2)
    with pytest.raises(ValueError, match="'feature_lr' must be positive"):
        fit(FakeModel(), data, feature_lr=0.0)


def test_learning_rate_falls_from_epoch_to_epoch():
    data = small_kb()[0]
    weights = {}
    for epochs, decay in ((1, 1.0), (2, 1e-12), (2, 1.0)):
        model = FakeModel()
        fit(model, data, epochs=epochs, lr=0.1, lr_decay=decay)
        weights[epochs, decay] = next(iter(model.state_dict().values())).clone()
    assert torch.allclose(weights[1, 1.0], weights[2, 1e-12], atol=1e-9)
    assert not torch.allclose(weights[1, 1.0], weights[2, 1.0], atol=1e-3)


FAULTS = """
import ctypes
import resource
import torch
from kblrn_pyg.training.process import keep_freed_memory

def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        arrays = [torch.ones(2**20) for _ in range(4)]
        del arrays
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

ctypes.CDLL(None).mallopt(-3, 2**17)  # large arrays always come from the system
print(page_faults())
keep_freed_memory()
page_faults()
print(page_faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc")
def test_freed_memory_is_kept_for_the_next_step():
    # In a process of its own: here, others have left memory to take.
    command = [sys.executable, "-c", FAULTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 1000
    assert after < before / 100


# --- what is trained on ----------------------------------------------------------


def typed_graph():
    data = HeteroData()
    data["person"].num_nodes, data["town"].num_nodes = 3, 2
    lives = torch.tensor([[0, 1, 2], [0, 1, 0]])
    data["person", "lives_in", "town"].edge_index = lives
    data["person", "knows", "person"].edge_index = torch.tensor([[0, 1], [1, 2]])
    return data


def homogeneous_graph():
    edges = torch.tensor([[0, 1, 2], [3, 4, 3]])
    return Data(edge_index=edges, edge_type=torch.tensor([0, 1, 0]), num_nodes=5)


@pytest.mark.parametrize("graph", [typed_graph, homogeneous_graph])
def test_graphs_of_users_are_trained_on_as_the_model_knows_them(graph):
    weights = []
    for data in (graph(), as_kb(graph())):
        torch.manual_seed(0)
        model = KBLRN.from_data(graph(), "l", 4, num_negatives=3)
        fit(model, data, data, filter_with=[data], epochs=2, validate_every=1)
        weights.append(model.state_dict())
        asked = flat_triples(as_kb(data), "edge_label_index")
        assert evaluate(model, data).metrics().count == 2 * len(asked[0])
    assert same(*weights)


def test_a_split_of_few_relations_is_understood():
    model = KBLRN.from_data(homogeneous_graph(), "l", 4)
    split = homogeneous_graph()
    split.edge_index, split.edge_type = split.edge_index[:, :1], split.edge_type[:1]
    assert evaluate(model, split).metrics().count == 2


def test_data_of_another_model_is_refused():
    model = KBLRN.from_data(small_kb()[0], "l", 4)
    with pytest.raises(ValueError, match=r"must be over the entities .* 'train'"):
        fit(model, homogeneous_graph())
    turned = make_kb(list("01234"), ["1", "0"], torch.tensor([[0], [0], [1]]))
    model = KBLRN.from_data(homogeneous_graph(), "l", 4)
    for work in (evaluate, fit):
        with pytest.raises(ValueError, match="in the same order"):
            work(model, turned)


def test_the_same_triples_in_another_order_are_another_kb():
    """Ids are given by appearance, so that they mean others there."""
    rows = [(f"p{i}", "parent_of", f"p{i + 1}") for i in range(6)]
    (one, _), (turned, _) = read_kb(rows), read_kb(rows[::-1])
    one, turned = one["train"], turned["train"]
    model = KBLRN.from_data(one, "l", 4, num_negatives=3)
    assert evaluate(model, one, [one]).metrics().count == 12
    message = r"got 'p5' as entity 0, which is 'p0'"
    for work in (
        lambda: evaluate(model, turned),
        lambda: evaluate(model, one, [turned]),
        lambda: fit(model, turned),
        lambda: model.predict_tails("p0", "parent_of", known=[turned]),
        lambda: model.explain("p0", "parent_of", "p1", known=[turned]),
    ):
        with pytest.raises(ValueError, match=message):
            work()


# --- several validation sets -----------------------------------------------------


def test_each_validation_set_stops_on_its_own(monkeypatch, tmp_path):
    # After 2 epochs: all, some; after 4: both; after 6: all has stopped.
    seen = with_validations(monkeypatch, [0.3, 0.1, 0.2, 0.2, 0.4, 0.3])
    weights, result = train_fake(tmp_path, val=two_sets(), epochs=20, patience=0)
    assert [set(line) & {"all", "some"} for line in result.history] == [
        {"all", "some"},
        {"all", "some"},
        {"some"},
        {"some"},
    ]
    assert (result.epochs_done, result.stopped_early) == (8, True)
    assert {name: (one.epoch, one.mrr) for name, one in result.best.items()} == {
        "all": (2, 0.3),
        "some": (6, 0.4),
    }
    assert (result.best_epoch, result.best_mrr) == (2, 0.3)
    assert same(dict(weights), seen[0])
    assert same(dict(result.best["some"].weights), seen[4])
    run = Run(tmp_path)
    assert same(dict(run.best_weights()), seen[0])
    assert same(dict(run.best_weights(validation_set="some")), seen[4])
    with pytest.raises(ValueError, match=r"one of all, some \(got 'val'"):
        run.best_weights(validation_set="val")


def test_filters_belong_to_their_validation_set(monkeypatch):
    val, calls = small_kb()[1], []

    def evaluate_and_note(model, data, filter_with):
        calls.append((data, list(filter_with)))
        return evaluate(model, data, filter_with)

    monkeypatch.setattr(loop_module, "evaluate", evaluate_and_note)
    sets = two_sets()
    train_fake(val=sets, filter_with={"some": [val]}, epochs=1)
    assert [filters for _, filters in calls] == [[], [val]]
    calls.clear()
    train_fake(val=sets, filter_with=[val], epochs=1)
    assert [filters for _, filters in calls] == [[val], [val]]
    for arguments, message in [
        ({"filter_with": {"other": [val]}}, "names of validation sets .got 'other'"),
        ({"val": {"loss": val}}, "names of other log fields .got 'loss'"),
    ]:
        with pytest.raises(ValueError, match=message):
            train_fake(**arguments)


def test_callbacks_see_and_extend_the_log(tmp_path):
    seen = []

    def note(progress):
        seen.append((progress.epoch, progress.model.training, progress.run.path))
        progress.line["twice"] = 2 * progress.line["val"]["mrr"]

    _, result = train_fake(tmp_path, callbacks=[note])
    assert seen == [(epoch, False, tmp_path) for epoch in (2, 4, 6)]
    for line in [*result.history, *Run(tmp_path).read_log()]:
        assert line["twice"] == 2 * line["val"]["mrr"]


def test_the_model_is_in_evaluation_mode_afterwards():
    train, val = small_kb()
    torch.manual_seed(0)
    model = KBLRN.from_data(train, "l", 4, num_negatives=3, dropout=0.5)
    fit(model, train, val, epochs=1)
    triple = torch.tensor([0]), torch.tensor([0]), torch.tensor([1])
    queries = triple[0].expand(50), triple[1].expand(50)
    assert not model.training
    assert len(model.score_tails(*queries).unique(dim=0)) == 1
    assert model(*triple) == model(*triple)
    model = KBLRN.from_data(train, "l", 4)
    fit(model, train, epochs=0)
    assert not model.training


def test_settings_may_be_given_whole():
    expected, _ = train_fake(seed=3)
    model, (train, val) = FakeModel(), small_kb()
    settings = FitSettings(**SETTINGS)
    fit(model, train, val, settings=settings, seed=3)
    assert same(dict(model.state_dict()), dict(expected))
    with pytest.raises(TypeError, match="unexpected keyword argument 'epoch', "):
        fit(model, train, epoch=3)


def test_a_failed_start_leaves_no_folder(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with pytest.raises(ValueError, match="'lr' must be positive"):
        train_fake(folder, lr=0.0)
    monkeypatch.setattr(loop_module, "save_checkpoint", full_disk)
    with pytest.raises(OSError, match="No space left"):
        train_fake(folder)
    assert not folder.exists()
    folder.mkdir()
    with pytest.raises(OSError, match="No space left"):
        train_fake(folder)
    assert folder.exists()


def test_settings_are_written_unless_there_are_some(tmp_path):
    train_fake(tmp_path / "one", epochs=1)
    settings = Run(tmp_path / "one").read_settings()
    assert settings["model"] == {"channels": 4}
    assert settings["training"] == vars(FitSettings(**SETTINGS | {"epochs": 1}))
    Run(tmp_path / "two").write_settings({"mine": 1})
    train_fake(tmp_path / "two", epochs=1)
    assert Run(tmp_path / "two").read_settings() == {"mine": 1}
    train, val = small_kb()
    run = Run(tmp_path / "two", settings={"new": 2})
    fit(FakeModel(), train, val, run=run, **SETTINGS)
    assert run.read_settings() == {"new": 2}


def test_feature_lr_without_features_is_reported(monkeypatch):
    monkeypatch.setattr(FakeModel, "feature_parameters", lambda _: [])
    with pytest.warns(UserWarning, match="'feature_lr' has no effect") as caught:
        fit(FakeModel(), small_kb()[0], epochs=0, feature_lr=0.1)
    assert caught[0].filename == __file__
