"""Checks of ids, as kernels read wherever ids lead them."""

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

if TYPE_CHECKING:
    from kblrn_pyg.data.queries import Queries

Ids = NDArray[np.int64]


def as_ids(values: ArrayLike, kind: str) -> Ids:
    r"""Returns ids as kernels need them, and refuses what is not one column of them.

    Args:
        values (array): The ids.
        kind (str): What errors call them.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"ids of {kind} must have one dimension (got {array.ndim})")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"ids of {kind} must be integers (got {array.dtype})")
    return np.ascontiguousarray(array, np.int64)


def check_id(given: Any, kind: str, number: int) -> int:
    r"""Returns one id, and refuses what is none; -1 is not the last one.

    Args:
        given (int): The id.
        kind (str): What errors call it.
        number (int): The number of ids that exist.
    """
    try:
        found = operator.index(given)  # integers of NumPy are none of Python's
    except TypeError:
        raise ValueError(
            f"the id of the {kind} must be an integer (got {given!r})"
        ) from None
    if not 0 <= found < number:
        raise ValueError(
            f"the id of the {kind} must lie in 0 to {number - 1} (got {found})"
        )
    return found


def check_ids(
    columns: Mapping[str, tuple[Ids | Tensor, int]], num_dims: int = 1
) -> None:
    r"""Refuses ids that do not exist, and columns of different lengths.

    Args:
        columns (dict): For each kind of id, the ids, and the number of ids that
            exist.
        num_dims (int, optional): The number of dimensions that they must have.
            (default: :obj:`1`)
    """
    for kind, (ids, _) in columns.items():
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
        if 0 in ids.shape:
            continue
        least, most = _extrema(ids)
        if least < 0 or most >= number:
            raise ValueError(
                f"ids of {kind} must lie in 0 to {number - 1} (got {least} to {most})"
            )


def check_distinct(ids: Ids | Tensor, kind: str) -> None:
    r"""Refuses ids that repeat.

    Args:
        ids (array): The ids.
        kind (str): What errors call them.
    """
    array = ids.numpy(force=True) if isinstance(ids, Tensor) else ids
    if (array[1:] > array[:-1]).all():  # as most of them are
        return
    values, counts = np.unique(array, return_counts=True)
    if len(values) < len(array):
        again = int(values[counts.argmax()])
        raise ValueError(f"ids of {kind} must not repeat (got {again} twice)")


def check_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    r"""Refuses an array of another shape, which kernels would leave or fill in part.

    Args:
        name (str): What errors call it.
        array (array): The array.
        shape (tuple): The shape that it must have.
    """
    if tuple(array.shape) != shape:
        raise ValueError(
            f"'{name}' must have the shape {list(shape)} (got {list(array.shape)})"
        )


@dataclass(frozen=True)
class IdRanges:
    r"""The ids that a model knows; the methods refuse all others.

    Args:
        num_nodes (int): The number of entities.
        num_relations (int): The number of relations.
        device (torch.device, optional): Where indices must be.
            (default: :obj:`None`, anywhere)
    """

    num_nodes: int
    num_relations: int
    device: torch.device | None = None

    def check_triples(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> None:
        """Refuses triples of other ids, or columns that are not equally long."""
        self._check("head_index", head_index, self.num_nodes)
        self._check("rel_type", rel_type, self.num_relations)
        self._check("tail_index", tail_index, self.num_nodes)
        sizes = {"rel_type": len(rel_type), "tail_index": len(tail_index)}
        _check_lengths("head_index", len(head_index), sizes)

    def check_queries(self, queries: "Queries", **answers: Tensor) -> None:
        r"""Refuses queries of other ids.

        Args:
            queries (Queries): The queries.
            **answers (optional): By their name, an answer to each query, or a
                row of them.
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
        """Refuses columns for other entities, or for one entity twice."""
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
