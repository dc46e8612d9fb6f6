"""Query the model of a run on a page in the browser."""

import argparse
import importlib.util
import sys
from contextlib import suppress
from pathlib import Path

from kblrn_pyg.cli.options import add_run
from kblrn_pyg.data import DataError
from kblrn_pyg.training.run import Run

_NEEDED = ("fastapi", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, which only this machine "
        "can reach)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8237,
        help="the port, or 0 for any free port (default: 8237)",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="an additional host name that requests may use (repeatable)",
    )
    parser.add_argument("--title", help="(default: the name of the run)")
    parser.add_argument(
        "--no-browser", action="store_true", help="do not open the page"
    )


def run(options: argparse.Namespace) -> None:
    if not 0 <= options.port < 65536:
        raise DataError(f"--port must lie in 0 to 65535 (got {options.port})")
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise DataError(
            f"'kblrn serve' needs {' and '.join(missing)}: pip install 'kblrn_pyg[app]'"
        )
    Run(options.run).require_model()
    # Only now, as torch takes seconds to import.
    from kblrn_pyg.app import serve
    from kblrn_pyg.runs import load_model

    model = load_model(options.run)
    with suppress(KeyboardInterrupt):  # which is how it ends
        serve(
            model,
            options.host,
            options.port,
            options.title or _title(Path(options.run)),
            options.allow_host,
            open_browser=not options.no_browser and sys.stdout.isatty(),
            ready=lambda url: print(f"{url} (Ctrl-C ends)", flush=True),
        )


def _title(path: Path) -> str:
    """Returns the name of the run, given its folder or its model file."""
    path = path.resolve()
    return path.parent.name if path.name == "model.pt" else path.stem
