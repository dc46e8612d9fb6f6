"""A room of the library uses only the rooms that it may use."""

import ast
import sys
from pathlib import Path

import pytest

import kblrn_pyg

PACKAGE = Path(kblrn_pyg.__file__).parent
TOP_LEVEL = PACKAGE.parent

# What each room may import from the others, and from outside if that is limited.
MAY_USE = {
    "data": {"kernels"},
    "datasets": {"data"},
    "kernels": set(),
    "rules": {"kernels", "data"},
    "loader": {"data"},
    "nn": {"kernels", "rules", "data", "loader"},
    "evaluation": {"kernels", "data"},
    "explain": {"nn", "data", "rules", "evaluation"},
    "predict": {"nn", "data", "rules", "evaluation"},
    "training": {"nn", "loader", "evaluation", "data", "kernels"},
    "cli": {
        "data",
        "datasets",
        "explain",
        "plotting",
        "predict",
        "rules",
        "nn",
        "evaluation",
        "training",
        "report",
        "runs",
    },
    "plotting": {
        "data",
        "datasets",
        "explain",
        "rules",
        "nn",
        "evaluation",
        "training",
    },
    "report": {
        "data",
        "evaluation",
        "explain",
        "nn",
        "plotting",
        "predict",
        "rules",
        "runs",
        "training",
    },
    "runs": {"data", "datasets", "rules", "nn", "training"},
}
# Doors to rooms that come later: imported when a method is called, or for its
# types, never when the module is loaded.
DOORS = {"nn": {"explain", "predict"}}
OUTSIDE_OF_KERNELS = {"numpy", "numba"}
ONLY_IN = {
    "matplotlib": {"plotting", "report"},
    "pandas": set(),
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


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "kblrn_pyg" and len(parts) > 1 else None


def files() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts != ("__init__",):
            found.append((parts[0], path))
    return found


@pytest.mark.parametrize(("room", "path"), files())
def test_room_keeps_to_itself(room, path):
    for module in imported_modules(path):
        other = room_of(module)
        if other is not None and other != room:
            may_use = MAY_USE[room] | DOORS.get(room, set())
            assert other in may_use, f"{path.name} imports {module}"
        top = module.split(".")[0]
        if room == "kernels" and top not in sys.stdlib_module_names:
            assert top in {"kblrn_pyg", *OUTSIDE_OF_KERNELS}
        if top in ONLY_IN:
            assert room in ONLY_IN[top], f"{path.name} imports {module}"


@pytest.mark.parametrize("room", DOORS)
def test_doors_stay_closed(room):
    paths = [path for owner, path in files() if owner == room]
    rooms = {room_of(m) for p in paths for m in imported_modules(p, when_loaded=True)}
    assert rooms.isdisjoint(DOORS[room])


def test_nobody_imports_the_command_line():
    for room, path in files():
        if room != "cli":
            assert not any(room_of(m) == "cli" for m in imported_modules(path))
