"""Stand-ins for experts that a model lacks, so that kernels have one form."""

from functools import lru_cache

import numpy as np
import torch

from kblrn_pyg.data import make_kb
from kblrn_pyg.kernels.scoring import Differences
from kblrn_pyg.rules import PathFeatures, RuleSet


@lru_cache(maxsize=8)
def no_paths(num_nodes: int, num_relations: int) -> PathFeatures:
    """Returns path features without facts and rules."""
    relations = [str(r) for r in range(num_relations)]
    empty = torch.empty(0, dtype=torch.long)
    data = make_kb([""] * num_nodes, relations, (empty, empty, empty))
    return PathFeatures(data, RuleSet.build(relations, head=[], steps=[]))


@lru_cache(maxsize=8)
def no_differences(num_nodes: int, num_relations: int) -> Differences:
    """Returns numerical features of no relation."""
    return Differences(
        np.zeros(num_relations + 1, np.int64),
        np.empty(0, np.int64),
        np.empty((0, num_nodes)),
        np.zeros(1, np.int64),
        np.empty(0, np.int64),
        False,
    )
