"""Figures of several panels."""

import math

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

_MAX_COLUMNS = 3


def new_panels(number: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    r"""Returns a figure and the axes of its panels, row by row.

    Args:
        number (int): The number of panels.
        width (float): The width of a panel, in inches.
        height (float): The height of a panel, in inches.
    """
    columns = 2 if number == 4 else min(number, _MAX_COLUMNS)
    rows = math.ceil(number / columns)
    size = width * columns, height * rows
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for axis in axes.flat[number:]:
        axis.set_visible(False)
    return figure, list(axes.flat[:number])
