"""The wheel works in an environment of its own, outside of the clone.

The environment has the wheel only; dependencies are those of the environment of the
tests, as installing torch once more would take minutes. That none is missing from the
declared ones is tested in test_dependencies.py.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from scripts import REPOSITORY

import kblrn_pyg

pytestmark = pytest.mark.wheel


def sources(tmp_path):
    """Copies what a wheel is made of, so that nothing is built in the clone."""
    copy = tmp_path / "sources"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPOSITORY / name, copy)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "kblrn_pyg", copy / "kblrn_pyg", ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    words = ["wheel", "--no-deps", "--wheel-dir", folder, sources(folder)]
    subprocess.run([sys.executable, "-m", "pip", "--quiet", *words], check=True)
    (found,) = folder.glob("*.whl")
    return found


class Environment:
    """A virtual environment, and a folder far from the clone to run commands in."""

    def __init__(self, folder, wheel):
        self.home = folder / "elsewhere"
        self.home.mkdir()
        venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        self.bin = venv / "bin"
        site = Path(self("python", "-c", "import site; print(*site.getsitepackages())"))
        # Files that end in .pth are not read there: an editable install of the
        # clone, which is one, is not seen.
        packages = sysconfig.get_paths()["purelib"]
        (site / "dependencies.pth").write_text(f"{packages}\n")
        self("python", "-m", "pip", "--quiet", "install", "--no-deps", wheel)

    def __call__(self, command, *words):
        variables = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        done = subprocess.run(
            [self.bin / command, *words],
            cwd=self.home,
            env=variables | {"MPLBACKEND": "agg"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command} {words}: {done.stderr}"
        return done.stdout.strip()


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    return Environment(tmp_path_factory.mktemp("environment"), wheel)


def test_what_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    package = REPOSITORY / "kblrn_pyg"
    needed = {
        str(path.relative_to(REPOSITORY))
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert needed <= names
    foreign = [name for name in names - needed if ".dist-info/" not in name]
    assert not foreign


def test_the_package_is_that_of_the_wheel(environment):
    place = environment("python", "-c", "import kblrn_pyg; print(kblrn_pyg.__file__)")
    assert Path(place).is_relative_to(environment.bin.parent)
    assert environment("kblrn", "--version") == f"kblrn {kblrn_pyg.__version__}"


def test_commands_work_outside_of_the_clone(environment):
    people = [f"person {i}" for i in range(60)]
    facts = [f"{people[i]},parent of,{people[i + 20]}\n" for i in range(40)]
    facts += [f"{people[i]},grandparent of,{people[i + 40]}\n" for i in range(20)]
    numbers = [f"{name},{1900 + 30 * (i // 20)}\n" for i, name in enumerate(people)]
    (environment.home / "facts.csv").write_text("".join(facts))
    (environment.home / "numbers.csv").write_text("entity,born\n" + "".join(numbers))
    assert "2,232" in environment("kblrn", "data", "Families")
    words = "import --train facts.csv --numerical numbers.csv --holdout 0.05 --out kb"
    assert "saved kb" in environment("kblrn", *words.split())
    words = "train kb --experts ln --epochs 1 --hidden-channels 4 --out run"
    assert "MRR" in environment("kblrn", *words.split())
    triple = ("person 0", "parent of")
    assert "rank" in environment("kblrn", "predict", "run", *triple, "?")
    assert "born" in environment("kblrn", "explain", "run", *triple, "person 20")
    environment("kblrn", "report", "run")
    assert (environment.home / "run" / "report.html").stat().st_size > 10_000


def test_pictures_outside_of_the_clone(environment):
    words = "-m kblrn_pyg.viz.rbf_hist --relation spouse --out hist.png"
    assert environment("python", *words.split()) == "saved hist.png"
    assert (environment.home / "hist.png").stat().st_size > 10_000
