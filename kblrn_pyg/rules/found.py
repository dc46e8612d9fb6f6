"""The bodies that hold, and the evidence found, for the pairs or queries of a batch."""

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


class QueryEvidence(NamedTuple):
    r"""The entities that there is evidence for, for each query of a batch.

    Args:
        ptr (numpy.ndarray): Where the entries of each query begin.
        column (numpy.ndarray): The entity of each entry, or its column.
        value (numpy.ndarray): Three numbers for each entry: the strength of the
            most confident rule for the head, of that for the tail, and of the most
            confident path.
    """

    ptr: Ids
    column: Ids
    value: np.ndarray


class FoundRule(NamedTuple):
    r"""The most confident rule that holds.

    Args:
        code (int): The code of the step that entities have in common; the code of
            an attribute is its id plus the number of codes of steps.
        entity (int): The entity that it leads to, -1 for any; or the interval of a
            number, by its position among those of the attribute.
        support (int): The number of entities for which the prediction is true.
        body (int): The number of entities that have the feature.
        confidence (float): The shrunk confidence of the rule.
    """

    code: int
    entity: int
    support: int
    body: int
    confidence: float
