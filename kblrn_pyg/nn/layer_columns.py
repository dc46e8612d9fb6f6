"""The numbers that layers compare, in the form that kernels need."""

import numpy as np

from kblrn_pyg.data.layers import LayerFeatures
from kblrn_pyg.kernels.layers import DIFFERENCE, DISTANCE, Layers


def kernel_layers(features: LayerFeatures, x: np.ndarray) -> Layers:
    r"""Returns what kernels need to know about layers.

    Args:
        features (LayerFeatures): The layers.
        x (numpy.ndarray): The numbers of entities, a column for each attribute.
    """
    rows: list[np.ndarray] = []
    columns, kinds = [], []
    for attribute in features.attributes:
        is_distance = attribute.kind == "haversine"
        first = [len(rows), len(rows)]
        rows += list(attribute.side(x, is_tail=False))
        if not is_distance and attribute.a != attribute.b:
            first[1] = len(rows)
            rows += list(attribute.side(x, is_tail=True))
        columns.append(first)
        kinds.append(DISTANCE if is_distance else DIFFERENCE)
    pair = features.pair.numpy()
    head, tail = np.array(columns, dtype=np.int64).reshape(-1, 2)[pair].T
    value = np.stack(rows) if rows else np.empty((0, len(x)))
    layers = Layers(
        features.ptr.numpy(),
        np.array(kinds, dtype=np.int64)[pair],
        np.ascontiguousarray(head),
        np.ascontiguousarray(tail),
        features.knot_ptr.numpy(),
        features.knot.numpy(),
        value,
        *(np.empty(0, dtype) for dtype in (np.int64, np.int64, np.float64)),
    )
    ptr, known, numbers = known_in(value, layers)
    return layers._replace(known_ptr=ptr, known=known, known_value=numbers)


def known_in(
    value: np.ndarray, layers: Layers
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Returns which columns of scores have a number, and these numbers.

    Those of differences are by ascending number; those of the three axes of
    distances stay side by side.

    Args:
        value (numpy.ndarray): A row of numbers for each compared column.
        layers (Layers): The layers, which tell the kinds of columns.
    """
    first = np.concatenate([layers.head, layers.tail])
    of_distance = np.unique(first[np.tile(layers.kind == DISTANCE, 2)])
    axes = {int(column) + axis for column in of_distance for axis in range(3)}
    known, numbers = [np.empty(0, np.int64)], [np.empty(0)]
    for i, row in enumerate(value):
        having = np.flatnonzero(~np.isnan(row))
        if i not in axes:
            having = having[np.argsort(row[having], kind="stable")]
        known.append(having)
        numbers.append(row[having])
    ptr = np.cumsum([len(one) for one in known])
    return ptr, np.concatenate(known), np.concatenate(numbers)
