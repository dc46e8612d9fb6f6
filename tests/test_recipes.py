"""Recipes: what they say, what is chosen, and that they train what they say."""

import json
import random
import re
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, flat_triples, read_kb, with_all_facts
from kblrn_pyg.recipes import (
    PAPER,
    Recipe,
    Stage,
    choose,
    find_device,
    named,
    parse_budget,
    read_recipe,
    recipe_text,
    train_by_recipe,
    write_recipe,
)
from kblrn_pyg.recipes.apply import together
from kblrn_pyg.recipes.choose import choose_recipe
from kblrn_pyg.recipes.factors import as_plain, as_tensors
from kblrn_pyg.recipes.material import Material
from kblrn_pyg.recipes.timing import StageTime
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import Run, balance, fit, load_checkpoint, seed_all
from kblrn_pyg.training.balancing import scale_experts
from kblrn_pyg.training.history import read_histories

LATENT = Stage(
    "l",
    {"hidden_channels": 4, "num_negatives": None, "dropout": 0.2},
    {"epochs": 4, "batch_size": 32, "lr": 0.02, "validate_every": 2},
)
FEATURES = Stage(
    "re",
    {"num_negatives": None},
    {"epochs": 2, "batch_size": 32, "lr": 0.02, "validate_every": 1},
)
APART = Recipe("apart", (LATENT, FEATURES))


def facts(seed=0):
    """Families of four, of which each lives in one place."""
    rng, found = random.Random(seed), []
    for i in range(24):
        place = f"place{rng.randrange(4)}"
        people = [f"person{4 * i + j}" for j in range(4)]
        found += [(one, "lives_in", place) for one in people]
        found += [(people[0], "married_to", people[1])]
        found += [(people[1], "married_to", people[0])]
        found += [
            (one, "parent_of", child) for one in people[:2] for child in people[2:]
        ]
    return found


def ages():
    rng = random.Random(1)
    return [
        (f"person{i}", "age", rng.gauss(60 if i % 4 < 2 else 30, 5)) for i in range(96)
    ]


@pytest.fixture(scope="module")
def splits():
    return read_kb(facts(), numerical=ages(), holdout=0.08)[0]


@pytest.fixture(scope="module")
def without_numbers():
    return read_kb(facts(), holdout=0.08)[0]


def same_weights(one, other):
    found, wanted = one.state_dict(), other.state_dict()
    assert found.keys() == wanted.keys()
    return all(torch.equal(found[name], wanted[name]) for name in wanted)


# --- the dataclass ----------------------------------------------------------------


def test_changes_of_all_stages():
    recipe = APART.changed(model={"hidden_channels": 9}, training={"seed": 3})
    assert [one.model.get("hidden_channels") for one in recipe.stages] == [9, None]
    assert [one.fit_settings.seed for one in recipe.stages] == [3, 3]
    assert recipe.changed(model={"experts": "le"}).groups == ["l", "e"]
    assert recipe.changed(rules={"preset": "paper"}).rule_settings.preset == "paper"
    with pytest.raises(ValueError, match=r"'experts' must be among 'lre'.*got 'n'"):
        APART.changed(model={"experts": "ln"})


def test_stages_that_become_the_same_are_one():
    recipe = Recipe("two", (LATENT, LATENT.changed({"dropout": 0.5}, {})))
    assert len(recipe.stages) == 2
    assert len(recipe.changed(model={"dropout": 0.1}).stages) == 1


def test_settings_of_one_scorer_leave_with_it():
    stage = Stage("l", {"scorer": ["complex"], "n3": 0.1, "hidden_channels": 5})
    assert stage.changed({"scorer": ["transe"]}, {}).model == {
        "scorer": ["transe"],
        "hidden_channels": 5,
    }
    assert stage.changed({"n3": 0.2}, {}).model["n3"] == 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Stage("x"), "'experts' must have letters of lrneo"),
        (lambda: Stage("l", {"depth": 3}), "unknown settings: depth"),
        (lambda: Stage("l", {"dropout": 2}), "'dropout' must be at least 0"),
        (lambda: Stage("l", {}, {"epochs": -1}), "'epochs' must not be negative"),
        (lambda: Stage("l", {"experts": "r"}), "'model' must not have 'experts'"),
        (lambda: Recipe("a", ()), "'stages' must have at least one"),
        (lambda: Recipe("a", (Stage("lr"), Stage("r"))), "'lr' and 'r'"),
        (lambda: Recipe("a", (Stage("r"),), {"rules": 3}), "'rules' must be"),
        (lambda: replace(APART, most_validated=0), "'most_validated' must be positive"),
    ],
)
def test_mistakes_in_recipes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_the_paper():
    stage = PAPER.stages[0]
    assert stage.experts == "lrn"
    assert PAPER.rule_settings.preset == "paper"
    assert stage.model_settings.num_negatives == 500
    settings = stage.fit_settings
    assert (settings.epochs, settings.validate_every, settings.patience) == (100, 5, 0)
    assert (settings.optimizer, settings.lr, settings.batch_size) == (
        "adam",
        0.001,
        512,
    )


