import os
import subprocess
import sys

import pytest
from scripts import run

from kblrn_pyg.cli.main import COMMANDS, main
from kblrn_pyg.datasets import DATASETS, Families
from kblrn_pyg.rules import RuleSet, read_rules

RELATIONS_OF_FAMILIES = [relation for _, relation, _ in Families()[0].edge_types]


@pytest.fixture
def files(tmp_path):
    texts = {
        "train.csv": "head,relation,tail\n"
        + "".join(f"p{i},parent_of,p{i + 1}\n" for i in range(8)),
        "valid.csv": "p0,parent_of,p2\n",
        "test.csv": "p1,parent_of,p3\n",
        "numbers.csv": "".join(f"p{i},born,{1900 + 30 * i}\n" for i in range(9)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def import_arguments(files, **changes):
    options = {
        "train": files / "train.csv",
        "valid": files / "valid.csv",
        "test": files / "test.csv",
        "numerical": files / "numbers.csv",
        "out": files / "mine",
        **changes,
    }
    words = [(f"--{key}", str(value)) for key, value in options.items() if value]
    return ["import", *(word for pair in words for word in pair)]


@pytest.mark.parametrize("given", [None, "ACTIVE"])
def test_threads_that_wait_sleep(monkeypatch, given):
    """Unless the environment says otherwise, and before torch is imported."""
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    code = (
        "import os, sys; from kblrn_pyg.cli import main; assert 'torch' not in "
        "sys.modules; main.main(['data']); print(os.environ['OMP_WAIT_POLICY'])"
    )
    environment = os.environ | ({"OMP_WAIT_POLICY": given} if given else {})
    words = [sys.executable, "-c", code]
    out = subprocess.check_output(words, text=True, env=environment)
    assert out.split()[-1] == (given or "PASSIVE")


def test_list(capsys):
    assert main(["data"]) == 0
    out = capsys.readouterr().out
    for name in DATASETS:
        assert name in out


def test_describe_the_embedded_data_set(capsys):
    assert main(["data", "families"]) == 0
    out = capsys.readouterr().out
    assert "relations with numerical features" in out
    assert "birth_year" in out


def test_import_then_describe(files, capsys):
    assert main(import_arguments(files)) == 0
    assert "see: kblrn data" in capsys.readouterr().out
    assert main(["data", str(files / "mine")]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "parent_of" in line)
    assert row.split() == ["parent_of", "born", "8", "-30", "0.7746"]


def test_import_with_holdout(files, capsys):
    (files / "all.tsv").write_text(
        "".join(f"a{i % 5}\tr\tb{i % 7}\n" for i in range(35))
    )
    arguments = import_arguments(
        files,
        train=files / "all.tsv",
        valid=None,
        test=None,
        numerical=None,
        holdout=0.1,
    )
    assert main(arguments) == 0
    assert "27      4     4" in capsys.readouterr().out


@pytest.mark.parametrize(("missing", "is_offered"), [("valid test", 1), ("test", 0)])
def test_import_offers_a_holdout_that_it_takes(files, capsys, missing, is_offered):
    assert main(import_arguments(files, **dict.fromkeys(missing.split()))) == 0
    out = capsys.readouterr().out
    assert "no test triples: nothing tells how good" in out
    assert ("--holdout 0.05 would take" in out) == is_offered


def test_the_module_of_the_command_is_the_command():
    for module in ("kblrn_pyg.cli", "kblrn_pyg.cli.main"):
        words = [sys.executable, "-m", module, "--version"]
        assert subprocess.check_output(words, text=True).startswith("kblrn "), module


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"valid": "nowhere.csv"}, "nowhere.csv: no such file"),
        ({"holdout": "0.1"}, "'holdout' must not be given beside"),
        (
            {"numerical": "train.csv"},
            "train.csv:2: the value 'p1' is not a finite number",
        ),
        ({"out": "families"}, "--out families is the name of the data set Families"),
        (
            {"valid": None, "test": None, "holdout": "0.1", "seed": "-1"},
            "'seed' must not be negative (got -1)",
        ),
    ],
)
def test_import_mistakes(files, capsys, monkeypatch, changes, message):
    monkeypatch.chdir(files)
    assert main(import_arguments(files, **changes)) == 2
    error = capsys.readouterr().err.strip()
    assert message in error.splitlines()[-1]
    assert not (files / "mine").exists()


