"""Compact file content: many names as one tensor, and no unused tensor storage."""

from collections import defaultdict
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Marks what stands for a list of names; no dictionary of a user has this key.
_NAMES = "kblrn_pyg names"
# Fewer names are read as they are: each costs a step of an interpreter.
_MANY = 100


def pack(content: dict[str, Any]) -> dict[str, Any]:
    r"""Packs content, so that it is small to write and fast to read.

    Args:
        content (dict): Tensors and plain values, in dictionaries or not. Objects
            that occur several times stay one object.
    """
    parts = _partial(content)

    def pack_one(value: Any) -> Any:
        if isinstance(value, list) and len(value) >= _MANY and are_texts(value):
            return pack_names(value)
        if isinstance(value, Tensor) and id(value) in parts:
            return value.detach().clone()
        return value

    return _mapped(content, pack_one)


def unpack(content: dict[str, Any]) -> dict[str, Any]:
    """Reverses :meth:`pack`."""

    def unpack_one(value: Any) -> Any:
        is_names = isinstance(value, dict) and _NAMES in value
        return unpack_names(value) if is_names else value

    return _mapped(content, unpack_one)


def pack_names(names: list[str]) -> dict[str, Any]:
    """Joins names with a character that none of them contains."""
    joined = "".join(names)
    code = next(i for i in range(10, 0x110000) if chr(i) not in joined)
    text = chr(code).join(names).encode(errors="surrogatepass")
    raw = torch.from_numpy(np.frombuffer(bytearray(text), np.uint8))
    return {_NAMES: len(names), "separator": code, "text": raw}


def unpack_names(packed: dict[str, Any]) -> list[str]:
    """Reverses :meth:`pack_names`."""
    if packed[_NAMES] == 0:
        return []
    text = packed["text"].numpy().tobytes().decode(errors="surrogatepass")
    return text.split(chr(packed["separator"]))


def are_texts(values: Any) -> bool:
    """Returns whether all values are strings, faster than checking each of them."""
    kinds = set(map(type, values))
    return all(issubclass(kind, str) for kind in kinds)


def is_unicode(names: list[str]) -> bool:
    """Returns whether names can be encoded, which is not the case for
    surrogates."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        return False
    return True


def _mapped(content: dict[str, Any], function: Callable[[Any], Any]) -> dict[str, Any]:
    """Calls a function for all values, for each object once."""
    done: dict[int, Any] = {}

    def visit(value: Any) -> Any:
        if id(value) not in done:
            new = function(value)
            if new is value and isinstance(value, dict):
                changed = {k: visit(v) for k, v in value.items() if visit(v) is not v}
                if changed:  # a copy, as weights come with attributes of their own
                    new = copy(value)
                    new.update(changed)
            done[id(value)] = new
        return done[id(value)]

    return visit(content)


def _partial(content: dict[str, Any]) -> set[int]:
    """Finds tensors that use only a part of their storage. Torch would save the
    whole storage, including deleted data.
    """
    views: dict[int, dict[int, Tensor]] = defaultdict(dict)

    def visit(value: Any) -> Any:
        if isinstance(value, Tensor) and value.layout == torch.strided:
            views[value.untyped_storage().data_ptr()][id(value)] = value
        return value

    _mapped(content, visit)
    found: set[int] = set()
    for tensors in views.values():
        places = {(v.storage_offset(), v.shape, v.stride()) for v in tensors.values()}
        used = sum(shape.numel() for _, shape, _ in places)
        first = next(iter(tensors.values()))
        if used * first.element_size() < first.untyped_storage().nbytes():
            found |= tensors.keys()
    return found
