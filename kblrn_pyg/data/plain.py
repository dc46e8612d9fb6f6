"""Plain values: what a file can hold that is read without running code."""

from collections import OrderedDict, defaultdict
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.data.errors import DataError

_ATOMS = {bool, int, float, complex, str, bytes, type(None)}
_DICTS = (dict, OrderedDict, defaultdict)
# What torch reads, too; users may name more by 'torch.serialization.add_safe_globals'.
_OTHERS = {torch.Size, torch.dtype, torch.device, set}


def as_plain(content: dict[str, Any]) -> dict[str, Any]:
    r"""Turns NumPy's numbers and strings into Python's, and refuses all other
    objects: a file that holds them could be written but not read.

    Args:
        content (dict): Tensors and plain values, in dictionaries or not. Objects
            that occur several times stay one object.
    """
    return _Plain().of(content, "the content")


class _Plain:
    """Converts each object once."""

    def __init__(self) -> None:
        self._done: dict[int, Any] = {}
        self._safe = _OTHERS | {
            one for one in torch.serialization.get_safe_globals() if type(one) is type
        }

    def of(self, value: Any, name: str) -> Any:
        if type(value) in _ATOMS or isinstance(value, Tensor):
            return value
        if id(value) not in self._done:
            self._done[id(value)] = self._converted(value, name)
        return self._done[id(value)]

    def _converted(self, value: Any, name: str) -> Any:
        if isinstance(value, np.generic):
            return self._atom(value.item(), name)
        if type(value) in _DICTS:
            return self._dict(value)
        if type(value) in (list, tuple):
            if set(map(type, value)) <= _ATOMS:  # as names are
                return value
            new = [self.of(one, name) for one in value]
            is_same = all(a is b for a, b in zip(new, value))
            return value if is_same else type(value)(new)
        return self._atom(value, name)

    def _dict(self, value: Any) -> Any:
        new = {
            self.of(key, "a key"): self.of(one, str(key)) for key, one in value.items()
        }
        if all(
            a is b for pair in zip(new.items(), value.items()) for a, b in zip(*pair)
        ):
            return value
        made = copy(value)  # as weights come with attributes of their own
        made.clear()
        made.update(new)
        return made

    def _atom(self, value: Any, name: str) -> Any:
        if type(value) in _ATOMS or type(value) in self._safe:
            return value
        raise DataError(
            f"{name!r} holds Python objects of {type(value).__name__}, expected only "
            "tensors, numbers, strings, lists and dictionaries (what did a "
            "'pre_transform' attach?)"
        )
