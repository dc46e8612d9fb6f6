"""Samples neighbours of entities, the same ones for the same seed."""

import numpy as np
from numba import njit

from kblrn_pyg.kernels.dropping import splitmix


@njit(cache=True, nogil=True)
def sample_places(start, entities, limit, seed, offset, place):
    """Writes the places of edges of each entity to ``place``, from its offset on.

    The edges of entity ``u`` are at the places from ``start[u]`` to ``start[u + 1]``:
    all of them, or, if there are more than ``limit``, that number of distinct ones
    by Floyd's method. What an entity gets does not depend on the others.
    """
    for i in range(len(entities)):
        entity = entities[i]
        begin, number = start[entity], start[entity + 1] - start[entity]
        drawn = place[offset[i] : offset[i] + min(number, limit)]
        if number <= limit:
            for k in range(number):
                drawn[k] = begin + k
            continue
        own = splitmix(seed, entity)
        for k in range(limit):
            last = number - limit + k
            one = begin + np.int64(splitmix(own, k) % np.uint64(last + 1))
            for other in drawn[:k]:
                if other == one:
                    one = begin + last
                    break
            drawn[k] = one


@njit(cache=True, nogil=True)
def keep_facts(facts, seed, threshold, out):
    """Writes whether each fact is kept: its random number is not below a threshold."""
    for i in range(len(facts)):
        out[i] = splitmix(seed, facts[i]) >= threshold
