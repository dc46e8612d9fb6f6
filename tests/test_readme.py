"""What the README and the pages of ``docs/`` show can be run, and prints that."""

import io
import math
import re
import runpy
import shlex
import subprocess
import warnings
from contextlib import redirect_stdout

import pytest
from scripts import REPOSITORY, run

from kblrn_pyg.datasets import DATASETS

README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").glob("*.md"))]
NUMBER = re.compile(r"[+−-]?\d[\d,]*(\.\d+)?")
OTHER_DATASETS = set(DATASETS) - {"Families"}


def on(pages):
    """Runs a test once for each page."""
    names = [str(page.relative_to(REPOSITORY)) for page in pages]
    return pytest.mark.parametrize("page", pages, ids=names)


def blocks(page):
    """Returns the blocks of a page, each with what it says is printed."""
    text = page.read_text(encoding="utf-8")
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    after = [*found[1:], ("end", "")]
    return [
        (language, content, shown if kind == "" else None)
        for (language, content), (kind, shown) in zip(found, after)
    ]


def code(page):
    return [
        (content, shown)
        for language, content, shown in blocks(page)
        if language == "python"
    ]


def commands(page):
    """Returns the commands of a page, those of a block together."""
    return [
        (
            [shlex.split(line, comments=True) for line in content.splitlines()],
            shown,
        )
        for language, content, shown in blocks(page)
        if language == "shell"
    ]


def check_printed(printed, shown):
    """Compares word by word; learned numbers may differ a little.

    A line of three dots stands for any number of lines.
    """
    begin, dots, end = shown.partition("...\n")
    found = printed.split()
    if dots:
        begin_size, end_size = len(begin.split()), len(end.split())
        found = found[:begin_size] + found[len(found) - end_size :]
    wanted = [*begin.split(), *end.split()]
    assert len(found) == len(wanted), printed
    for one, other in zip(found, wanted):
        assert NUMBER.sub("#", one) == NUMBER.sub("#", other), printed
        for a, b in zip(NUMBER.finditer(one), NUMBER.finditer(other)):
            x, y = (float(m[0].replace(",", "").replace("−", "-")) for m in (a, b))
            assert math.isclose(x, y, rel_tol=0.05, abs_tol=0.002), printed


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Has the files that the reader is supposed to have."""
    tutorial = runpy.run_path(str(REPOSITORY / "examples" / "tutorial.py"))
    tutorial["write_example"](tmp_path)
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run():
    assert len(PAGES) >= 9
    assert sum(len(code(page)) for page in PAGES) >= 15
    assert sum(len(commands(page)) for page in PAGES) >= 15


def test_first_commands():
    first, _ = commands(README)[0]
    assert first[:2] == [["make", "demo"], ["make", "test"]]


def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 200


@on(PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if not target.startswith("https://"):
            assert (page.parent / target).exists(), target


@on([page for page in PAGES if code(page)])
def test_python_from_top_to_bottom(page, workplace):
    names = {"__name__": "page"}
    for content, shown in code(page):
        out = io.StringIO()
        with redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            exec(compile(content, page.name, "exec"), names)
        if shown is not None:
            check_printed(out.getvalue(), shown)


@on(PAGES)
def test_commands_have_these_options(page):
    for lines, _ in commands(page):
        for command, name, *words in lines:
            options = {word for word in words if word.startswith("--")}
            if options and command in ("kblrn", "python"):
                known = set(re.findall(r"--[\w-]+", run(command, name, "--help").out))
                assert options <= known, f"{command} {name}"


@pytest.mark.slow
@on([page for page in PAGES if commands(page)])
def test_shell_from_top_to_bottom(page, workplace):
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    for lines, shown in commands(page):
        printed = ""
        for words in lines:
            if words[0] == "make":
                target = rf"^{re.escape(words[1])}:"
                assert re.search(target, makefile, re.MULTILINE), words
            elif words[0] == "cp":
                subprocess.run(words, check=True)
            elif not takes_long(words):
                assert words[0] in ("kblrn", "python"), f"how is this run? {words}"
                done = run(*words)
                assert done.code == 0, f"{shlex.join(words)}: {done.err}"
                printed += done.out
        if shown is not None:
            check_printed(printed, shown)


def takes_long(words):
    """Tells benchmarks, what needs other data than the embedded ones, and what
    runs until it is interrupted."""
    is_benchmark = words[1].startswith("benchmarks/") and "Families" not in words
    is_server = words[:2] == ["kblrn", "serve"]
    return is_benchmark or is_server or not OTHER_DATASETS.isdisjoint(words)


def test_what_is_shown_is_compared():
    check_printed("MRR 0.4281, a\nb c\nd 2", "MRR 0.428, a\n...\nd 2\n")
    for shown in ("MRR 0.5, a b c d 2", "MRR 0.428, x b c d 2", "MRR 0.428, a b c d"):
        with pytest.raises(AssertionError):
            check_printed("MRR 0.4281, a\nb c\nd 2", shown)
    assert takes_long(["kblrn", "train", "WN18", "--rules", "provided"])
    assert not takes_long(["kblrn", "train", "Families"])
