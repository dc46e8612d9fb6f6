"""Scores become probabilities: the fit is the optimum, the error follows its
definition, false triples are false, and everything that prints them does."""

import csv
import importlib
import io
import json
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from scripts import run

from kblrn_pyg import KBLRN
from kblrn_pyg.cli import calibrate as cli_calibrate
from kblrn_pyg.data import DataError, KnownFacts, ask, flat_triples, make_kb
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.data.store import load_tensors, save_tensors
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import (
    Reliability,
    calibrate,
    labelled_triples,
    reliability_of,
    triple_scores,
)
from kblrn_pyg.evaluation.calibrate import _fit
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.plotting import plot_reliability
from kblrn_pyg.predict import complete, predict_tails
from kblrn_pyg.runs import load_model
from kblrn_pyg.training import Run, fit, seed_all


@pytest.fixture(scope="module")
def splits():
    return load_dataset("Families")


@pytest.fixture(scope="module")
def model(splits):
    seed_all(0)
    model = KBLRN.from_data(
        splits["train"], "lr", 16, num_negatives=None, reciprocal=True
    )
    fit(model, splits["train"], epochs=2, lr=0.02)
    return model


@pytest.fixture(scope="module")
def calibration(model, splits):
    return calibrate(model, splits["val"], [splits["test"]])


def all_facts(splits):
    triples = [flat_triples(kb, "edge_label_index") for kb in splits.values()]
    return {one for columns in triples for one in zip(*(c.tolist() for c in columns))}


# --- the error ---------------------------------------------------------------------


def naive_error(probability, is_true, num_bins):
    """By the definition, bin by bin."""
    total = 0.0
    for b in range(num_bins):
        low, high = b / num_bins, (b + 1) / num_bins
        some = [
            (p, y)
            for p, y in zip(probability, is_true)
            if low <= p < high or (p == 1 and b == num_bins - 1)
        ]
        if some:
            mean, true = (sum(column) / len(some) for column in zip(*some))
            total += abs(mean - true) * len(some)
    return total / len(probability)


@pytest.mark.parametrize("num_bins", [1, 4, 16])
@pytest.mark.parametrize("seed", range(5))
def test_error_follows_its_definition(seed, num_bins):
    rng = np.random.default_rng(seed)
    probability = rng.random(40).round(3)
    probability[:3] = 0, 1, 0.5
    is_true = rng.random(40) < 0.4
    found = Reliability.of(probability, is_true, num_bins)
    wanted = naive_error(probability.tolist(), is_true.tolist(), num_bins)
    assert found.error == pytest.approx(wanted, abs=1e-12)
    assert found.count.sum() == 40
    assert len(str(found).splitlines()) == 1 + (found.count > 0).sum()


def test_true_probabilities_have_no_error():
    rng = np.random.default_rng(0)
    probability = rng.random(200_000)
    assert Reliability.of(probability, rng.random(200_000) < probability).error < 0.01
    assert (
        Reliability.of(probability, rng.random(200_000) < probability / 2).error > 0.2
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [True, False]), "of one length"),
        (([], []), "not empty"),
        (([1.5], [True]), "0 to 1"),
        (([0.5], [True], 0), "'num_bins'"),
    ],
)
def test_wrong_reliability(arguments, message):
    with pytest.raises(ValueError, match=message):
        Reliability.of(*arguments)


# --- the fit -----------------------------------------------------------------------


@pytest.mark.parametrize("precision", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(4))
def test_fit_is_the_optimum(seed, precision):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=60)
    truth = (rng.random(60) < 1 / (1 + np.exp(-2 * values))).astype(float)
    centre = np.array([1.0, -0.5]) * (precision > 0)
    found = _fit(values, truth, centre, np.full(2, precision))
    high = (truth.sum() + 1) / (truth.sum() + 2)
    low = 1 / (60 - truth.sum() + 2)
    target = torch.from_numpy(np.where(truth > 0, high, low))
    x, middle = torch.from_numpy(values), torch.from_numpy(centre)

    def loss(parameters):
        logits = parameters[0] * x + parameters[1]
        cross = torch.nn.functional.binary_cross_entropy_with_logits
        prior = precision * (parameters - middle).square().sum() / 2
        return cross(logits, target, reduction="sum") + prior

    other = torch.zeros(2, dtype=torch.double, requires_grad=True)
    optimizer = torch.optim.LBFGS([other], max_iter=500, tolerance_grad=1e-12)
    optimizer.step(
        lambda: (optimizer.zero_grad(), one := loss(other), one.backward())[1]
    )
    np.testing.assert_allclose(found, other.detach().numpy(), atol=1e-4)


