"""The bodies that were found to hold, for the pairs or the queries of a batch."""

from typing import NamedTuple, TypeVar

import numpy as np

from kblrn_pyg.rules.columns import Ids


class PairFeatures(NamedTuple):
    r"""The rules that hold for each pair of a batch.

    Args:
        ptr (numpy.ndarray): Where the rules of each pair begin.
        rule (numpy.ndarray): The rules, by their positions in the rule set.
    """

    ptr: Ids
    rule: Ids


class QueryFeatures(NamedTuple):
    r"""The candidates that each query of a batch reaches, and by which rules.

    Args:
        ptr (numpy.ndarray): Where the entries of each query begin.
        candidate (numpy.ndarray): The entity of each entry.
        rule (numpy.ndarray): A rule that holds for it; entries of a query are
            ordered by rule.
    """

    ptr: Ids
    candidate: Ids
    rule: Ids


Found = TypeVar("Found", PairFeatures, QueryFeatures)


def join_found(parts: list[Found]) -> Found:
    """Joins what was found for parts of a batch."""
    if len(parts) == 1:
        return parts[0]
    counts = np.concatenate([np.diff(part.ptr) for part in parts])
    columns = zip(*(part[1:] for part in parts))
    ptr = np.append(0, np.cumsum(counts))
    return parts[0].__class__(ptr, *map(np.concatenate, columns))