# --- files ------------------------------------------------------------------------


def test_files_keep_everything(tmp_path):
    recipe = replace(
        APART, rules={"preset": "paper"}, factors={"evidence": 0.5}, why="because"
    )
    write_recipe(recipe, tmp_path / "one.json")
    assert read_recipe(tmp_path / "one.json") == recipe
    assert '"num_negatives": "all"' in recipe_text(recipe)


def test_reasons_of_another_run_are_not_repeated(tmp_path, splits):
    write_recipe(replace(APART, why="about 7m"), tmp_path / "recipe.json")
    material = Material(splits["train"], splits["val"])
    why = choose_recipe(str(tmp_path), material).why
    assert "about 7m" not in why
    assert "distmult of size" in why
    assert choose_recipe(str(tmp_path / "recipe.json"), material).why == "about 7m"


def test_toml(tmp_path):
    (tmp_path / "mine.toml").write_text(
        """
        [[stages]]
        experts = "l"
        model = { hidden_channels = 4, num_negatives = "all", dropout = 0.2 }
        [stages.training]
        epochs = 4
        batch_size = 32
        lr = 0.02
        validate_every = 2

        [factors]
        latent = 1
        """
    )
    recipe = read_recipe(tmp_path / "mine.toml")
    assert recipe == Recipe("mine", (LATENT,), factors={"latent": 1})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a recipe"),
        ("[]", "a recipe must be values by name"),
        ("{}", "'stages' must be a list"),
        ('{"stages": [3]}', "a stage must be values by name"),
        ('{"stages": [{"model": {}}]}', "must have 'experts'"),
        ('{"stages": [{"experts": "l", "lr": 1}]}', "got 'lr'"),
        ('{"stages": [{"experts": "l", "model": 3}]}', "must be values by name"),
        ('{"stages": [{"experts": "l", "training": {"lr": "x"}}]}', "'lr' must be"),
        ('{"stages": [{"experts": "l"}], "factors": {"latent": "x"}}', "be numbers"),
        ('{"stages": [{"experts": "l"}], "factors": {"latent": -1}}', "be negative"),
        ('{"stages": [{"experts": "l"}], "factors": {"e": {"r": "x"}}}', "be numbers"),
        ('{"stages": [{"experts": "l"}], "name": 3}', "'name' must be a str"),
        ('{"stages": [{"experts": "l"}], "most_validated": 1.5}', "'most_validated'"),
        ('{"stages": [{"experts": "l"}], "colour": 1}', "got 'colour'"),
    ],
)
def test_mistakes_in_files(tmp_path, text, message):
    path = tmp_path / "recipe.json"
    path.write_text(text)
    with pytest.raises(DataError, match=message) as error:
        read_recipe(path)
    assert str(error.value).startswith(f"{path}:")


def test_no_such_file(tmp_path):
    with pytest.raises(DataError, match="no such file, expected a recipe"):
        read_recipe(tmp_path)


# --- time and device --------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "soon", "10", "m", "1h!", "-1h", "0m", "1h 5m"])
def test_not_a_budget(text):
    with pytest.raises(ValueError, match="'budget' must be a time such as"):
        parse_budget(text)


