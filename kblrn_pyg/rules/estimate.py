"""Sizes of bodies that are too large to count, estimated from a sample."""

import numpy as np

from kblrn_pyg.kernels.adjacency import Adjacency
from kblrn_pyg.kernels.body_sizes import (
    Scratch,
    reached_from,
    set_onward,
    steps_from,
)
from kblrn_pyg.kernels.mining import Choices
from kblrn_pyg.rules.columns import Ids

# The standard error of an estimate, as a fraction of it.
STANDARD_ERROR = 0.02

# The number of entities that are drawn before the error is looked at.
_NUM_DRAWN = 1024


class SampledBody:
    r"""A two-hop body whose pairs are counted for some of the entities that its
    paths begin at.

    An entity is sampled with a probability proportional to the number of its walks,
    counted once for each middle, which is known without walking. The quantity to
    average is then the fraction of walks that reach an entity first. It lies
    between 0 and 1, and hubs do not dominate it.

    Args:
        adjacency (Adjacency): The facts that bodies may use.
        body (tuple): The first and the second code.
        choices (Choices): The semantics of bodies.
        scratch (Scratch): Working memory, in use until :meth:`close`.
    """

    def __init__(
        self,
        adjacency: Adjacency,
        body: tuple[int, int],
        choices: Choices,
        scratch: Scratch,
    ) -> None:
        self._adjacency, self._choices, self._scratch = adjacency, choices, scratch
        first, self._second = body
        self._rng = np.random.default_rng(body)
        self._begin = int(adjacency.code_ptr[first])
        self.entity = adjacency.group_entity[
            self._begin : adjacency.code_ptr[first + 1]
        ]
        set_onward(adjacency, self._second, scratch.onward, True)
        self._steps = steps_from(adjacency, first, scratch.onward)
        self._reached = np.full(len(self._steps), -1)

    def close(self) -> None:
        """Restores the working memory."""
        set_onward(self._adjacency, self._second, self._scratch.onward, False)

    def size(self, sources: Ids, max_steps: int) -> int:
        r"""Returns the number of pairs that begin at some of the entities.

        Args:
            sources (numpy.ndarray): Positions in :obj:`entity`.
            max_steps (int): The number of walks up to which they are counted
                exactly.
        """
        ends = np.cumsum(self._steps[sources])
        if len(sources) == 0 or ends[-1] <= max_steps:
            return int(self._count(sources).sum())
        number, total, squares = 0, 0.0, 0.0
        while True:
            walk = self._rng.integers(ends[-1], size=_NUM_DRAWN)
            drawn = sources[np.searchsorted(ends, walk, side="right")]
            fraction = self._count(drawn) / self._steps[drawn]
            number += _NUM_DRAWN
            total += fraction.sum()
            squares += (fraction**2).sum()
            mean = total / number
            variance = (squares / number - mean**2) / number
            if variance <= (STANDARD_ERROR * mean) ** 2:
                return round(mean * int(ends[-1]))

    def _count(self, sources: Ids) -> Ids:
        """Counts what is reached, once for each entity however often it is drawn."""
        new = np.unique(sources[self._reached[sources] < 0])
        groups = self._begin + new
        self._reached[new] = reached_from(
            self._adjacency, groups, self._choices, self._scratch
        )
        return self._reached[sources]
