"""Packages that import their names on first use."""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_imports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    r"""Returns the :obj:`__getattr__` and :obj:`__dir__` of a package.

    The package imports its names below :obj:`if TYPE_CHECKING`, which type checkers
    read and Python does not execute. Torch and PyG take seconds to import, and code
    that only needs settings or an error class should not wait for them. A name must
    differ from the modules of the package, which would take precedence.

    Args:
        package (str): The name of the package.
    """
    module = sys.modules[package]
    nodes = ast.walk(ast.parse(Path(str(module.__file__)).read_bytes()))
    lines = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    places = {name.name: str(line.module) for line in lines for name in line.names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(module, name, value)
        return value

    return get, lambda: sorted({*vars(module), *module.__all__})
