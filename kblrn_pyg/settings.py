"""Settings as dataclasses, from which commands, files and reports are derived."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import MISSING, Field
from typing import Any, get_args, get_origin

# What values of a type are called in messages.
_WORDS = {
    bool: "True or False",
    float: "a finite number",
    int: "an integer",
    str: "text",
    type(None): "None",
}


def setting(
    default: Any,
    help: str,
    expert: str = "",
    choices: Sequence[str] = (),
    none: str = "",
) -> Any:
    r"""Declares a field of a dataclass of settings.

    Args:
        default: Its default.
        help (str): Its description, for :obj:`--help` and for the report.
        expert (str, optional): The letter of the expert that it belongs to, or the
            letters of several. (default: :obj:`""`, the whole model)
        choices (sequence, optional): The values that it, or a member of a list, may
            have on the command line; those of a list may contain :obj:`*` as a
            wildcard. (default: :obj:`()`, any)
        none (str, optional): The word for :obj:`None`, if it is a valid value.
            (default: :obj:`""`)
    """
    metadata = {"help": help, "expert": expert, "choices": choices, "none": none}
    if isinstance(default, list):
        return dataclasses.field(
            default_factory=lambda: list(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


def concerns(expert: str, letters: str) -> bool:
    r"""Returns whether a setting applies to a model.

    Args:
        expert (str): The letters that :meth:`setting` was given.
        letters (str): The letters of the model's experts.
    """
    return not expert or bool(set(expert) & set(letters))


def used_by(cls: type) -> dict[str, str]:
    r"""Returns the letters of the experts that settings belong to, by name.

    Args:
        cls (type): The dataclass of settings.
    """
    return {one.name: one.metadata["expert"] for one in dataclasses.fields(cls)}


def check_types(cls: type, values: Any) -> None:
    r"""Refuses values whose types differ from those of the settings, such as values
    from files.

    Args:
        cls (type): The dataclass of settings.
        values (dict): The values by name.
    """
    if not isinstance(values, dict):
        raise ValueError(f"settings must be values by name (got {values!r})")
    kinds = {one.name: one.type for one in dataclasses.fields(cls)}
    if unknown := sorted(set(map(str, values)) - set(kinds)):
        raise ValueError(f"unknown settings: {', '.join(unknown)}")
    for name, value in values.items():
        if not _is_of(value, kinds[name]):
            raise ValueError(f"'{name}' must be {_words(kinds[name])} (got {value!r})")


def settle(settings: Any) -> None:
    r"""Refuses settings of other types than those of their fields, and turns numbers
    of NumPy and torch into Python's, which files can hold.

    Args:
        settings: An object of a dataclass of settings, which may be frozen.
    """
    for name, value in vars(settings).items():
        if type(value).__module__ in ("numpy", "torch") and not getattr(
            value, "shape", True
        ):
            object.__setattr__(settings, name, value.item())
    check_types(type(settings), vars(settings))


def from_words(cls: type, values: Any) -> Any:
    r"""Returns values in which words for :obj:`None`, such as "all", are replaced
    by :obj:`None`.

    Args:
        cls (type): The dataclass of settings.
        values (dict): The values by name, as stored in files.
    """
    if not isinstance(values, dict):
        return values  # which check_types refuses
    words = {one.name: one.metadata["none"] for one in dataclasses.fields(cls)}
    return {
        name: None if words.get(name) and value == words[name] else value
        for name, value in values.items()
    }


def in_words(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    r"""Returns values in which :obj:`None` is replaced by its word, which all file
    formats support.

    Args:
        cls (type): The dataclass of settings.
        values (dict): The values by name; those that are :obj:`None` and have no word
            are left out.
    """
    words = {one.name: one.metadata["none"] for one in dataclasses.fields(cls)}
    found = {n: words[n] if v is None else v for n, v in values.items()}
    return {name: value for name, value in found.items() if value != ""}


def _is_of(value: Any, kind: Any) -> bool:
    """Returns whether a value has the type of a field; integers are numbers, too."""
    if get_origin(kind) is list:
        (member,) = get_args(kind)
        return isinstance(value, list) and all(_is_of(one, member) for one in value)
    if get_args(kind):  # one of several types
        return any(_is_of(value, one) for one in get_args(kind))
    if kind in (int, float):
        if isinstance(value, bool) or not isinstance(value, int | kind):
            return False
        if isinstance(value, int):  # hundreds of digits do not fit into a C integer
            return abs(value) < 1 << 63
        return math.isfinite(value)
    return isinstance(value, kind)


def _words(kind: Any) -> str:
    """Describes the values of a type."""
    if get_origin(kind) is list:
        return "a list"
    kinds = get_args(kind) or (kind,)
    return " or ".join(_WORDS.get(one, str(one)) for one in kinds)


def default_of(field: "Field[Any]") -> Any:
    r"""Returns the default of a setting.

    Args:
        field (dataclasses.Field): The field that :meth:`setting` declared.
    """
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def changed(settings: Any) -> dict[str, Any]:
    r"""Returns the settings that differ from their defaults, by name.

    Args:
        settings: An object of a dataclass of settings.
    """
    values = {one: getattr(settings, one.name) for one in dataclasses.fields(settings)}
    return {
        field.name: value
        for field, value in values.items()
        if value != default_of(field)
    }


def check_bins(name: str, number: int, least: int = 2) -> None:
    r"""Refuses a number of bins that is not a power of two.

    Args:
        name (str): The name of the number.
        number (int): The number of bins.
        least (int, optional): The minimum number, 0 or 2. (default: :obj:`2`)
    """
    if number < least or number == 1 or number & (number - 1):
        numbers = "2, 4, 8, …" if least else "0, 2, 4, 8, …"
        raise ValueError(f"'{name}' must be one of {numbers} (got {number})")