def test_fit_finds_the_optimum_from_far_away():
    """Whole steps of Newton's method lead away from it, where few scores are large."""
    rng = np.random.default_rng(0)
    truth = (np.arange(120) < 60).astype(float)
    values = np.where(
        rng.random(120) < 0.15, rng.uniform(2, 4, 120), rng.normal(0, 0.3)
    )
    values = values + 0.3 * truth
    values = (values - values.mean()) / values.std()
    wanted = _fit(values, truth, np.zeros(2), np.zeros(2))
    for start in ([5.0, 0.0], [2.0, 0.5], [-3.0, 1.0]):
        found = _fit(values, truth, np.array(start), np.full(2, 1e-6))
        np.testing.assert_allclose(found, wanted, atol=1e-3)


def test_the_scale_of_one_relation_is_no_matter_of_others(model, splits, monkeypatch):
    """Paths and evidence may score one relation a thousand times as high as others."""
    module = importlib.import_module("kblrn_pyg.evaluation.calibrate")
    known = calibrate(model, splits["val"], [splits["test"]])
    factor = 1000.0 ** (np.arange(model.num_relations) % 2)
    monkeypatch.setattr(
        module,
        "triple_scores",
        lambda m, h, r, t: factor[r] * triple_scores(m, h, r, t),
    )
    found = calibrate(model, splits["val"], [splits["test"]])
    own = (known.count > 0).numpy()
    assert own.sum() > 4
    assert torch.equal(found.count, known.count)
    slope = found.slope.numpy() * factor
    # Those with few triples, too, which share what all relations together say.
    np.testing.assert_allclose(slope, known.slope.numpy(), rtol=1e-5)
    np.testing.assert_allclose(found.intercept, known.intercept, rtol=1e-4)


def test_separable_scores_stay_finite():
    values, truth = np.array([-1.0, -2, 1, 2]), np.array([0.0, 0, 1, 1])
    assert np.isfinite(_fit(values, truth, np.zeros(2), np.zeros(2))).all()


# --- false triples -----------------------------------------------------------------


@pytest.mark.parametrize("negatives", ["observed", "all"])
@pytest.mark.parametrize("ratio", [1.0, 2.5])
def test_false_triples_are_false(model, splits, negatives, ratio):
    val, test = splits["val"], splits["test"]
    found = labelled_triples(model, val, [test], ratio, negatives)
    rows = list(zip(*(c.tolist() for c in found[:3])))
    number = int(found.is_true.sum())
    asked = list(zip(*(c.tolist() for c in flat_triples(val, "edge_label_index"))))
    assert rows[:number] == asked
    false = rows[number:]
    assert len(false) == round(ratio * number)
    assert not set(false) & all_facts(splits)
    train = list(zip(*(c.tolist() for c in flat_triples(splits["train"]))))
    heads = {(r, h) for h, r, _ in train}
    tails = {(r, t) for _, r, t in train}
    asked_heads, asked_tails = ({t[:2] for t in asked}, {t[1:] for t in asked})
    kept = [(h, r) in asked_heads or (r, t) in asked_tails for h, r, t in false]
    assert all(kept)  # one entity was replaced, not both
    observed = [
        ((r, t) in asked_tails and (r, h) in heads)
        or ((h, r) in asked_heads and (r, t) in tails)
        for h, r, t in false
    ]
    assert all(observed) == (negatives == "observed")
    assert negatives == "observed" or np.mean(observed) < 0.7
    again = labelled_triples(model, val, [test], ratio, negatives)
    assert all(np.array_equal(a, b) for a, b in zip(found, again))
    other = labelled_triples(model, val, [test], ratio, negatives, seed=1)
    assert not np.array_equal(found.head, other.head)


def test_where_everything_is_true_nothing_is_false():
    pairs = torch.cartesian_prod(torch.arange(2), torch.arange(2)).t()
    kb = make_kb(
        ["a", "b"], ["r"], (pairs[0], torch.zeros(4, dtype=torch.long), pairs[1])
    )
    found = labelled_triples(KBLRN.from_data(kb, "l", 4), kb)
    assert found.is_true.all()


def test_known_facts_contain(splits):
    known = KnownFacts(splits["train"], [splits["val"]])
    facts = all_facts({k: splits[k] for k in ("train", "val")})
    rng = np.random.default_rng(0)
    asked = np.stack(flat_triples(splits["val"], "edge_label_index"))
    drawn = np.stack(
        [
            rng.integers(2232, size=300),
            rng.integers(12, size=300),
            rng.integers(2232, size=300),
        ]
    )
    head, rel, tail = np.concatenate([asked, drawn], axis=1)
    wanted = [one in facts for one in zip(head.tolist(), rel.tolist(), tail.tolist())]
    assert known.contains(head, rel, tail).tolist() == wanted


# --- models ------------------------------------------------------------------------


