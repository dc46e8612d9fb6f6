"""Queries: an entity and a relation are given, the other entity is missing."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from kblrn_pyg.data.ids import IdRanges, check_id

# The side that a query asks for. In arrays, its place here stands for it.
SIDES = ("head", "tail")


@dataclass(frozen=True)
class Queries:
    r"""Queries :math:`(h, r, ?)` or :math:`(?, r, t)`, all for the same side.

    Args:
        entity (torch.Tensor): The entity that each query gives.
        rel_type (torch.Tensor): The relation of each query.
        side (str): The side that the query asks for, :obj:`"head"` or
            :obj:`"tail"`.
    """

    entity: Tensor
    rel_type: Tensor
    side: str

    def __post_init__(self) -> None:
        check_side(self.side)

    @classmethod
    def of_triples(
        cls, head_index: Tensor, rel_type: Tensor, tail_index: Tensor, side: str
    ) -> "Queries":
        r"""Returns the queries of one side that triples answer.

        Args:
            head_index (torch.Tensor): The head indices.
            rel_type (torch.Tensor): The relation types.
            tail_index (torch.Tensor): The tail indices.
            side (str): The side that the query asks for.
        """
        return cls(tail_index if side == "head" else head_index, rel_type, side)

    def __len__(self) -> int:
        return self.entity.numel()

    def __getitem__(self, index: Any) -> "Queries":
        return Queries(self.entity[index], self.rel_type[index], self.side)

    def to(self, device: torch.device | str) -> "Queries":
        """Returns the queries on a device."""
        return Queries(self.entity.to(device), self.rel_type.to(device), self.side)

    def triples(self, answer: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""Returns the triples of queries and answers.

        Args:
            answer (torch.Tensor): An answer to each query, or a row of answers.

        Returns:
            :obj:`(head_index, rel_type, tail_index)`, each with the shape of
            :obj:`answer`.
        """
        entity, rel_type = self.entity, self.rel_type
        if answer.dim() > 1:
            entity, rel_type = entity[:, None], rel_type[:, None]
        entity, rel_type = entity.expand_as(answer), rel_type.expand_as(answer)
        if self.side == "head":
            return answer, rel_type, entity
        return entity, rel_type, answer

    def distinct(self, num_nodes: int) -> tuple["Queries", Tensor]:
        r"""Returns the distinct queries, by relation, and the position of each
        query in them.

        Args:
            num_nodes (int): The number of entities.
        """
        IdRanges(num_nodes, torch.iinfo(torch.long).max).check_queries(self)
        key = self.rel_type * num_nodes + self.entity
        key, row = torch.unique(key, return_inverse=True)
        rel_type = torch.div(key, num_nodes, rounding_mode="floor")
        return Queries(key - rel_type * num_nodes, rel_type, self.side), row

    def text(self, i: int, relations: list[str]) -> str:
        r"""Returns a query as readable text.

        Args:
            i (int): The position of the query.
            relations (list): The names of all relations.
        """
        i = check_id(i, "query", len(self))
        entity, rel_type = int(self.entity[i]), int(self.rel_type[i])
        relation = relations[check_id(rel_type, "relation", len(relations))]
        if self.side == "head":
            return f"(?, {relation}, {entity})"
        return f"({entity}, {relation}, ?)"


def check_side(side: str) -> None:
    """Refuses an invalid side."""
    if side not in SIDES:
        raise ValueError(f"'side' must be 'head' or 'tail' (got {side!r})")
