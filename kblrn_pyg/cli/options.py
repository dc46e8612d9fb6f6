"""Options and output functions that commands share."""

import argparse
import json
import os
import sys
from argparse import BooleanOptionalAction
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from fnmatch import fnmatchcase
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin

from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.names import COUNTS
from kblrn_pyg.printable import printable, shortened
from kblrn_pyg.settings import check_types, default_of
from kblrn_pyg.table import format_table

Settings = TypeVar("Settings")
# The metrics that tables have, with their titles.
FIGURES = {"mrr": "MRR", "mr": "MR"} | {f"hits@{k}": f"hits@{k}" for k in (1, 3, 10)}


def tell(text: str, end: str = "\n") -> None:
    r"""Prints a message to standard error, with control characters escaped.

    Args:
        text (str): The message, in one line.
        end (str, optional): What follows. (default: a line end)
    """
    print(shortened(printable(text)), end=end, file=sys.stderr, flush=True)


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Adds the data set of a command, and the directory of data sets."""
    parser.add_argument(
        "dataset",
        help=f"one of {', '.join(COUNTS)}, or the directory of an imported data set",
    )
    parser.add_argument("--root", help="the directory of data sets")


def add_header(parser: argparse.ArgumentParser) -> None:
    """Adds the option that states whether files begin with a header."""
    parser.add_argument(
        "--header",
        action=BooleanOptionalAction,
        help="whether the first row of each file is a header (default: if it consists "
        "of known names such as head, relation, tail)",
    )


def add_settings(
    parser: argparse._ActionsContainer, cls: type, without: type | None = None
) -> None:
    """Adds an option for each field of a dataclass of settings.

    Options that are not given are absent, which '--resume' has to know. Those that
    were added for another class are left out.
    """
    there = set() if without is None else {field.name for field in fields(without)}
    for field in fields(cls):
        if field.name in there:
            continue
        kwargs: dict[str, Any] = {"help": _help(field), "default": argparse.SUPPRESS}
        if _kind(field) is bool:
            is_on = default_of(field)
            kwargs["action"] = BooleanOptionalAction if is_on else "store_true"
        elif field.metadata["choices"] and not _is_list(field):
            kwargs["choices"] = field.metadata["choices"]
        else:
            kwargs |= {"type": _parser(field), "metavar": _metavar(field)}
        parser.add_argument(option_name(field.name), **kwargs)


def settings_from(
    values: argparse.Namespace | Mapping[str, Any], cls: type[Settings]
) -> Settings:
    """Creates settings from options, or from what a file stores for the class."""
    if isinstance(values, argparse.Namespace):
        return cls(**given_settings(values, cls))
    check_types(cls, values)
    return cls(**values)


def given_settings(options: argparse.Namespace, cls: type) -> dict[str, Any]:
    """Returns the settings of a class that were given as options."""
    names = {field.name for field in fields(cls)}
    return {name: value for name, value in vars(options).items() if name in names}


def add_run(parser: argparse.ArgumentParser, needs_splits: bool = False) -> None:
    """Adds the run of a command, and optionally its data set."""
    text = "the folder that 'kblrn train' or 'fit' wrote"
    parser.add_argument(
        "run", help=text if needs_splits else f"{text}, or a model file"
    )
    if needs_splits:
        parser.add_argument(
            "--dataset",
            metavar="NAME|DIR",
            help="the data set of the run (default: the one that it was trained on)",
        )


def add_triple(parser: argparse.ArgumentParser, or_asked: str = "") -> None:
    """Adds the triple of a command."""
    parser.add_argument("head", help=f"the head, by name or identifier{or_asked}")
    parser.add_argument("relation", help="the relation, by name or its end")
    parser.add_argument("tail", help=f"the tail, by name or identifier{or_asked}")


def shows_progress() -> bool:
    """Whether to show progress: of several processes, the first one does."""
    return is_first_process()


def is_first_process() -> bool:
    """Whether this is the only process, or the first that ``torchrun`` started."""
    return not has_several_processes() or os.environ.get("RANK", "0") == "0"


def has_several_processes() -> bool:
    """Whether ``torchrun`` started several processes."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def to_json(content: Any) -> str:
    """Returns the content as JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def write_output(text: str, out: str | None) -> None:
    """Prints a text, or writes it to a file."""
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(f"saved {out}")


def figures_table(
    title: str,
    rows: Mapping[str, Mapping[str, Any]],
    columns: Mapping[str, str] = FIGURES,
) -> str:
    """Returns a table of metrics, with the titles of columns by metric."""
    cells = [[name, *map(row.get, columns)] for name, row in rows.items()]
    return format_table([title, *columns.values()], cells)


def option_name(name: str) -> str:
    """Returns the option of a setting."""
    return f"--{name.replace('_', '-')}"


def _kind(field: "Field[Any]") -> Any:
    """The type of a setting; that of None is left out."""
    kinds = [one for one in get_args(field.type) if one is not NoneType]
    if get_origin(field.type) is list or not kinds:
        return field.type
    return kinds[0]


def _is_list(field: "Field[Any]") -> bool:
    return get_origin(_kind(field)) is list


def _parser(field: "Field[Any]") -> Callable[[str], Any]:
    kind, none = _kind(field), field.metadata["none"]

    def parse(text: str) -> Any:
        if none and text == none:
            return None
        if _is_list(field):
            return _parse_list(text, field.metadata["choices"])
        return kind(text)

    parse.__name__ = getattr(kind, "__name__", "list")  # which errors name
    return parse


def _parse_list(text: str, choices: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.lower().split(",")]
    for name in names:
        if choices and not any(fnmatchcase(name, choice) for choice in choices):
            raise argparse.ArgumentTypeError(
                f"must be one of {', '.join(choices)} (got {name!r})"
            )
    return names


def _metavar(field: "Field[Any]") -> str:
    if _is_list(field):
        return "NAME[,NAME]"
    metavar = {int: "N", float: "X"}.get(_kind(field), "TEXT")
    return f"{metavar}|{none}" if (none := field.metadata["none"]) else metavar


def _help(field: "Field[Any]") -> str:
    text, default = field.metadata["help"], default_of(field)
    if isinstance(default, list):
        text += f": {', '.join(field.metadata['choices'])}"
        default = ",".join(default)
    elif default is None:
        default = field.metadata["none"]
    if default is not False and default != "":
        text = f"{text} (default: {default})"
    return text.replace("%", "%%")
