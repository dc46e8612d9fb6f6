"""Ids that exist: kernels would read wherever others lead them."""

from collections.abc import Mapping
from typing import Any


def check_ids(columns: Mapping[str, tuple[Any, int]]) -> None:
    r"""Refuses ids that do not exist, and columns of different lengths.

    Args:
        columns (dict): For each kind of thing, the ids, as an array or a
            tensor, and how many things there are.
    """
    sizes = [len(ids) for ids, _ in columns.values()]
    if len(set(sizes)) > 1:
        kinds = ", ".join(columns)
        raise ValueError(f"ids of {kinds} must be equally many (got {sizes})")
    for kind, (ids, number) in columns.items():
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < number:
            raise ValueError(
                f"ids of {kind} must lie in 0 to {number - 1} (got {int(ids.min())} "
                f"to {int(ids.max())})"
            )
