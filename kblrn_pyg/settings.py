"""Settings as dataclasses, from which commands, files and reports are derived."""

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import MISSING, Field
from typing import Any, get_args, get_origin


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
        help (str): What it is, for :obj:`--help` and for the report.
        expert (str, optional): The letter of the expert that it is for, or the
            letters of several. (default: :obj:`""`, the whole model)
        choices (sequence, optional): The values that it, or a member of a list,
            may have on the command line; those of a list may have :obj:`*` in
            place of any text. (default: :obj:`()`, any)
        none (str, optional): What :obj:`None` is called, if it is a value that
            can be chosen. (default: :obj:`""`)
    """
    metadata = {"help": help, "expert": expert, "choices": choices, "none": none}
    if isinstance(default, list):
        return dataclasses.field(
            default_factory=lambda: list(default), metadata=metadata
        )
    return dataclasses.field(default=default, metadata=metadata)


def concerns(expert: str, letters: str) -> bool:
    r"""Tells whether a setting concerns a model.

    Args:
        expert (str): The letters that :meth:`setting` was given.
        letters (str): The letters of the model's experts.
    """
    return not expert or bool(set(expert) & set(letters))


def check_types(cls: type, values: Any) -> None:
    r"""Refuses values that are not of the types of settings, as files may hold them.

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


def _is_of(value: Any, kind: Any) -> bool:
    """Tells whether a value has the type of a field; integers are numbers, too."""
    if get_origin(kind) is list:
        (member,) = get_args(kind)
        return isinstance(value, list) and all(_is_of(one, member) for one in value)
    if get_args(kind):  # one of several types
        return any(_is_of(value, one) for one in get_args(kind))
    if kind in (int, float):
        is_number = isinstance(value, int | kind) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    return isinstance(value, kind)


def _words(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind)) if not get_args(kind) else str(kind)


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
