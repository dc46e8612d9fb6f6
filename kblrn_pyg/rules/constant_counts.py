"""Counts rules with constants: all of them, or given ones."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from kblrn_pyg.kernels.constant_rules import count_rules, mine_features, stable_order
from kblrn_pyg.kernels.entity_features import Features, count_holders, find_features
from kblrn_pyg.kernels.threads import default_threads, run_all
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.rules.columns import Ids
from kblrn_pyg.rules.constant_columns import NO_BODY
from kblrn_pyg.rules.constants import ConstantRuleSet

logger = logging.getLogger(__name__)

Found = TypeVar("Found")

# Each thread is given features many times, so that all end together.
_PARTS_A_THREAD = 32


class Thresholds(NamedTuple):
    r"""The thresholds of rules.

    Args:
        support (int): The minimum support.
        confidence (float, optional): The minimum standard confidence.
            (default: :obj:`0.0`)
        pca_confidence (float, optional): The minimum PCA confidence.
            (default: :obj:`0.0`)
    """

    support: int
    confidence: float = 0.0
    pca_confidence: float = 0.0

    def keep(self, support: Ids, body: Ids, pca_body: Ids) -> np.ndarray:
        """Returns which rules reach them; bodies are not empty."""
        return (
            (support >= self.support)
            & (support / body >= self.confidence)
            & (support / pca_body >= self.pca_confidence)
        )


class CountedRules(NamedTuple):
    r"""Rules by the features that are their bodies.

    Args:
        number (numpy.ndarray): The number of rules of each feature.
        target (numpy.ndarray): The feature that each rule predicts.
        support (numpy.ndarray): The entities that have both.
        pca_body (numpy.ndarray): The entities that have the feature, and that of
            the target with any entity.
    """

    number: Ids
    target: np.ndarray
    support: np.ndarray
    pca_body: np.ndarray


_NO_RULES = CountedRules(np.empty(0, np.int64), *(np.empty(0, np.int32),) * 3)


def examples(features: Features, max_degree: int) -> np.ndarray:
    """Returns which entities are examples of rules, and logs how many are not."""
    counted = np.diff(features.ptr) <= max_degree
    if not counted.all():
        number = np.count_nonzero(~counted)
        logger.info(
            "%s with more than %s features %s not used as examples of rules",
            "1 entity" if number == 1 else f"{number:,} entities",
            f"{max_degree:,}",
            "is" if number == 1 else "are",
        )
    return counted


def with_enough_support(
    find: Callable[[int], Found | None], least: int, max_rules: int
) -> tuple[int, Found]:
    r"""Finds rules, with more support if they are too many otherwise, which is said.

    Args:
        find (callable): Returns the rules of a least support, or nothing if there are
            too many.
        least (int): The least support that is asked for.
        max_rules (int): The largest number of rules.

    Returns:
        The least support that leaves no more than these, and the rules.
    """
    found = find(least)
    if found is not None:
        return least, found
    too_little, enough = least, 2 * least
    while (found := find(enough)) is None:
        too_little, enough = enough, 2 * enough
    while enough - too_little > 1:
        found = None  # two of them may be too much for the memory
        middle = (too_little + enough) // 2
        found = find(middle)
        if found is None:
            too_little = middle
        else:
            enough = middle
    if found is None:
        found = find(enough)
    assert found is not None
    logger.info(
        "more than %s rules with constants have a support of %s: only those of at "
        "least %s are kept",
        f"{max_rules:,}",
        f"{least:,}",
        f"{enough:,}",
    )
    return enough, found


def count_all(
    features: Features,
    counted: np.ndarray,
    rows: Ids,
    thresholds: Thresholds,
    max_rules: int,
    first: CountedRules | None = None,
    progress: bool = True,
) -> CountedRules | None:
    r"""Finds all rules that reach the thresholds, or returns :obj:`None` if there
    are too many.

    Args:
        features (Features): The features of entities.
        counted (numpy.ndarray): Whether each entity is an example of rules.
        rows (numpy.ndarray): The features that are bodies.
        thresholds (Thresholds): The thresholds of rules.
        max_rules (int): The maximum number of rules.
        first (CountedRules, optional): Rules that come before all others.
            (default: :obj:`None`)
        progress (bool, optional): Whether to show a progress bar if it takes some
            time. (default: :obj:`True`)
    """
    parts = _parts(features, counted, rows)
    is_simple = not thresholds.confidence and not thresholds.pca_confidence
    size = None if is_simple else count_holders(features, counted)

    def mine(part: slice, count: np.ndarray) -> CountedRules:
        given = features, rows[part], counted, thresholds.support, count
        found = CountedRules(*mine_features(*given))
        if size is None:
            return found
        row = np.repeat(np.arange(part.stop - part.start), found.number)
        body = size[rows[part]][row]
        keep = thresholds.keep(found.support, body, found.pca_body)
        number = np.bincount(row[keep], minlength=len(found.number))
        return CountedRules(number, *(column[keep] for column in found[1:]))

    found, total = {}, 0 if first is None else len(first.target)
    if total > max_rules:
        return None
    for i, rules in _run(mine, parts, features, progress):
        found[i], total = rules, total + len(rules.target)
        if total > max_rules:
            return None
    several = [first or _NO_RULES, *(found.pop(i) for i in range(len(parts)))]
    columns = [list(column) for column in zip(*several)]
    del several
    return CountedRules(*map(_joined, columns))


def count_given(
    features: Features, counted: np.ndarray, rules: ConstantRuleSet, least: int
) -> tuple[Ids, np.ndarray, np.ndarray, np.ndarray]:
    r"""Counts given rules again, and logs how many are left out.

    Args:
        features (Features): The features of entities.
        counted (numpy.ndarray): Whether each entity is an example of rules.
        rules (ConstantRuleSet): The rules; those without a body are not pairs of
            features, and are left out.
        least (int): The minimum support.

    Returns:
        Where the rules of each feature begin, their targets in order, supports and
        PCA bodies.
    """
    has_body = rules.body_code != NO_BODY
    body = rules.body_code[has_body], rules.body_entity[has_body]
    head = rules.head_code[has_body], rules.head_entity[has_body]
    source, target = (find_features(features, *side) for side in (body, head))
    exists = (source >= 0) & (target >= 0)
    source, target = source[exists], target[exists]
    order = stable_order(target, len(features.code))
    order = order[stable_order(source[order], len(features.code))]
    source, target = source[order], target[order].astype(np.int32)
    rows, first = np.unique(source, return_index=True)
    ptr = np.append(first, len(source))

    def count(part: slice, scratch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        begin, end = ptr[part.start], ptr[part.stop]
        own = rows[part], ptr[part.start : part.stop + 1] - begin, target[begin:end]
        return count_rules(features, own, counted, scratch)

    support, pca_body = np.empty((2, len(source)), np.int32)
    parts = _parts(features, counted, rows)
    for i, found in _run(count, parts, features):
        place = slice(ptr[parts[i].start], ptr[parts[i].stop])
        support[place], pca_body[place] = found
    keep = support >= least
    num_left_out = int(has_body.sum()) - int(keep.sum())
    if num_left_out:
        logger.info(
            "%s of %s given rules with constants have a support below %s here and are "
            "left out",
            f"{num_left_out:,}",
            f"{int(has_body.sum()):,}",
            least,
        )
    number = np.bincount(source[keep], minlength=len(features.code))
    ptr = np.append(0, np.cumsum(number))
    return ptr, target[keep], support[keep], pca_body[keep]


def _parts(features: Features, counted: np.ndarray, rows: Ids) -> list[slice]:
    """Splits features into chunks of about the same work."""
    degree = np.where(counted, np.diff(features.ptr), 0)
    work = np.add.reduceat(np.append(degree[features.holder], 0), features.holder_ptr)
    work = np.where(np.diff(features.holder_ptr) > 0, work[:-1], 0)
    done = np.append(0, np.cumsum(work[rows]))
    bounds = np.linspace(0, done[-1], _PARTS_A_THREAD * default_threads() + 1)
    bounds = np.unique(np.append(np.searchsorted(done, bounds), [0, len(rows)]))
    return [slice(a, b) for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist())]


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Joins the parts of a column, which are then free: there may be many rules."""
    column = np.concatenate(parts)
    parts.clear()
    return column


def _run(
    function: Any, parts: list[slice], features: Features, progress: bool = True
) -> Iterator[tuple[int, Any]]:
    """Calls a function for parts of features, by threads, in any order."""

    def work(i: int, count: np.ndarray) -> tuple[int, Any]:
        return i, function(parts[i], count)

    new_count = partial(np.zeros, len(features.code), np.int32)
    return iter(
        ProgressBar(
            run_all(work, range(len(parts)), new_count),
            total=len(parts),
            desc="counting",
            unit="part",
            delay=3,
            leave=False,
            disable=None if progress else True,
        )
    )
