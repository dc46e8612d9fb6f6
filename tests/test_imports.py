"""A package of the library uses only the packages that it may use."""

import ast
import sys
from pathlib import Path

import pytest

import kblrn_pyg

PACKAGE = Path(kblrn_pyg.__file__).parent
TOP_LEVEL = PACKAGE.parent

# What each package may import from the others.
MAY_USE = {
    "kernels": set(),
    "table": {"printable"},
    "frames": {"table"},
    "data": {"kernels"},
    "datasets": {"data"},
    "rules": {"kernels", "data"},
    "loader": {"data"},
    "nn": {"kernels", "rules", "data", "loader"},
    "evaluation": {"kernels", "data", "nn"},
    "explain": {"nn", "data", "rules", "evaluation"},
    "predict": {"nn", "data", "rules", "evaluation"},
    "training": {"nn", "loader", "evaluation", "data", "kernels"},
    "runs": {"data", "datasets", "evaluation", "nn", "rules", "training"},
    "recipes": {"data", "evaluation", "nn", "rules", "training"},
    "plotting": {"data", "explain", "rules", "nn", "evaluation", "training"},
    "report": {
        *("data", "evaluation", "explain", "nn", "plotting", "predict", "rules"),
        *("runs", "training"),
    },
    "viz": {
        *("data", "datasets", "evaluation", "explain", "nn", "plotting", "runs"),
        "training",
    },
    "app": {"data", "evaluation", "explain", "nn", "predict", "rules"},
    "cli": {
        *("data", "datasets", "explain", "plotting", "predict", "rules", "nn"),
        *("evaluation", "training", "report", "runs", "app", "recipes"),
    },
}
# They import nothing else of the library, and anyone but kernels may use them.
LEAVES = {
    "frames",
    *("backend", "lazy", "printable", "progress", "settings", "shard", "sizes"),
    "table",
}
# Imported when a method is called, or for its types, never when the module is
# loaded.
LATE = {"nn": {"explain", "predict", "training"}}
OUTSIDE_OF_KERNELS = {"numpy", "numba"}
ONLY_IN = {
    "fastapi": {"app"},
    "uvicorn": {"app"},
    "matplotlib": {"plotting", "report", "viz"},
    "pandas": {"frames"},
    "pyarrow": {"data"},
    "pyoxigraph": {"data"},
}


def imported_modules(path: Path, when_loaded: bool = False) -> set[str]:
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if when_loaded else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module)
    return found


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "kblrn_pyg" and len(parts) > 1 else None


def files() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            found.append((parts[0], path))
    return found


@pytest.mark.parametrize(("package", "path"), files())
def test_package_keeps_to_itself(package, path):
    for module in imported_modules(path):
        other = package_of(module)
        if other is not None and other != package:
            may_use = MAY_USE.get(package, set()) | LATE.get(package, set())
            if package not in ("kernels", *LEAVES):
                may_use |= LEAVES
            assert other in may_use, f"{path.name} imports {module}"
        top = module.split(".")[0]
        if package == "kernels" and top not in sys.stdlib_module_names:
            assert top in {"kblrn_pyg", *OUTSIDE_OF_KERNELS}
        if top in ONLY_IN:
            assert package in ONLY_IN[top], f"{path.name} imports {module}"


@pytest.mark.parametrize("package", LATE)
def test_late_imports_are_late(package):
    paths = [path for owner, path in files() if owner == package]
    packages = {
        package_of(m) for p in paths for m in imported_modules(p, when_loaded=True)
    }
    assert packages.isdisjoint(LATE[package])


def test_nobody_imports_the_command_line():
    for package, path in files():
        if package not in ("cli", "viz"):
            assert not any(
                package_of(m) in ("cli", "viz") for m in imported_modules(path)
            )
