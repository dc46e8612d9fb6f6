"""Runs commands and scripts inside the test's own process, which is fast."""

import io
import runpy
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from matplotlib import pyplot

from kblrn_pyg.cli.main import main

REPOSITORY = Path(__file__).parent.parent


@dataclass
class Done:
    code: int
    out: str
    err: str


def run(*words) -> Done:
    """Runs ``kblrn ...`` or ``python SCRIPT ...`` as a shell would."""
    command, *arguments = map(str, words)
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments) if command == "kblrn" else _script(*arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
    pyplot.close("all")
    return Done(code, out.getvalue(), err.getvalue())


def _script(path: str, *arguments: str) -> int:
    script = REPOSITORY / path
    with (
        mock.patch.object(sys, "argv", [path, *arguments]),
        mock.patch.object(sys, "path", [str(script.parent), *sys.path]),
    ):
        runpy.run_path(str(script), run_name="__main__")
    return 0