def test_scores_are_the_mean_of_both_sides(model):
    rng = np.random.default_rng(0)
    ids = [rng.integers(n, size=50) for n in (2232, 12, 2232)]
    h, r, t = map(torch.from_numpy, ids)
    model.eval()
    with torch.no_grad():
        sides = [
            model.score_candidates(Queries.of_triples(h, r, t, side), answer[:, None])
            for side, answer in zip(SIDES, (h, t))
        ]
        parts = model.score_experts(h, r, t)
    wanted = (sides[0] + sides[1]).squeeze(1) / 2
    assert not torch.allclose(sides[0], sides[1])  # or nothing is tested
    torch.testing.assert_close(sum(parts.values()), wanted)
    np.testing.assert_allclose(triple_scores(model, *ids), wanted.numpy(), atol=1e-4)


def test_errors_on_other_triples_are_small(model, splits, calibration):
    model.calibration = calibration
    found = reliability_of(model, splits["test"], [splits["val"]])
    assert found.error < 0.05
    # As it would be without: all triples alike.
    h, r, t = flat_triples(splits["test"], "edge_label_index")
    scores = torch.from_numpy(triple_scores(model, *(c.numpy() for c in (h, r, t))))
    assert (
        Reliability.of(torch.sigmoid(scores), np.ones(len(h), bool)).error > found.error
    )
    model.calibration = None


def test_relations_have_their_own_numbers_if_they_have_enough(
    model, splits, calibration
):
    count = torch.bincount(
        flat_triples(splits["val"], "edge_label_index")[1], minlength=12
    )
    own = calibration.count > 0
    assert torch.equal(own, count >= 10)
    assert own.any()
    assert not own.all()
    assert len(set(calibration.slope[own].tolist())) == int(own.sum())
    whole = calibrate(model, splits["val"], [splits["test"]], least=10**6)
    assert whole.num_own == 0
    assert torch.equal(whole.slope[~own], calibration.slope[~own])
    assert not torch.equal(whole.slope[own], calibration.slope[own])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ratio": 0}, "'ratio' must be positive"),
        ({"negatives": "x"}, "'negatives' must be one of"),
        ({"least": 0}, "'least' must be positive"),
    ],
)
def test_wrong_arguments(model, splits, changes, message):
    with pytest.raises(ValueError, match=message):
        calibrate(model, splits["val"], **changes)


def test_nothing_to_fit(model, splits):
    none = tuple(torch.empty(0, dtype=torch.long) for _ in range(3))
    with pytest.raises(ValueError, match="at least one triple"):
        calibrate(model, ask(splits["train"], none))
    with pytest.raises(ValueError, match="must be calibrated"):
        reliability_of(model, splits["test"])


def test_scores_upside_down_are_refused(splits):
    torch.manual_seed(0)
    model = KBLRN.from_data(splits["train"], "r")
    with torch.no_grad():
        model.experts["relational"].weight.fill_(-1.0)
    with pytest.raises(ValueError, match="has not learned anything"):
        calibrate(model, splits["val"], [splits["test"]])


# --- files and output --------------------------------------------------------------


def test_model_files_keep_it(model, calibration, tmp_path):
    path = tmp_path / "model.pt"
    model.save(path)
    assert KBLRN.load(path).calibration is None
    model.calibration = calibration
    model.save(path)
    loaded = KBLRN.load(path).calibration
    model.calibration = None
    for name, value in vars(calibration).items():
        other = getattr(loaded, name)
        assert torch.equal(value, other) if torch.is_tensor(value) else value == other
    content = load_tensors(path, "model")
    for name, wrong in (
        ("slope", torch.full((12,), torch.nan)),
        ("slope", torch.ones(3)),
        ("intercept", torch.ones(3)),
        ("ratio", -1.0),
        ("negatives", "x"),
        ("surprise", 1),
    ):
        broken = dict(content) | {"calibration": content["calibration"] | {name: wrong}}
        save_tensors(broken, path, "model")
        with pytest.raises(DataError):
            KBLRN.load(path)


def test_files_of_before_can_be_loaded(model, tmp_path):
    path = tmp_path / "model.pt"
    model.save(path)
    content = dict(load_tensors(path, "model"))
    del content["calibration"]
    save_tensors(content, path, "model")
    assert KBLRN.load(path).calibration is None


def test_wrong_calibrations():
    one = torch.ones(2, dtype=torch.double)
    good = Calibration(one, one, one.long())
    with pytest.raises(ValueError, match="must not be negative"):
        replace(good, slope=-one)
    with pytest.raises(ValueError, match="finite"):
        replace(good, intercept=one * torch.inf)


