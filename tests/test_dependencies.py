"""All that the package imports is declared in pyproject.toml."""

import ast
import re
import sys
import tomllib

from scripts import REPOSITORY

# What is imported by another name than it is installed by.
MODULES = {"torch-geometric": "torch_geometric", "torch-scatter": "torch_scatter"}


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
