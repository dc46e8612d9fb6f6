"""How far rules with constants and rules with paths are believed."""

import numpy as np

from kblrn_pyg.kernels.constant_rules import (
    ConstantRules,
    Features,
    kinds_of,
    turn_round,
)
from kblrn_pyg.kernels.evidence import Choices, Evidence
from kblrn_pyg.rules.constant_counts import Thresholds, count_all, say_too_many
from kblrn_pyg.rules.ruleset import Ids, RuleSet


def count_with_support(
    features: Features, counted: np.ndarray, least: int, max_rules: int
) -> tuple[int, tuple[Ids, ...]]:
    r"""Finds all rules with constants that have a least support, which is raised if
    they are too many.

    Args:
        features (Features): The features of entities.
        counted (numpy.ndarray): Which entities are examples.
        least (int): The least support.
        max_rules (int): The largest number of rules.

    Returns:
        The least support in the end, and the rules: where those of each feature
        begin, what they predict, their supports and their bodies.
    """
    size = np.diff(features.holder_ptr)
    while True:
        rows = np.flatnonzero(size >= least)
        found = count_all(features, counted, rows, Thresholds(least), max_rules)
        if found is not None:
            break
        say_too_many(max_rules, least)
        least += 1
    number = np.zeros(len(size), np.int64)
    number[rows] = found.number
    return least, (np.append(0, np.cumsum(number)), *found[1:])


def believe(
    features: Features,
    counted: np.ndarray,
    mined: tuple[Ids, ...],
    paths: RuleSet,
    choices: Choices,
) -> Evidence:
    r"""Says how far rules are believed.

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
    rules = ConstantRules(
        ptr, target, support, body, strength, back_ptr, source, back, counted
    )
    size = np.diff(features.holder_ptr)
    whole = size[features.code_ptr[-1] + features.code] + choices.shrinkage
    path_body = np.maximum(paths.pca_body_size, 1)
    return Evidence(
        features,
        rules,
        (size / whole).astype(np.float32),
        paths.support,
        path_body,
        _strength(paths.support, path_body, choices),
        choices,
    )


def _strength(support: Ids, body: Ids, choices: Choices) -> np.ndarray:
    confidence = support / (body + choices.shrinkage)
    return np.log1p(confidence / choices.floor).astype(np.float32)
