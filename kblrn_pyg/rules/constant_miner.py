"""Mines the rules with constants of a knowledge base."""

from typing import Any

import numpy as np
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import Vocabulary, as_kb, flat_triples
from kblrn_pyg.kernels.adjacency import build_adjacency
from kblrn_pyg.kernels.constant_rules import stable_order
from kblrn_pyg.kernels.entity_features import Features, count_holders
from kblrn_pyg.rules.constant_columns import ANY, NO_BODY
from kblrn_pyg.rules.constant_counts import (
    CountedRules,
    Thresholds,
    count_all,
    examples,
    with_enough_support,
)
from kblrn_pyg.rules.constants import ConstantRuleSet
from kblrn_pyg.rules.entity_features import entity_features, find_intervals
from kblrn_pyg.rules.settings import MAX_CONSTANT_RULES, MAX_DEGREE, ConstantSettings


def mine_constants(
    data: HeteroData | Data,
    min_support: int = 2,
    min_confidence: float = 0.0,
    min_pca_confidence: float = 0.0,
    max_rules_per_relation: int | None = None,
    max_rules: int = MAX_CONSTANT_RULES,
    max_degree: int = MAX_DEGREE,
    bins: int = 0,
    progress: bool = False,
) -> ConstantRuleSet:
    r"""Mines the rules with constants of a knowledge base from its known triples.

    All rules :math:`r(x, c) \Leftarrow a(x, d)`, :math:`r(x, c) \Leftarrow a(x,
    \cdot)` and :math:`r(x, c) \Leftarrow` are counted exactly, with :math:`x` on
    either side of either relation:

    * *support*: the entities :math:`x` for which body and head hold;
    * *standard confidence*: support divided by the entities for which the body holds;
    * *PCA confidence*: the same, but only entities count with any :math:`r(x, \cdot)`.

    :math:`r(x, c)` and :math:`r(x, \cdot)` are not used as bodies of
    :math:`r(x, c)`. With :obj:`bins`, there are additional bodies: a number of
    :math:`x` is known, or it lies in an interval; see
    :meth:`~kblrn_pyg.data.quantile_intervals`.

    Args:
        data (HeteroData or Data): The knowledge base, or what :meth:`as_kb`
            makes one of.
        min_support (int, optional): The minimum support. (default: :obj:`2`)
        min_confidence (float, optional): The minimum standard confidence.
            (default: :obj:`0.0`)
        min_pca_confidence (float, optional): The minimum PCA confidence.
            (default: :obj:`0.0`)
        max_rules_per_relation (int, optional): The maximum number of rules of
            each relation; those with the largest support are kept.
            (default: :obj:`None`, all)
        max_rules (int, optional): The maximum number of rules that reach the
            thresholds; the minimum support is raised until at most this many
            remain, which is logged. (default: :obj:`100_000_000`)
        max_degree (int, optional): Entities with more features than this do not
            count as examples of rules, which is logged, because they have too many
            pairs of features. (default: :obj:`10_000`)
        bins (int, optional): The maximum number of bins of an attribute, a power of
            two. (default: :obj:`0`, no bodies about numbers)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    ConstantSettings(  # which refuses wrong ones
        min_support,
        min_confidence,
        min_pca_confidence,
        max_rules_per_relation,
        max_rules,
        max_degree,
        bins,
    )
    data = as_kb(data)
    names = Vocabulary.of(data)
    head, rel, tail = (index.numpy() for index in flat_triples(data))
    sizes = data["entity"].num_nodes, len(names.relations)
    intervals = find_intervals(data, bins)
    facts = build_adjacency(head, rel, tail, *sizes)
    features = entity_features(data, facts, intervals)
    counted = examples(features, max_degree)
    thresholds = Thresholds(min_support, min_confidence, min_pca_confidence)

    def mine(least: int) -> dict[str, Any] | None:
        given = features, counted, thresholds._replace(support=least)
        return _mine(*given, max_rules, progress)

    _, found = with_enough_support(mine, min_support, max_rules)
    both = list(names.relations.identifiers), list(names.entities.identifiers)
    rules = ConstantRuleSet(*both, **found, intervals=intervals)
    return rules.filter(max_rules_per_relation=max_rules_per_relation)


def _mine(
    features: Features,
    counted: np.ndarray,
    thresholds: Thresholds,
    max_rules: int,
    progress: bool,
) -> dict[str, Any] | None:
    """Returns all rules, ordered by their columns, or nothing if there are too many."""
    size = count_holders(features, counted)
    rank = _rank(features)
    by_rank = np.empty(len(rank), np.int64)
    by_rank[rank] = np.arange(len(rank))
    usual = _usual(features, size, int(counted.sum()), thresholds)
    # Bodies in order: then rules only remain to be ordered by their heads.
    rows = by_rank[size[by_rank] >= thresholds.support]
    given = features, counted, rows, thresholds, max_rules, usual, progress
    found = count_all(*given)
    if found is None:
        return None
    # The empty body comes behind all features here, and before them in the order.
    bodies = np.append(len(size), rows).astype(np.int32)
    source = np.repeat(bodies, found.number)
    _, target, support, pca_body = found
    del found  # and all else as soon as possible: there may be many rules
    order = stable_order(rank[target], len(rank))
    columns = {"support": support[order], "pca_body_size": pca_body[order]}
    del support, pca_body
    code = np.append(features.code, NO_BODY).astype(np.int32)
    entity = np.append(features.entity, ANY).astype(np.int32)
    size = np.append(size, np.int32(counted.sum()))
    target = target[order]
    columns |= {"head_code": code[target], "head_entity": entity[target]}
    del target
    source = source[order]
    columns |= {"body_code": code[source], "body_entity": entity[source]}
    return columns | {"body_size": size[source]}


def _usual(
    features: Features, size: np.ndarray, num_counted: int, thresholds: Thresholds
) -> CountedRules:
    """Returns the rules without a body."""
    num_groups = features.code_ptr[-1]
    target = np.flatnonzero(size[:num_groups] >= max(thresholds.support, 1))
    support, pca_body = size[target], size[num_groups + features.code[target]]
    keep = thresholds.keep(support, np.full(len(target), num_counted), pca_body)
    columns = (column[keep].astype(np.int32) for column in (target, support, pca_body))
    return CountedRules(np.array([keep.sum()]), *columns)


def _rank(features: Features) -> np.ndarray:
    """Returns the place of each feature in the order of codes and entities."""
    num_groups, size = int(features.code_ptr[-1]), np.diff(features.code_ptr)
    num_intervals = np.diff(features.number_ptr)
    codes = np.arange(len(size))
    # Features are grouped by the codes of the steps back; 'any' comes first.
    sizes = np.append(size[codes ^ 1], num_intervals)
    begin = np.append(0, np.cumsum(sizes + 1))[:-1]
    within = np.arange(num_groups) - np.repeat(features.code_ptr[:-1], size)
    rank = np.append(begin[features.code[:num_groups]] + 1 + within, begin)
    intervals = slice(num_groups + len(begin), None)
    place = begin[features.code[intervals]] + 1 + features.entity[intervals]
    return np.append(rank, place).astype(np.int32)