def test_devices(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert find_device("auto") == find_device("cpu") == "cpu"
    with pytest.raises(ValueError, match="'device' must be cpu on this machine"):
        find_device("cuda")
    with pytest.raises(ValueError, match="'device' must be one of auto, cpu, cuda"):
        find_device("tpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device("auto") == find_device("cuda") == "cuda"


# --- the choice -------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A machine of which a batch of embeddings takes a second for each 100 sizes."""
    measured = []

    def time_of(self, stage, rules):
        measured.append(stage)
        size = stage.model_settings.hidden_channels if "l" in stage.experts else 100
        return StageTime(size / 100, 10, 0.1)

    monkeypatch.setattr(Material, "time_of", time_of)
    return measured


def chosen(splits, budget=None, recipe="auto", **changes):
    material = Material(splits["train"], splits["val"], [splits["test"]])
    return choose.choose_recipe(recipe, material, budget, changes)


def test_more_time_is_used(splits, clock):
    slow, fast = chosen(splits, "10h"), chosen(splits, "500s")
    assert set(slow.experts) == set(fast.experts) == set("lrneo")
    assert slow.name == "auto"
    assert "within 10h" in slow.why
    epochs = [one.stages[0].fit_settings.epochs for one in (slow, fast)]
    assert epochs[0] > epochs[1]
    assert chosen(splits, "30s").experts == "rneo"
    assert "more than 1s" in chosen(splits, 1.0).why
    # What differs by epochs only is measured once for a choice.
    clock.clear()
    chosen(splits, "1s")
    assert all(
        one.model not in [o.model for o in clock if o is not one] for one in clock
    )


def test_slow_measuring_leaves_time_for_training(splits, clock, monkeypatch):
    usual = chosen(splits, "500s")
    seconds = count(0, 1000)  # whatever is measured takes longer than the budget
    slow = SimpleNamespace(perf_counter=lambda: next(seconds))
    monkeypatch.setattr(choose, "time", slow)
    recipe = chosen(splits, "500s")
    assert len(recipe.experts) > 1
    assert re.search("more than 8m, .* of which were measuring", recipe.why)
    assert "measuring" not in usual.why
    epochs = [one.stages[0].fit_settings.epochs for one in (usual, recipe)]
    assert epochs[0] >= epochs[1]


def test_experts_without_features_are_left_out(without_numbers, clock):
    assert chosen(without_numbers).experts == "lreo"
    assert chosen(without_numbers, recipe="paper").experts == "lr"
    assert chosen(without_numbers, recipe="best").experts == "lreo"


def test_many_entities(splits, clock, monkeypatch):
    monkeypatch.setattr(choose, "LARGE", 50)
    recipe = chosen(splits, "10h")
    assert recipe.groups == ["l", "rneo"]
    assert all(one.model["num_negatives"] == 1024 for one in recipe.stages)
    assert recipe.stages[0].model["sparse"]
    short = {"num_negatives": 20, "epochs": 1, "hidden_channels": 4}
    result = train_by_recipe(splits["train"], splits["val"], recipe=recipe, **short)
    assert set(result.model.instance) == set("lrneo")
    monkeypatch.setattr(choose, "VERY_MANY_TRIPLES", 100)
    assert chosen(splits, "10h").groups == ["lrno"]


def test_options_override_what_is_chosen(splits, clock):
    changes = {"model": {"experts": "le", "hidden_channels": 7}}
    recipe = chosen(splits, "10h", **changes, training={"epochs": 3})
    assert recipe.groups == ["l", "e"]
    assert all(one.fit_settings.epochs == 3 for one in recipe.stages)
    assert {one.model_settings.hidden_channels for one in recipe.stages[:1]} == {7}
    assert "size 7" in recipe.why
    recipe = chosen(splits, "1s", model={"experts": "l"})
    assert recipe.experts == "l"  # however little time there is


def test_nothing_to_choose_by(splits, clock):
    material = Material(splits["train"], None)
    for name in ("auto", "best"):
        recipe = choose.choose_recipe(name, material)
        assert len(recipe.stages) == len(recipe.groups)


def test_wrong_names_and_budgets(splits, clock, tmp_path):
    with pytest.raises(ValueError, match="'recipe' must be one of auto, best, paper"):
        chosen(splits, recipe="nonsense")
    with pytest.raises(ValueError, match="'budget' must not be given unless"):
        chosen(splits, "1h", recipe="paper")
    with pytest.raises(ValueError, match="'budget' must be positive"):
        chosen(splits, -1.0)
    write_recipe(APART, tmp_path / "a.json")
    assert chosen(splits, recipe=str(tmp_path / "a.json")) == APART


def test_measured_times(splits):
    material = Material(splits["train"], splits["val"])
    before = torch.get_rng_state()
    found = material.time_of(LATENT, None)
    assert torch.equal(torch.get_rng_state(), before)
    assert found.batch > 0
    assert found.validation > 0
    assert found.num_batches > 3
    once = found.num_batches * found.batch
    assert found.of(LATENT) == pytest.approx(4 * once + 2 * found.validation)


def test_few_batches_are_measured_again(splits, monkeypatch):
    """The first ones compile: they say nothing about the others."""
    asked_for = []
    loss = KBLRN.loss
    monkeypatch.setattr(KBLRN, "loss", lambda *a: asked_for.append(a) or loss(*a))
    whole = replace(LATENT, training=LATENT.training | {"batch_size": 100_000})
    found = Material(splits["train"], splits["val"]).time_of(whole, None)
    assert found.num_batches == 2  # tails and heads
    assert len(asked_for) > 3


@pytest.mark.parametrize("has_instructions", [True, False])
def test_precision_is_one_that_the_processor_has(monkeypatch, has_instructions):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: has_instructions, raising=False)
    wanted = "bfloat16" if has_instructions else "float32"
    assert named.multiplied(8, 1).model_settings.precision == wanted


def test_some_validation_triples(splits):
    material = Material(splits["train"], splits["val"], [splits["test"]])
    some = material.validated_with(3)
    triples = set(zip(*map(torch.Tensor.tolist, asked(some.val))))
    assert len(triples) == 3
    assert triples < set(zip(*map(torch.Tensor.tolist, asked(splits["val"]))))
    assert any(one is splits["val"] for one in some.known)
    assert material.validated_with(10_000) is material.validated_with(None) is material


def asked(data):
    return flat_triples(data, "edge_label_index")


# --- training ---------------------------------------------------------------------


def by_hand(splits):
    """What the recipe says, step by step."""
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    rules = mine_rules(train)
    learned = []
    for stage in APART.stages:
        seed_all(0)
        own = {"rules": rules} if "r" in stage.experts else {}
        model = KBLRN.from_data(train, stage.experts, **stage.model, **own)
        fit(model, train, val, known, **stage.training)
        learned.append(model)
    settings = LATENT.model | FEATURES.model
    model = KBLRN.from_data(train, "lre", rules=rules, **settings)
    for one in learned:
        model.take_experts(one)
    return model, balance(model, val, known)


def test_stages_learn_apart_and_are_balanced(splits):
    wanted, factors = by_hand(splits)
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    result = train_by_recipe(train, val, known, recipe=APART)
    assert same_weights(result.model, wanted)
    assert result.recipe.factors.keys() == factors.keys()
    assert not result.model.training
    for stage in result.recipe.stages:
        best = result.stages[stage.experts].best_epoch
        assert stage.fit_settings.epochs == best
    # What was chosen is a recipe, too, that gives the same without a choice.
    again = train_by_recipe(train, recipe=result.recipe)
    assert same_weights(again.model, wanted)


def test_the_better_stage_is_kept(splits):
    worse = LATENT.changed({}, {"lr": 1e-6})
    recipe = Recipe("two", (worse, LATENT, worse, FEATURES))
    train, val = splits["train"], splits["val"]
    result = train_by_recipe(train, val, recipe=recipe)
    assert [one.fit_settings.lr for one in result.recipe.stages] == [0.02, 0.02]
    alone = train_by_recipe(train, val, recipe=Recipe("one", (LATENT, FEATURES)))
    assert same_weights(result.model, alone.model)


def test_without_a_validation_set(splits, caplog):
    result = train_by_recipe(splits["train"], recipe=APART)
    assert "there is no validation set to balance experts on" in caplog.text
    assert result.recipe.factors == {"relational": 0.5, "evidence": 0.5}
    assert result.stages["l"].best_mrr is None


def test_factors_of_a_recipe(splits):
    train = splits["train"]
    plain = train_by_recipe(train, recipe=replace(APART, factors={}))
    scaled = train_by_recipe(train, recipe=replace(APART, factors={"evidence": 0.0}))
    triple = (torch.tensor([0]), torch.tensor([0]), torch.tensor([1]))
    scale_experts(plain.model, {"evidence": 0.0})
    assert torch.equal(plain.model(*triple), scaled.model(*triple))
    with pytest.raises(ValueError, match="'factors' must name experts"):
        scale_experts(plain.model, {"nobody": 1.0})


def test_factors_by_relation(splits):
    model = KBLRN.from_data(splits["train"], "n", num_negatives=None)
    values = torch.tensor([0.5, 2.0, 0.5])
    plain = as_plain(model, {"numerical": values})
    name = model.vocabulary.relations[1]
    assert plain == {"numerical": {"*": 0.5, name: 2.0}}
    assert torch.equal(as_tensors(model, plain)["numerical"], values)
    assert as_plain(model, {"numerical": torch.ones(3)}) == {"numerical": 1.0}
    assert as_tensors(model, {"numerical": 3})["numerical"].tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="must name relations"):
        as_tensors(model, {"numerical": {"nothing": 1.0}})


