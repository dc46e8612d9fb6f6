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
    "training": {"nn", "loader", "evaluation", "data", "kernels"},
    "cli": {"data", "datasets", "plotting", "rules", "nn", "evaluation", "training"},
    "plotting": {"data", "datasets"},
}
OUTSIDE_OF_KERNELS = {"numpy", "numba"}
ONLY_IN = {"matplotlib": {"plotting"}, "pandas": set(), "pyoxigraph": {"data"}}


def imported_modules(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
            assert other in MAY_USE[room], f"{path.name} imports {module}"
        top = module.split(".")[0]
        if room == "kernels" and top not in sys.stdlib_module_names:
            assert top in {"kblrn_pyg", *OUTSIDE_OF_KERNELS}
        if top in ONLY_IN:
            assert room in ONLY_IN[top], f"{path.name} imports {module}"


def test_nobody_imports_the_command_line():
    for room, path in files():
        if room != "cli":
            assert not any(room_of(m) == "cli" for m in imported_modules(path))
