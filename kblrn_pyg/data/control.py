"""Altered numbers, to test whether a model uses the true ones."""

import copy

import torch
from torch_geometric.data import HeteroData

# What the numbers of a control are.
CONTROLS = {
    "true": "the true numbers",
    "permuted": "permuted among the entities that have them",
    "random": "uniform random numbers in their place",
    "known": "only whether a number is known",
}


def control_numbers(data: HeteroData, control: str, seed: int = 0) -> HeteroData:
    r"""Returns the same knowledge base with altered numbers; unknown numbers stay
    unknown.

    Args:
        data (HeteroData): The knowledge base.
        control (str): :obj:`"true"` changes nothing, :obj:`"permuted"` permutes
            each attribute among the entities that have it, :obj:`"random"` draws
            uniformly between its minimum and its maximum, :obj:`"known"` makes all
            numbers equal.
        seed (int, optional): The seed. (default: :obj:`0`)
    """
    if control not in CONTROLS:
        raise ValueError(
            f"'control' must be one of {', '.join(CONTROLS)} (got {control!r})"
        )
    generator = torch.Generator().manual_seed(seed)
    x = data["entity"].x.detach().clone()
    for column in x.t():
        known = (~column.isnan()).nonzero().flatten()
        if control == "true" or not len(known):
            continue
        values = column[known]
        if control == "permuted":
            values = values[torch.randperm(len(known), generator=generator)]
        elif control == "random":
            drawn = torch.rand(len(known), generator=generator, dtype=x.dtype)
            values = values.min() + drawn * (values.max() - values.min())
        else:
            values = torch.ones_like(values)
        column[known] = values
    data = copy.copy(data)
    data["entity"].x = x
    return data
