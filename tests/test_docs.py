"""The documentation site has every page and every public name; notebooks are whole."""

import json
import re

import pytest
from scripts import REPOSITORY
from test_startup import packages

DOCS = REPOSITORY / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
# Their names are those of scripts and commands, or of the package itself.
WITHOUT_REFERENCE = {"kblrn_pyg", "kblrn_pyg.app", "kblrn_pyg.cli", "kblrn_pyg.viz"}


def test_public_packages_have_a_reference():
    pages = [path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md")]
    documented = set(re.findall(r"automodule:: ([\w.]+)", "".join(pages)))
    public = {package.__name__ for package in packages()}
    # What is inside of a package is documented by what it exports.
    public = {name for name in public if name.count(".") == 1}
    assert public - WITHOUT_REFERENCE <= documented


def test_pages_of_the_reference_are_listed():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for path in (DOCS / "api").glob("*.md"):
        assert f"\napi/{path.stem}\n" in index
    for path in NOTEBOOKS:
        assert f"\nnotebooks/{path.stem}\n" in index


def test_there_are_three_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_with_their_output(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 300_000  # or code hosts do not show it
    assert not re.search(r"/(home|root|work|tmp)/|site-packages", text)
    cells = json.loads(text)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert len(outputs) >= 5
    assert not any(output["output_type"] == "error" for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
