"""The strengths of rules with constants and of rules with paths."""

import numpy as np

from kblrn_pyg.kernels.constant_rules import (
    ConstantRules,
    answers_of,
    predicted_codes,
    turn_round,
)
from kblrn_pyg.kernels.entity_features import Features, kinds_of
from kblrn_pyg.kernels.evidence import Choices, Evidence
from kblrn_pyg.rules.constant_counts import (
    CountedRules,
    Thresholds,
    count_all,
    with_enough_support,
)
from kblrn_pyg.rules.ruleset import Ids, RuleSet


def count_with_support(
    features: Features, counted: np.ndarray, least: int, max_rules: int
) -> tuple[int, tuple[Ids, ...]]:
    r"""Finds all rules with constants that have a minimum support, which is raised
    if there are too many.

    Args:
        features (Features): The features of entities.
        counted (numpy.ndarray): Which entities are examples.
        least (int): The minimum support.
        max_rules (int): The maximum number of rules.

    Returns:
        The minimum support in the end, and the rules: where those of each feature
        begin, what they predict, their supports and their bodies.
    """
    size = np.diff(features.holder_ptr)

    def count(least: int) -> CountedRules | None:
        rows = np.flatnonzero(size >= least)
        return count_all(features, counted, rows, Thresholds(least), max_rules)

    least, found = with_enough_support(count, least, max_rules)
    number = np.zeros(len(size), np.int64)
    number[size >= least] = found.number
    return least, (np.append(0, np.cumsum(number)), *found[1:])


def believe(
    features: Features,
    counted: np.ndarray,
    mined: tuple[Ids, ...],
    paths: RuleSet,
    choices: Choices,
) -> Evidence:
    r"""Computes the strengths of rules.

    Args:
        features (Features): The features of entities.
        counted (numpy.ndarray): Which entities are examples.
        mined (tuple): The rules with constants; see :meth:`count_with_support`.
        paths (RuleSet): The rules with paths, with their PCA confidences.
        choices (Choices): What counts.
    """
    ptr, target, support, body = mined
    strength = _strength(support, body, choices)
    back_ptr, source, back = turn_round(ptr, target, strength, kinds_of(features))
    code_ptr, back_code, code_begin = predicted_codes(features, ptr, target)
    rules = ConstantRules(
        *(ptr, target, support, body, strength),
        *(back_ptr, source, back, counted),
        *(code_ptr, back_code, code_begin, answers_of(features, target)),
    )
    size = np.diff(features.holder_ptr)
    whole = size[features.code_ptr[-1] + features.code] + choices.shrinkage
    popularity = np.zeros(len(size), np.float32)
    np.divide(size, whole, out=popularity, where=size > 0, casting="same_kind")
    path_body = np.maximum(paths.pca_body_size, 1)
    return Evidence(
        features,
        rules,
        popularity,
        paths.support,
        path_body,
        _strength(paths.support, path_body, choices),
        choices,
    )


def _strength(support: Ids, body: Ids, choices: Choices) -> np.ndarray:
    confidence = support / (body + choices.shrinkage)
    return np.log1p(confidence / choices.floor).astype(np.float32)
