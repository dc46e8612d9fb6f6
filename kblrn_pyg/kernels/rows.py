"""Updates of those rows of a table that a batch uses."""

import math

import numpy as np
from numba import njit


# Sums may be taken in any order, by several entries at once.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def adagrad_rows(table, sums, rows, order, grads, part, rates):
    """Updates rows with Adagrad, which keeps one number per row.

    ``grads[order[i]]`` is a gradient of row ``rows[i]``. The rows are sorted, so
    that all gradients of one are added up first; ``part`` states which of them to
    update.
    """
    lr, eps = rates
    i, end = part
    width = table.shape[1]
    total = np.empty(width, grads.dtype)
    while i < end:
        row = rows[i]
        total[:] = grads[order[i]]
        i += 1
        while i < end and rows[i] == row:
            more = grads[order[i]]
            for j in range(width):
                total[j] += more[j]
            i += 1
        squares = total[0] * total[0]
        for j in range(1, width):
            squares += total[j] * total[j]
        sums[row, 0] += squares / width
        step = grads.dtype.type(lr / (math.sqrt(sums[row, 0]) + eps))
        for j in range(width):
            table[row, j] -= step * total[j]