def test_changes_in_python(splits):
    train = splits["train"]
    result = train_by_recipe(train, recipe=APART, experts="l", epochs=1)
    assert result.model.instance == "l"
    assert result.stages["l"].epochs_done == 1
    with pytest.raises(TypeError, match="unknown settings: size"):
        train_by_recipe(train, recipe=APART, size=3)


def test_auto_trains(splits):
    result = train_by_recipe(
        splits["train"], splits["val"], recipe="auto", epochs=1, hidden_channels=4
    )
    assert set(result.model.instance) == set("lrneo")


class KilledError(Exception):
    pass


@pytest.fixture(scope="module")
def undisturbed(splits, tmp_path_factory):
    """A training that nobody killed, and its folder."""
    folder = tmp_path_factory.mktemp("undisturbed")
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    return train_by_recipe(train, val, known, recipe=APART, run=Run(folder)), folder


# The latent stage has 36 batches, the other one 18; none: after all of them.
@pytest.mark.parametrize("number", [1, 20, 45, None])
def test_killed_and_resumed(splits, undisturbed, tmp_path, number):
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    wanted, folder = undisturbed
    loss, calls = KBLRN.loss, []

    def dying(*batch):
        calls.append(number)
        if len(calls) == number:
            raise KilledError
        return loss(*batch)

    def dying_balance(*_):
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KBLRN, "loss", dying)
        if number is None:
            patch.setattr("kblrn_pyg.recipes.apply.balance_relations", dying_balance)
        with pytest.raises(KilledError):
            train_by_recipe(train, val, known, recipe=APART, run=Run(tmp_path / "b"))
    # The plan is that of the folder, whatever would be chosen now.
    found = train_by_recipe(train, val, known, recipe="auto", run=Run(tmp_path / "b"))
    assert found.recipe == wanted.recipe
    assert same_weights(found.model, wanted.model)
    folders = folder, tmp_path / "b"
    one, other = (load_checkpoint(one / "checkpoint.pt") for one in folders)
    assert all(torch.equal(one.model[name], other.model[name]) for name in one.model)
    assert len(calls) == (number or 54)


