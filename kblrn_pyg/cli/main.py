"""The ``kblrn`` command."""

import argparse
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import NoReturn, TextIO, cast

from kblrn_pyg import __version__
from kblrn_pyg.cli.options import has_several_processes, is_first_process
from kblrn_pyg.printable import PrintableStream, printable, shortened

logger = logging.getLogger(__name__)

# The module of a command is imported only when the command runs: importing torch
# takes seconds, which a help text should not.
COMMANDS = {
    "data": ("list the data sets, or describe one", "kblrn_pyg.cli.data"),
    "demo": ("show what each expert adds, in a minute", "kblrn_pyg.cli.demo"),
    "train": ("train a model", "kblrn_pyg.cli.train"),
    "tune": ("search for good settings", "kblrn_pyg.cli.tune"),
    "evaluate": ("evaluate a trained model", "kblrn_pyg.cli.evaluate"),
    "predict": ("answer a query", "kblrn_pyg.cli.predict"),
    "complete": ("find missing triples of a knowledge base", "kblrn_pyg.cli.complete"),
    "score": ("score the triples of a file", "kblrn_pyg.cli.score"),
    "calibrate": ("turn scores into probabilities", "kblrn_pyg.cli.calibrate"),
    "explain": ("explain the score of a triple", "kblrn_pyg.cli.explain"),
    "serve": ("query a trained model in the browser", "kblrn_pyg.cli.serve"),
    "update": ("add or retract facts without training", "kblrn_pyg.cli.update"),
    "report": ("write a page about a trained model", "kblrn_pyg.cli.report"),
    "mine": ("find the rules of a data set", "kblrn_pyg.cli.mine"),
    "control": ("test whether a model uses its numbers", "kblrn_pyg.cli.control"),
    "import": ("turn your own files into a data set", "kblrn_pyg.cli.import_files"),
}
# What the processes that 'torchrun' started do together. The first one does the rest.
_SHARED = {"demo", "train", "evaluate", "complete", "mine"}


class _Parser(argparse.ArgumentParser):
    """Reports errors in one line."""

    def error(self, message: str) -> NoReturn:
        message = shortened(printable(message))
        if self.takes_names and ("unrecognized" in message or "required" in message):
            message += " (names that begin with '-' follow '--', behind all options)"
        self.exit(2, f"{self.prog}: {message}, see '{self.prog} --help'\n")

    @property
    def takes_names(self) -> bool:
        """Whether names of entities are arguments, as :meth:`add_triple` adds them."""
        return any(action.dest == "head" for action in self._actions)


class _PrintableFormatter(logging.Formatter):
    """Keeps control sequences in names from reaching a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record), keep="\n\t")


def main(arguments: Sequence[str] | None = None) -> int:
    r"""Runs a command and returns its exit code.

    Args:
        arguments (sequence, optional): The arguments of :obj:`kblrn`.
            (default: :obj:`None`, those of the process)
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    parser = _Parser(
        prog="kblrn",
        description="Complete knowledge bases with latent, relational and numerical "
        "features.",
        epilog="'kblrn COMMAND --help' lists the options of a command.",
    )
    parser.add_argument("--version", action="version", version=f"kblrn {__version__}")
    parser.add_argument(
        "command",
        choices=COMMANDS,
        metavar="COMMAND",
        help="; ".join(f"{name}: {text}" for name, (text, _) in COMMANDS.items()),
    )
    with _quiet_unless_first() as errors:
        command = parser.parse_args(arguments[:1]).command
        if command not in _SHARED and not is_first_process():
            return 0
        return _run(command, arguments[1:], errors)


def _run(command: str, arguments: list[str], errors: TextIO) -> int:
    # Threads that wait for others sleep, where nobody says otherwise: on a machine
    # that has other work, small batches took a hundred times as long by spinning.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    module = importlib.import_module(COMMANDS[command][1])
    parser = _Parser(prog=f"kblrn {command}", description=module.__doc__)
    module.add_arguments(parser)
    options = parser.parse_args(arguments)

    handler = logging.StreamHandler()
    handler.setFormatter(_PrintableFormatter("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    try:
        with _one_line_warnings(f"kblrn {command}"), _printable_output():
            if command in _SHARED:
                _join_processes()
            module.run(options)
        sys.stdout.flush()  # here, where a failure is still reported
    except BrokenPipeError:
        return _leave_quietly()
    except (ValueError, OSError, ImportError) as error:
        logger.debug("kblrn %s failed", command, exc_info=True)
        _print_error(command, str(error), errors)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        logger.debug("kblrn %s failed", command, exc_info=True)
        _print_error(command, "there is not enough memory", errors)
        return 2
    except KeyboardInterrupt:
        print(f"kblrn {command}: interrupted", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _quiet_unless_first() -> Iterator[TextIO]:
    """Keeps all processes but the first from printing anything but errors.

    Errors, which may occur in one process only, go to the yielded stream.
    """
    errors = sys.stderr
    if is_first_process():
        yield errors
        return
    with (
        open(os.devnull, "w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        yield errors


def _join_processes() -> None:
    """Lets several processes share the work; a single process does not import torch
    here."""
    if has_several_processes():
        from kblrn_pyg.training.process import join_processes

        join_processes()


def _print_error(command: str, message: str, errors: TextIO) -> None:
    message = shortened(printable(message))
    print(f"kblrn {command}{_which_process()}: {message}", file=errors)


def _is_out_of_memory(error: Exception) -> bool:
    """Detects a lack of memory, for which torch has no error type of its own."""
    return isinstance(error, MemoryError) or "allocate memory" in str(error)


@contextmanager
def _printable_output() -> Iterator[None]:
    """Keeps control sequences in names from a terminal; files get plain names."""
    if not sys.stdout.isatty():
        yield
        return
    with redirect_stdout(cast(TextIO, PrintableStream(sys.stdout))):
        yield


def _which_process() -> str:
    return "" if is_first_process() else f" (process {os.environ['RANK']})"


@contextmanager
def _one_line_warnings(prefix: str) -> Iterator[None]:
    """Prints warnings without the line of code that they come from."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = shortened(printable(str(message).split("\n")[0]))
        print(f"{prefix}: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _leave_quietly() -> int:
    """Ends quietly when the reader of a pipe has closed it (``kblrn ... | head``)."""
    # What is still in the buffer would fail once more when Python exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141  # the exit code of a shell for a closed pipe


if __name__ == "__main__":
    sys.exit(main())
