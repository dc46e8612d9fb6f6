"""All that the package imports is declared in pyproject.toml."""

import ast
import re
import sys
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from scripts import REPOSITORY

# What is imported by another name than it is installed by.
MODULES = {"torch-geometric": "torch_geometric", "torch-scatter": "torch_scatter"}
# Extras that the package itself uses, or its tests; others are tools beside it.
USED = ("app", "arrow", "rdf", "tune", "test")


def test_dependencies_are_declared():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    names = {re.match(r"[\w-]+", line)[0] for line in lines}
    known = {MODULES.get(name, name) for name in names} | {"kblrn_pyg"}
    for path in (REPOSITORY / "kblrn_pyg").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                modules = [node.module]
            for module in modules:
                top = module.split(".")[0]
                assert top in known or top in sys.stdlib_module_names, f"{path}: {top}"


def test_licences_are_listed():
    """Of all that is installed with the package, or with an extra that it uses."""
    text = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8").lower()
    listed = set(re.findall(r"[\w.-]+", text.partition("## dependencies")[2]))
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    used = [
        *project["dependencies"],
        *(one for e in extras if e in USED for one in extras[e]),
    ]
    others = [one for e in extras if e not in USED for one in extras[e]]
    wanted = {*needed_by(used), *map(name_of, others)} - {"kblrn-pyg"}
    assert wanted - listed == set()


def name_of(requirement):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", requirement)[0]).lower()


def needed_by(requirements):
    """Yields all that some requirements need, as far as it is installed."""
    found, left = set(), list(requirements)
    while left:
        requirement = Requirement(left.pop())
        name = name_of(requirement.name)
        if name in found:
            continue
        found.add(name)
        with suppress(PackageNotFoundError):
            for further in map(Requirement, distribution(name).requires or ()):
                for extra in ("", *requirement.extras):
                    if not further.marker or further.marker.evaluate({"extra": extra}):
                        left.append(str(further).partition(";")[0])
    return found


def test_versions_have_a_date():
    first, *lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    assert re.search(r" \d{4}-\d\d-\d\d\.$", first)
    assert all(re.fullmatch(r"[\w.-]+(==|<)[\w.]+", line) for line in lines)
