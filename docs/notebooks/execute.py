"""Runs the notebooks of this folder and writes them with their output.

    python docs/notebooks/execute.py --out docs/notebooks

An error in a cell, or a notebook that takes longer than a minute of processor time, is
an error.
"""

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
MAX_SECONDS = 60


def execute(path: Path, out: Path) -> float:
    """Returns the seconds of processor time that a notebook took."""
    notebook = nbformat.read(path, as_version=4)
    before = _processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": folder}}
        )
        client.execute()
    for cell in notebook.cells:
        tidy(cell)
    notebook.metadata = {
        "kernelspec": notebook.metadata.kernelspec,
        "language_info": {"name": "python"},
    }
    out.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, out / path.name)
    return _processor_seconds() - before


def tidy(cell: NotebookNode) -> None:
    """Leaves out what is about the machine, and not about the notebook."""
    cell.metadata.pop("execution", None)  # times
    if cell.cell_type == "code":
        # A warning of tqdm about widgets, with a path.
        cell.outputs = [one for one in cell.outputs if "IProgress" not in str(one)]


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write them")
    parser.add_argument("names", nargs="*", help="some of them (default: all)")
    options = parser.parse_args()
    code = 0
    paths = [FOLDER / name for name in options.names] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        begin = time.perf_counter()
        seconds = execute(path, options.out)
        elapsed = time.perf_counter() - begin
        print(f"{path.name}: {seconds:.0f} s of processor time, {elapsed:.0f} s")
        if seconds > MAX_SECONDS:
            print(f"{path.name} must take at most {MAX_SECONDS} s", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