def test_predictions_have_probabilities(model, calibration):
    model.calibration = calibration
    several = [
        predict_tails(model, "Ada Crowgarth", "likes", k=5),
        complete(model, k=5),
    ]
    model.calibration = None
    for found in several:
        ids = [(p.head_id, p.relation_id, p.tail_id) for p in found]
        scores = triple_scores(model, *np.array(ids).T)
        for one, score in zip(found, scores):
            r = one.relation_id
            logit = calibration.slope[r] * score + calibration.intercept[r]
            assert one.calibrated == pytest.approx(float(logit.sigmoid()), abs=1e-5)
        assert "calibrated" in str(found).splitlines()[0]
        row = next(csv.DictReader(io.StringIO(found.to_csv())))
        assert float(row["calibrated"]) == found[0].calibrated
        assert json.loads(json.dumps(found.to_json()))[0]["calibrated"]
    plain = predict_tails(model, "Ada Crowgarth", "likes", k=5)
    assert "calibrated" not in str(plain)
    assert plain[0].calibrated is None


def test_update_keeps_it(model, calibration):
    model.calibration = calibration
    updated = model.update([("Nils Novel", "born_in", "Quarstead")])
    model.calibration = None
    assert updated.calibration is calibration


def test_picture(model, splits, calibration):
    model.calibration = calibration
    found = reliability_of(model, splits["test"], [splits["val"]])
    model.calibration = None
    figure = plot_reliability({"a $b": found, "c": found})
    bars = figure.axes[0].patches
    assert [bar.get_height() for bar in bars] == found.accuracy[
        found.count > 0
    ].tolist()
    assert f"{found.error:.3f}" in figure.axes[0].get_title(loc="left")
    with pytest.raises(DataError, match="nothing to draw"):
        plot_reliability({})


def test_commands(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    words = (
        "--hidden-channels",
        8,
        "--num-negatives",
        "all",
        "--lr",
        0.02,
        "--epochs",
        1,
    )
    assert run("kblrn", "train", "Families", *words, "--out", folder).code == 0
    done = run(
        "python", "viz/reliability.py", "--run", folder, "--out", tmp_path / "a.png"
    )
    assert (done.code, "kblrn calibrate" in done.err) == (2, True)
    weights = load_model(folder).state_dict()
    with monkeypatch.context() as patched:  # "kblrn calibrate RUN | head -0"
        patched.setattr(
            cli_calibrate, "print", Mock(side_effect=KeyError), raising=False
        )
        with pytest.raises(KeyError):
            run("kblrn", "calibrate", folder)
    assert KBLRN.load(folder / "model.pt").calibration is not None
    done = run("kblrn", "calibrate", folder, "--bins")
    assert done.code == 0, done.err
    assert "expected calibration error" in done.out
    error = float(done.out.split("test ")[1].split()[1])
    model = load_model(folder)
    again = model.state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in weights)
    found = reliability_of(
        model, load_dataset("Families")["test"], [load_dataset("Families")["val"]]
    )
    assert error == pytest.approx(found.error, abs=1e-4)
    assert len(model.known) == 1
    assert (
        "calibrated"
        in run("kblrn", "predict", folder, "Ada Crowgarth", "likes", "?").out
    )
    assert (
        run(
            "python", "viz/reliability.py", "--run", folder, "--out", tmp_path / "a.png"
        ).code
        == 0
    )
    assert run("kblrn", "report", folder, "--examples", 0).code == 0
    assert 'id="calibration"' in (folder / "report.html").read_text(encoding="utf-8")
    for words in (["--ratio", "0"], ["--negatives", "x"]):
        assert run("kblrn", "calibrate", folder, *words).code == 2
    assert Run(folder).model_path.exists()


@pytest.mark.parametrize("split", ["val", "test"])
def test_a_split_without_triples(tmp_path, split):
    """Who has no test triples still has probabilities, and those of validation."""
    pairs = [(f"a{i}", f"b{i}") for i in range(30)]
    rows = [(a, "r", b) for a, b in pairs] + [(b, "inverse", a) for a, b in pairs]
    for name, some in (("asked", rows[:9]), ("train", rows[9:])):
        (tmp_path / f"{name}.tsv").write_text("\n".join(map("\t".join, some)))
    option = {"val": "--test", "test": "--valid"}[split]
    folders = tmp_path / "kb", tmp_path / "run"
    files = tmp_path / "train.tsv", option, tmp_path / "asked.tsv"
    done = run("kblrn", "import", "--no-header", "--train", *files, "--out", folders[0])
    assert done.code == 0, done.err
    few = ("--experts", "e", "--epochs", "1")
    done = run("kblrn", "train", folders[0], *few, "--out", folders[1])
    assert done.code == 0, done.err
    done = run("kblrn", "calibrate", folders[1])
    if split == "val":
        assert (done.code, "the val split has no triples" in done.err) == (2, True)
    else:
        assert (done.code, done.err) == (0, done.err)
        begins = [line.split()[0] for line in done.out.splitlines()[1:]]
        assert begins == ["split", "val", "saved"]
