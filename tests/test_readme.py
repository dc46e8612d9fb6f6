"""What the README shows can be run."""

import re
import shlex

import pytest
from scripts import REPOSITORY, run

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """Has the files that the README's user is supposed to have."""
    rows = "".join(f"p{i},parent_of,p{i + 1}\n" for i in range(8))
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.csv").write_text("head,relation,tail\n" + rows)
    (tmp_path / "numbers.csv").write_text("".join(f"p{i},born,{i}\n" for i in range(9)))
    monkeypatch.chdir(tmp_path)


def test_there_is_something_to_run():
    assert len(blocks("python")) >= 2
    assert len(blocks("shell")) >= 4


def test_python_from_top_to_bottom(workplace):
    names = {}
    for code in blocks("python"):
        exec(compile(code, "README.md", "exec"), names)


@pytest.mark.slow
def test_shell_from_top_to_bottom(workplace):
    for line in "".join(blocks("shell")).splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            target = rf"^{re.escape(words[1])}:"
            assert re.search(
                target, (REPOSITORY / "Makefile").read_text(), re.MULTILINE
            )
            continue
        assert words[0] in ("kblrn", "python"), f"how is this run? {line}"
        done = run(*words)
        assert done.code == 0, f"{line}: {done.err}"
