"""Nothing that takes seconds to import is imported before it is needed."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from dataclasses import fields

import pytest

import kblrn_pyg
from kblrn_pyg.cli.main import COMMANDS
from kblrn_pyg.datasets import DATASETS
from kblrn_pyg.datasets.names import COUNTS
from kblrn_pyg.nn import INSTANCES, SCORERS
from kblrn_pyg.nn.build import LETTERS
from kblrn_pyg.nn.settings import EXPERT_LETTERS, SCORER_NAMES, are_letters
from kblrn_pyg.rules import (
    ConstantSettings,
    MineSettings,
    mine_constants,
    mine_rules,
)
from kblrn_pyg.settings import default_of

HEAVY = ("torch", "torch_geometric", "numba", "numpy", "matplotlib", "networkx")

# Runs commands and prints for each of them its exit code and what is heavy.
CHILD = """
import contextlib, io, json, sys
from kblrn_pyg.cli.main import main
heavy, commands = json.loads(sys.argv[1])
found = []
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            code = main(command)
        except SystemExit as stop:
            code = stop.code
    found.append([code, [name for name in heavy if name in sys.modules]])
print(json.dumps(found))
"""


def child(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def assert_light(commands, code):
    found = child(CHILD, json.dumps([HEAVY, commands]))
    assert found == [[code, []]] * len(commands), list(zip(commands, found))


def test_help_and_lists():
    helps = [[*words, "--help"] for words in ([], *([name] for name in COMMANDS))]
    assert_light([*helps, ["data"]], 0)


def test_mistakes(tmp_path):
    wrong = [[name, "--no-such-option"] for name in COMMANDS]
    for words in (
        "train Families --experts x",
        "train Families --experts ll",
        "train Families --scorer distmult,magic",
        "train Families --dropout 2",
        "train Families --epochs -1",
        "train Families --threads 0",
        "train Families --recipe nonsense",
        "train Families --budget soon",
        "train Families --budget 1h --recipe paper",
        "train Families --all-facts",
        "train Families --min-head-coverage 2",
        f"train Families --out {tmp_path} --resume",
        "train Nobody",
        "tune Families --trials 0",
        "tune Nobody",
        "data Nobody",
        "mine Nobody",
        "mine Families --max-hops 3",
        "mine Families --out rules.xyz",
        "demo --epochs -1",
        "predict run a r b",
        "predict run a r ? --k 0",
        "complete run --k 0",
        "explain run a r b --max-middles -1",
        "report run --examples -1",
        "import --train a --out b",
        "predict no-such-run a r ?",
        f"complete {tmp_path}",
        f"explain {tmp_path} a r b",
        "evaluate no-such-run",
        "report no-such-run",
        "serve no-such-run",
        "serve run --port -1",
    ):
        wrong.append(words.split())
    assert_light(wrong, 2)


def test_a_model_needs_no_pictures():
    code = """
import json, sys
import torch_geometric
before = set(sys.modules)
import kblrn_pyg.predict, kblrn_pyg.runs
from kblrn_pyg.rules import find_rules
from kblrn_pyg.training import fit
new = {name.split(".")[0] for name in set(sys.modules) - before}
print(json.dumps(sorted(new & {"matplotlib", "networkx", "pandas", "tensorboard"})))
"""
    assert child(code) == []


# --- packages that import lazily --------------------------------------------------


def packages():
    found = [kblrn_pyg]
    for module in pkgutil.walk_packages(kblrn_pyg.__path__, "kblrn_pyg."):
        if module.ispkg:
            found.append(importlib.import_module(module.name))
    return [package for package in found if hasattr(package, "__all__")]


@pytest.mark.parametrize("package", packages(), ids=lambda one: one.__name__)
def test_names_of_a_package(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(package.__all__) <= set(dir(package))
    assert len(set(package.__all__)) == len(package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = package.nonsense


def lazy_packages():
    return [package for package in packages() if "__getattr__" in vars(package)]


@pytest.mark.parametrize("package", lazy_packages(), ids=lambda one: one.__name__)
def test_no_module_takes_the_place_of_a_name(package):
    modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
    assert modules.isdisjoint(package.__all__)


def test_the_usual_packages_are_lazy():
    names = {package.__name__ for package in lazy_packages()}
    light = ("data", "datasets", "nn", "recipes", "rules", "training")
    assert names == {"kblrn_pyg", *(f"kblrn_pyg.{name}" for name in light)}


# --- what is declared apart from what it describes --------------------------------


def test_data_sets():
    assert {name: dataset.counts for name, dataset in DATASETS.items()} == COUNTS
    assert list(DATASETS) == list(COUNTS)


def test_scorers_and_letters():
    assert tuple(SCORERS) == SCORER_NAMES
    assert "".join(LETTERS.values()) == EXPERT_LETTERS
    assert all(map(are_letters, (*INSTANCES, "nlr", "")))
    assert not any(map(are_letters, ("x", "ll", "l,r", "L")))


def test_settings_of_mining():
    for settings, mine in (
        (MineSettings, mine_rules),
        (ConstantSettings, mine_constants),
    ):
        parameters = inspect.signature(mine).parameters
        for field in fields(settings):
            assert parameters[field.name].default == default_of(field), field.name
