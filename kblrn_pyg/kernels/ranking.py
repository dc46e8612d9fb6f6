"""The number of candidates that score higher than, or the same as, true answers."""

from typing import NamedTuple

import numpy as np
from numba import njit

from kblrn_pyg.kernels.threads import no_scratch, run_slices


class Standings(NamedTuple):
    r"""The rank of each answer among the candidates of its query.

    Args:
        better: The number of candidates with a higher score.
        ties: The number of other candidates with the same score.
        num_candidates: The number of candidates, including the answer itself.
    """

    better: np.ndarray
    ties: np.ndarray
    num_candidates: np.ndarray

    @property
    def rank(self) -> np.ndarray:
        """The realistic ranks: 1, plus the number of better candidates, plus half
        of the ties."""
        return 1 + self.better + self.ties / 2


def rank_answers(
    scores: np.ndarray,
    row: np.ndarray,
    answer: np.ndarray,
    known_ptr: np.ndarray,
    known: np.ndarray,
    num_threads: int | None = None,
    first: int = 0,
    own: np.ndarray | None = None,
) -> Standings:
    """Compares answers with all entities that are not known to be answers, too.

    ``scores`` has a row for each query, without NaN, and ``row`` is the query of
    each ``answer``. The known answers of a query begin at ``known_ptr`` and are
    distinct; an answer may be among them, and never removes itself. If the scores
    are those of some entities only, from ``first`` on, ``own`` are the scores of the
    answers, and what is counted are these entities.
    """
    if own is None:
        own = scores[row, answer]
    of_answers = own
    out = Standings(*(np.empty(len(row), np.int64) for _ in Standings._fields))

    def count(part: slice, _: None) -> None:
        columns = (column[part] for column in out)
        asked = row[part], answer[part], of_answers[part]
        _count((scores, first), *asked, known_ptr, known, tuple(columns))

    run_slices(count, len(row), no_scratch, num_threads)
    return out


@njit(cache=True, nogil=True)
def _count(scored, row, answer, of_answers, known_ptr, known, out):
    scores, first = scored
    better, ties, num_candidates = out
    num_entities = scores.shape[1]
    for i in range(len(row)):
        of_query = scores[row[i]]
        own = of_answers[i]
        # Counting all and taking the known ones back keeps this loop free of
        # branches, which makes it several times faster.
        above, equal = 0, 0
        for j in range(num_entities):
            above += of_query[j] > own
            equal += of_query[j] == own
        removed = 0
        for k in range(known_ptr[row[i]], known_ptr[row[i] + 1]):
            j = known[k] - first
            if known[k] != answer[i] and 0 <= j < num_entities:
                above -= of_query[j] > own
                equal -= of_query[j] == own
                removed += 1
        better[i] = above
        # The answer ties with itself.
        ties[i] = equal - (0 <= answer[i] - first < num_entities)
        num_candidates[i] = num_entities - removed