def test_only_the_first_process_prints(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for rank, is_first in (("0", True), ("1", False)):
        monkeypatch.setenv("RANK", rank)
        for words, code in ((["data"], 0), (["mine", "--help"], 0), (["mine"], 2)):
            done = run("kblrn", *words)
            assert done.code == code
            assert bool(done.out + done.err) == is_first


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["data", "a", "b"], ["import", "--train", "x"]]
)
def test_wrong_words(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(
    "arguments", [["--help"], ["data", "--help"], ["import", "--help"]]
)
def test_help(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 0
    assert "usage: kblrn" in capsys.readouterr().out


@pytest.mark.parametrize("ending", ["tsv", "txt", "kale", "pt"])
def test_mine(tmp_path, ending):
    out = tmp_path / f"rules.{ending}"
    words = ["--relation", "spouse", "--top", "3", "--out", out]
    done = run("kblrn", "mine", "Families", *words)
    assert done.code == 0, done.err
    assert "parent_of(h, x) ∧ parent_of(t, x)" in done.out
    assert len(done.out.strip().splitlines()) == 9
    if ending == "pt":
        rules = RuleSet.load(out)
    else:
        rules, _ = read_rules(out, RELATIONS_OF_FAMILIES)
    assert len(rules) == 161


def test_mine_rules_about_numbers(tmp_path):
    words = ["--constants", "--bins", "4", "--out", tmp_path / "rules.pt"]
    words += ["--relation", "located_in", "--min-support", "15", "--top", "999"]
    done = run("kblrn", "mine", "Families", *words)
    assert done.code == 0, done.err
    assert "numbers" in done.out.splitlines()[0]
    assert " ≤ latitude(x) < " in done.out
    rules = RuleSet.load(tmp_path / "rules.pt").constants
    assert rules.speaks_of_numbers


def test_mine_with_the_preset_of_the_paper():
    done = run("kblrn", "mine", "Families", "--preset", "paper", "--top", 1)
    assert done.code == 0
    assert done.out.splitlines()[1].split() == ["84", "5", "79", "0", "11"]


def test_options_beat_the_preset(tmp_path):
    out = tmp_path / "rules.pt"
    words = ["--min-head-coverage", "0.02", "--out", out]
    least = []
    for preset in ([], ["--preset", "paper"]):
        assert run("kblrn", "mine", "Families", *preset, *words).code == 0
        rules = RuleSet.load(out)
        assert rules.head_coverage.min() >= 0.02
        least.append(rules.pca_confidence.min())
    assert least[0] < 0.1 <= least[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Families", "--relation", "nothing"], "unknown relation 'nothing'"),
        (["Families", "--out", "rules.xyz"], "has no known ending"),
        (["Families", "--bins", "4"], "--bins has no effect without --constants"),
        (["Families", "--constants", "--bins", "3"], "'bins' must be one of 0, 2, 4"),
        (
            ["Families", "--constants", "--bins", "2", "--out", "rules.tsv"],
            "save them as .pt",
        ),
        (["Nobody"], "unknown data set"),
        (
            ["Families", "--min-confidence", "nan"],
            "'min_confidence' must be a finite number (got nan)",
        ),
    ],
)
def test_mine_mistakes(words, message):
    done = run("kblrn", "mine", *words)
    assert done.code == 2
    assert message in done.err.splitlines()[-1]


def test_demo():
    done = run("kblrn", "demo", "--epochs", "1")
    assert done.code == 0, done.err
    models = [line.split()[0] for line in done.out.splitlines()[-5:]]
    assert models == ["KBl", "KBlr", "KBln", "KBlrn", "KBrneo"]


def test_no_traceback_from_a_real_process():
    done = subprocess.run(
        [sys.executable, "-m", "kblrn_pyg.cli", "data", "nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("kblrn data: unknown data set 'nonsense'")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_histograms(tmp_path, ending):
    out = tmp_path / f"figure.{ending}"
    relations = ["--relation", "spouse", "--relation", "parent_of"]
    done = run("python", "viz/rbf_hist.py", *relations, "--out", out)
    assert done.code == 0, done.err
    assert out.stat().st_size > 5000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--relation", "nothing", "--out", "a.png"], "unknown relation 'nothing'"),
        (["--relation", "lives_in", "--out", "a.png"], "these have: "),
        (["--relation", "spouse", "--out", "a.xyz"], "has an unknown ending"),
        (["--relation", "spouse"], "there is no screen"),
    ],
)
def test_histogram_mistakes(words, message):
    done = run("python", "viz/rbf_hist.py", *words)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("words", [[], *([command] for command in COMMANDS)], ids=str)
def test_wrong_arguments_get_one_line(words):
    done = run("kblrn", *words, "--nonsense")
    assert done.code == 2
    assert len(done.err.splitlines()) == 1
    assert "--help" in done.err
