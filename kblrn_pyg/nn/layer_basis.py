"""Hat functions from coarse to fine, whose sums are layers."""

import numpy as np
import torch
from torch import Tensor


def coarse_to_fine(sizes: list[int]) -> tuple[Tensor, Tensor, int]:
    r"""Returns the matrix that turns the weights of layers into values at knots.

    A layer is the sum of a constant and of hat functions of 2, 3, 5, 9, … knots,
    the last of which has a hat for every knot. Coarse ones are learned from
    many triples, so that fine ones only have to learn what is left: where
    triples are rare, a layer is smooth.

    Args:
        sizes (list): The number of knots of each layer.

    Returns:
        The rows (knots) and columns (weights) of the entries, the entries, and
        the number of weights.
    """
    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    values = [np.empty(0)]
    num_knots = num_weights = 0
    matrices = {size: _hats(size) for size in set(sizes)}
    for size in sizes:
        matrix = matrices[size]
        row, column = np.nonzero(matrix)
        rows.append(row + num_knots)
        columns.append(column + num_weights)
        values.append(matrix[row, column])
        num_knots, num_weights = num_knots + size, num_weights + matrix.shape[1]
    index = np.stack([np.concatenate(rows), np.concatenate(columns)])
    return (
        torch.from_numpy(index),
        torch.from_numpy(np.concatenate(values)),
        num_weights,
    )


def _hats(size: int) -> np.ndarray:
    """Returns the values of all hats at the knots, a column for each of them."""
    place = np.linspace(0, 1, size)[:, None]
    levels, number = [np.ones((size, 1))], 1
    while number < size - 1:
        middle = np.linspace(0, 1, number + 1)
        levels.append(np.clip(1 - number * np.abs(place - middle), 0, None))
        number *= 2
    levels.append(np.eye(size))
    return np.concatenate(levels, axis=1)
