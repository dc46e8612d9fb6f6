"""Dropout with random numbers that are generated on the fly."""

import numpy as np
from numba import njit

# One random number of 64 bits decides four entries, by 16 bits each.
_PER_DRAW = 4
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_BITS = np.uint64(0xFFFF)


@njit(cache=True, nogil=True)
def splitmix(seed, number):
    """The numbers of Steele, Lea and Flood's SplitMix64, in any order."""
    z = seed + (np.uint64(number) + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def drop(values, seed, threshold, factors, out):
    """Writes values to ``out``, times the first factor where dropped, else the second.

    A branch for each entry would be mispredicted too often. ``threshold`` is the
    fraction to drop in steps of 2 ** -16, and ``seed`` is a 64-bit number: the same
    seed drops the same entries.
    """
    limit = np.uint64(threshold)
    size = len(values)
    for begin in range(0, size, _PER_DRAW):
        bits = splitmix(seed, begin // _PER_DRAW)
        for i in range(begin, min(begin + _PER_DRAW, size)):
            out[i] = values[i] * factors[int(bits & _BITS >= limit)]
            bits >>= np.uint64(16)
