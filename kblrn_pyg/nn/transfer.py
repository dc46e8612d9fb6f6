"""Weights that one model takes over from another."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import Module

from kblrn_pyg.nn.latent import LatentExpert
from kblrn_pyg.nn.numerical import NumericalExpert
from kblrn_pyg.nn.relational import RelationalExpert
from kblrn_pyg.nn.scorers import scorer_name

if TYPE_CHECKING:
    from kblrn_pyg.nn.kblrn import KBLRN


def take_experts(model: "KBLRN", other: "KBLRN") -> None:
    """Copies the weights of the experts that both models have."""
    pairs = {
        name: (getattr(model, name), getattr(other, name))
        for name in ("latent", "relational", "numerical")
    }
    shared = {name: pair for name, pair in pairs.items() if None not in pair}
    if not shared:
        raise ValueError(
            f"'other' must have one of the experts {model.experts} "
            f"(got {other.experts})"
        )
    for name, (mine, theirs) in shared.items():
        if not _means_the_same(mine, theirs):
            raise ValueError(
                f"'other' must be of the same knowledge base and settings (its "
                f"{name} expert is different)"
            )
    for mine, theirs in shared.values():
        mine.load_state_dict(theirs.state_dict())


def _means_the_same(mine: Module, theirs: Any) -> bool:
    """Tells whether the weights of two experts stand for the same things."""
    if _shapes(mine) != _shapes(theirs):
        return False
    if isinstance(mine, RelationalExpert):
        rules, others = mine.features.rules, theirs.features.rules
        columns = ("head", "steps", "parallel")
        return all(
            np.array_equal(getattr(rules, name), getattr(others, name))
            for name in columns
        )
    if isinstance(mine, NumericalExpert):
        same = (torch.equal(mine.ptr, theirs.ptr), mine.activation == theirs.activation)
        return all(same) and torch.equal(mine.attribute, theirs.attribute)
    assert isinstance(mine, LatentExpert)
    return [scorer_name(one) for one in mine.scorers] == [
        scorer_name(one) for one in theirs.scorers
    ]


def _shapes(expert: Module) -> dict[str, torch.Size]:
    return {name: values.shape for name, values in expert.state_dict().items()}