def test_the_folder_of_stages(splits, undisturbed):
    train, val, known = splits["train"], splits["val"], [splits["test"]]
    result, folder = undisturbed
    run = Run(folder)
    assert same_weights(KBLRN.load(run.model_path), result.model)
    assert read_recipe(run.path) == result.recipe
    settings = run.read_settings()
    assert settings["recipe"]["name"] == "apart"
    assert settings["model"]["experts"] == "lre"
    assert settings["stage 1, l"]["epochs"] == 4
    names = [one.name for one in read_histories([run.path])]
    assert names == ["1-l", "2-re"]
    with pytest.raises(ValueError, match="'recipe' must be that of the run, apart"):
        train_by_recipe(train, val, known, recipe=PAPER, run=Run(run.path))


def test_a_failed_start_leaves_nothing_behind(splits, tmp_path):
    wrong = Stage("l", {"scorer": ["conve"], "hidden_channels": 4})
    recipe = Recipe("wrong", (wrong, FEATURES))
    with pytest.raises(ValueError, match="reciprocal"):
        train_by_recipe(splits["train"], recipe=recipe, run=Run(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_together():
    stage = together(APART.stages)
    assert stage.experts == "lre"
    assert stage.model == LATENT.model | FEATURES.model
    assert stage.fit_settings.epochs == 0


def test_all_facts(splits):
    data = with_all_facts(splits)
    found = set(zip(*map(torch.Tensor.tolist, flat_triples(data))))
    wanted = set()
    for name, split in splits.items():
        key = "edge_index" if name == "train" else "edge_label_index"
        wanted |= set(zip(*map(torch.Tensor.tolist, flat_triples(split, key))))
    assert found == wanted
    assert len(flat_triples(data)[0]) == len(found) == 24 * 10
    assert json.dumps(data.attribute_names) == '["age"]'


def test_what_says_nothing_is_read_as_it_is_written(tmp_path):
    (tmp_path / "own.json").write_text(
        '{"name": "", "factors": {}, "stages": [{"experts": "l"}]}'
    )
    recipe = read_recipe(tmp_path / "own.json")
    assert (recipe.name, recipe.factors) == ("own", None)
    write_recipe(recipe, tmp_path / "again.json")
    assert read_recipe(tmp_path / "again.json") == recipe
