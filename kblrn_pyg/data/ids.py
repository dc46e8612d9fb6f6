"""Checks of ids, as kernels read wherever ids lead them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


def check_ids(columns: Mapping[str, tuple[NDArray[np.int64] | Tensor, int]]) -> None:
    r"""Refuses ids that do not exist, and columns of different lengths.

    Args:
        columns (dict): For each kind of id, the ids, and the number of ids that
            exist.
    """
    sizes = [len(ids) for ids, _ in columns.values()]
    if len(set(sizes)) > 1:
        kinds = ", ".join(columns)
        raise ValueError(f"ids of {kinds} must be equally many (got {sizes})")
    for kind, (ids, number) in columns.items():
        array = ids.numpy(force=True) if isinstance(ids, Tensor) else ids
        if array.size == 0:  # of any type, as nothing is looked up
            continue
        if array.dtype.kind not in "iu":
            raise ValueError(f"ids of {kind} must be integers (got {ids.dtype})")
        least, most = int(array.min()), int(array.max())
        if least < 0 or most >= number:
            raise ValueError(
                f"ids of {kind} must lie in 0 to {number - 1} (got {least} to {most})"
            )
