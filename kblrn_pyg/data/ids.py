"""Checks of ids, because kernels do not check bounds."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from kblrn_pyg.printable import shortened

if TYPE_CHECKING:
    from kblrn_pyg.data.queries import Queries

Ids = NDArray[np.int64]

_LONGEST_SHOWN = 200


def as_ids(values: ArrayLike, kind: str) -> Ids:
    r"""Returns ids in the form that kernels need, and refuses anything but a single
    column.

    Args:
        values (array): The ids.
        kind (str): The name in error messages.
    """
    try:
        array = np.asarray(values)
    except (RuntimeError, TypeError, ValueError):  # rows that differ, odd tensors
        raise ValueError(
            f"ids of {kind} must be an array of integers (got {type(values).__name__})"
        ) from None
    if array.ndim != 1:
        raise ValueError(f"ids of {kind} must have one dimension (got {array.ndim})")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"ids of {kind} must be integers (got {array.dtype})")
    return np.ascontiguousarray(array, np.int64)


def check_id(given: Any, kind: str, number: int) -> int:
    r"""Returns an id, and refuses invalid ones; -1 does not mean the last one.

    Args:
        given (int): The id.
        kind (str): The name in error messages.
        number (int): The number of existing ids.
    """
    try:
        found = operator.index(given)  # integers of NumPy are none of Python's
    except (RuntimeError, TypeError):
        found = None
    is_truth = isinstance(given, bool) or getattr(given, "dtype", None) == torch.bool
    if found is None or is_truth:  # True is no 1 here
        shown = shortened(repr(given), _LONGEST_SHOWN)
        raise ValueError(f"the id of the {kind} must be an integer (got {shown})")
    if not 0 <= found < number:
        raise ValueError(
            f"the id of the {kind} must lie in 0 to {number - 1} (got {found})"
        )
    return found


def check_ids(
    columns: Mapping[str, tuple[Ids | Tensor, int]], num_dims: int = 1
) -> None:
    r"""Refuses unknown ids, and columns of different lengths.

    Args:
        columns (dict): For each kind of id, the ids, and the number of ids that
            exist.
        num_dims (int, optional): The required number of dimensions.
            (default: :obj:`1`)
    """
    for kind, (ids, _) in columns.items():
        if not isinstance(ids, np.ndarray | Tensor):
            raise ValueError(
                f"ids of {kind} must be an array (got {type(ids).__name__})"
            )
        if ids.ndim != num_dims:
            wanted = "one dimension" if num_dims == 1 else f"{num_dims} dimensions"
            raise ValueError(f"ids of {kind} must have {wanted} (got {ids.ndim})")
    sizes = [len(ids) for ids, _ in columns.values()]
    if len(set(sizes)) > 1:
        kinds = ", ".join(columns)
        raise ValueError(f"ids of {kinds} must be equally many (got {sizes})")
    for kind, (ids, number) in columns.items():
        if ids.dtype not in (torch.int64, np.int64):
            wanted = "of type int64" if "int" in str(ids.dtype) else "integers"
            raise ValueError(f"ids of {kind} must be {wanted} (got {ids.dtype})")
        if isinstance(ids, Tensor) and (ids.is_meta or ids.layout != torch.strided):
            raise ValueError(f"ids of {kind} must be dense, and not on 'meta'")
        if 0 in ids.shape:
            continue
        least, most = _extrema(ids)
        if least < 0 or most >= number:
            raise ValueError(
                f"ids of {kind} must lie in 0 to {number - 1} (got {least} to {most})"
            )


def as_positions(index: Any, kind: str, number: int) -> Ids:
    r"""Returns positions, and refuses those that do not exist.

    Args:
        index (array): The positions, or a boolean mask.
        kind (str): What errors call them.
        number (int): The number of positions that exist, and the length of a mask.
    """
    array = np.asarray(index)
    if array.dtype == np.bool_:
        check_shape("index", array, (number,))
        return np.flatnonzero(array)
    positions = as_ids(array, kind)
    check_ids({kind: (positions, number)})
    return positions


def check_distinct(ids: Ids | Tensor, kind: str) -> None:
    r"""Refuses ids that repeat.

    Args:
        ids (array): The ids.
        kind (str): The name in error messages.
    """
    array = ids.numpy(force=True) if isinstance(ids, Tensor) else ids
    if (array[1:] > array[:-1]).all():  # as most of them are
        return
    values, counts = np.unique(array, return_counts=True)
    if len(values) < len(array):
        again = int(values[counts.argmax()])
        raise ValueError(f"ids of {kind} must not repeat (got {again} twice)")


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    r"""Refuses an array of another shape, which kernels would only partly read or
    fill.

    Args:
        name (str): The name in error messages.
        array (array): The array.
        shape (tuple): The required shape.
    """
    if tuple(array.shape) != shape:
        raise ValueError(
            f"'{name}' must have the shape {list(shape)} (got {list(array.shape)})"
        )


@dataclass(frozen=True)
class IdRanges:
    r"""The valid ids of a model; the methods refuse all others.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        device (torch.device, optional): The required device of indices.
            (default: :obj:`None`, anywhere)
    """

    num_nodes: int
    num_relations: int
    device: torch.device | None = None

    def check_triples(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> None:
        """Refuses triples with invalid ids, or columns of different lengths."""
        self._check("head_index", head_index, self.num_nodes)
        self._check("rel_type", rel_type, self.num_relations)
        self._check("tail_index", tail_index, self.num_nodes)
        sizes = {"rel_type": len(rel_type), "tail_index": len(tail_index)}
        _check_lengths("head_index", len(head_index), sizes)

    def check_queries(self, queries: "Queries", **answers: Tensor) -> None:
        r"""Refuses queries with invalid ids.

        Args:
            queries (Queries): The queries.
            **answers (optional): By name, an answer to each query, or a row of
                answers.
        """
        known = "tail_index" if queries.side == "head" else "head_index"
        self._check(known, queries.entity, self.num_nodes)
        self._check("rel_type", queries.rel_type, self.num_relations)
        sizes = {"rel_type": len(queries.rel_type)}
        for name, ids in answers.items():
            self._check(name, ids, self.num_nodes, 2 if name == "candidates" else 1)
            sizes[name] = len(ids)
        _check_lengths(known, len(queries.entity), sizes)

    def check_entities(self, entities: Tensor) -> None:
        """Refuses columns with invalid entities, or with repeated ones."""
        self._check("entities", entities, self.num_nodes)
        check_distinct(entities, "entities")

    def _check(self, name: str, ids: Any, number: int, num_dims: int = 1) -> None:
        if not isinstance(ids, Tensor):
            raise ValueError(f"'{name}' must be a tensor (got {type(ids).__name__})")
        if ids.dtype != torch.int64 or ids.layout != torch.strided:
            raise ValueError(
                f"'{name}' must be a dense tensor of type torch.int64 (got {ids.dtype})"
            )
        if ids.dim() != num_dims:
            wanted = "one dimension" if num_dims == 1 else f"{num_dims} dimensions"
            raise ValueError(f"'{name}' must have {wanted} (got {ids.dim()})")
        if self.device is not None and ids.device != self.device:
            raise ValueError(
                f"'{name}' must be on the device of the model, {self.device} (got "
                f"{ids.device})"
            )
        if ids.is_meta:
            raise ValueError(f"'{name}' must have values, which are not on 'meta'")
        if ids.numel() == 0:
            return
        least, most = _extrema(ids)
        if least < 0 or most >= number:
            raise ValueError(
                f"'{name}' must lie in 0 to {number - 1} (got {least} to {most})"
            )


def _check_lengths(name: str, size: int, sizes: Mapping[str, int]) -> None:
    for other, found in sizes.items():
        if found != size:
            raise ValueError(
                f"'{other}' must have as many entries as '{name}', {size} (got {found})"
            )


def _extrema(ids: Ids | Tensor) -> tuple[int, int]:
    if isinstance(ids, Tensor):
        if ids.device.type != "cpu":
            least, most = torch.stack(torch.aminmax(ids)).tolist()
            return least, most
        ids = ids.numpy(force=True)  # whose extrema take half of the time
    return int(ids.min()), int(ids.max())
