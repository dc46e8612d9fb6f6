"""Factors of experts and relations, as stored in recipes."""

from collections import Counter
from collections.abc import Mapping

import torch
from torch import Tensor

from kblrn_pyg.nn import KBLRN
from kblrn_pyg.recipes.recipe import OTHERS, Factor


def as_plain(model: KBLRN, factors: Mapping[str, Tensor]) -> dict[str, Factor]:
    r"""Returns the factors of experts as plain values.

    Args:
        model (KBLRN): The model.
        factors (dict): The factors of each expert by name, one for each relation.
    """
    return {name: _plain(model, values.tolist()) for name, values in factors.items()}


def as_tensors(model: KBLRN, factors: Mapping[str, Factor]) -> dict[str, Tensor]:
    r"""Returns the factors of experts, one for each relation.

    Args:
        model (KBLRN): The model.
        factors (dict): The factor of each expert by name, or factors by the name of
            the relation.
    """
    return {name: _tensor(model, value) for name, value in factors.items()}


def _plain(model: KBLRN, values: list[float]) -> Factor:
    ((usual, number),) = Counter(values).most_common(1)
    if number == len(values):
        return usual
    relations = model.vocabulary.relations
    others = {relations[i]: one for i, one in enumerate(values) if one != usual}
    return {OTHERS: usual} | others


def _tensor(model: KBLRN, value: Factor) -> Tensor:
    if not isinstance(value, Mapping):
        return torch.full((model.num_relations,), float(value))
    found = torch.full((model.num_relations,), float(value.get(OTHERS, 1.0)))
    place = {name: i for i, name in enumerate(_relations(model))}
    for name, factor in value.items():
        if name == OTHERS:
            continue
        if name not in place:
            raise ValueError(
                f"'factors' must name relations of the model (got {name!r})"
            )
        found[place[name]] = factor
    return found


def _relations(model: KBLRN) -> list[str]:
    relations = model.vocabulary.relations
    return [relations[i] for i in range(model.num_relations)]
