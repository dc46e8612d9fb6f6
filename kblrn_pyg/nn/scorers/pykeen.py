"""Any interaction function of PyKEEN as a scorer."""

import inspect
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import Embedding

from kblrn_pyg.nn.scorers.margin import MarginKGE
from kblrn_pyg.nn.scorers.scorer import Scorer

# How long the sides of PyKEEN's shapes are that are not the embedding size:
# quaternions have four numbers, and boxes one scale.
_SIDES = {"k": 4, "s": 1}


class PyKEENModel(MarginKGE):
    r"""An interaction function of PyKEEN over unconstrained embeddings.

    The constraints and penalties of PyKEEN's models are not included: an
    interaction that needs positive numbers, such as that of KG2E, does not work.

    Args:
        num_nodes (int): The number of nodes/entities in the graph.
        num_relations (int): The number of relations in the graph.
        hidden_channels (int): The hidden embedding size.
        interaction (str): The name of the interaction function, such as
            :obj:`"QuatE"`, in any case.
        options (dict, optional): Arguments of its constructor. The embedding size
            is passed automatically, and so is the Euclidean norm if it requires a
            norm. (default: :obj:`None`, none)
        margin (float, optional): The margin of the ranking loss.
            (default: :obj:`1.0`)
        sparse (bool, optional): If set to :obj:`True`, gradients w.r.t. to
            the embeddings of entities will be sparse. (default: :obj:`False`)
    """

    def __init__(
        self,
        num_nodes: int,
        num_relations: int,
        hidden_channels: int,
        interaction: str,
        options: Mapping[str, Any] | None = None,
        margin: float = 1.0,
        sparse: bool = False,
    ) -> None:
        super().__init__(num_nodes, num_relations, hidden_channels, margin, sparse)
        kind = _interaction_class(interaction)
        self.interaction = kind.__name__.removesuffix("Interaction")
        self.options = dict(options or {})
        self.function = kind(**_sizes_of(kind, hidden_channels) | self.options)
        self._entity = self._shapes(self.function.entity_shape)
        self._relation = self._shapes(self.function.relation_shape)
        widths = [self._width(shapes) for shapes in (self._entity, self._relation)]
        self.node_emb = Embedding(num_nodes, widths[0], sparse=sparse)
        self.rel_emb = Embedding(num_relations, widths[1])
        self.reset_parameters()

    @property
    def scorer_name(self) -> str:
        """The name by which the scorer is created."""
        return f"pykeen:{self.interaction.lower()}"

    def reset_parameters(self) -> None:
        """Resets all weights."""
        for embedding in (self.node_emb, self.rel_emb):
            if embedding.weight.numel():
                torch.nn.init.xavier_uniform_(embedding.weight)
        self.function.reset_parameters()

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Returns the score of each triple."""
        head, tail = (
            self._parts(self.node_emb(index), self._entity)
            for index in (head_index, tail_index)
        )
        relation = self._parts(self.rel_emb(rel_type), self._relation)
        return self.function(
            h=_one_or_several([head[i] for i in self.function.head_indices]),
            r=_one_or_several(relation),
            t=_one_or_several([tail[i] for i in self.function.tail_indices]),
        )

    def _shapes(self, symbols: Sequence[str]) -> list[tuple[int, ...]]:
        """Returns the shapes of embeddings by those that PyKEEN writes in letters."""
        size = int(self.hidden_channels)
        return [tuple(_SIDES.get(one, size) for one in shape) for shape in symbols]

    def _width(self, shapes: list[tuple[int, ...]]) -> int:
        return sum(map(math.prod, shapes)) * (1 + self.function.is_complex)

    def _parts(self, rows: Tensor, shapes: list[tuple[int, ...]]) -> list[Tensor]:
        """Splits rows into the embeddings that the function expects."""
        if self.function.is_complex:
            rows = torch.view_as_complex(rows.unflatten(-1, (-1, 2)))
        parts = rows.split([math.prod(shape) for shape in shapes], dim=-1)
        return [
            part.reshape(*part.shape[:-1], *one) for part, one in zip(parts, shapes)
        ]


class PyKEENScorer(Scorer):
    r"""Scores as :class:`PyKEENModel` does, triple by triple.

    Args:
        kge (PyKEENModel): The model.
    """

    @property
    def title(self) -> str:
        """The name of the scorer in explanations."""
        return f"{self.kge.interaction} of PyKEEN"

    def fingerprint(self) -> str:
        return f"{self.title} {self.kge.options}"


def _interaction_class(name: str) -> type:
    try:
        from pykeen.nn import interaction_resolver
    except ImportError:
        raise ImportError(
            "interactions of PyKEEN need it: pip install 'kblrn_pyg[pykeen]'"
        ) from None
    known = interaction_resolver.lookup_dict
    if interaction_resolver.normalize(name) not in known:
        raise ValueError(
            f"'interaction' must be one of {', '.join(sorted(known))} (got {name!r})"
        )
    return known[interaction_resolver.normalize(name)]


def _sizes_of(kind: type, hidden_channels: int) -> dict[str, Any]:
    """Returns arguments of an interaction function that follow from the size."""
    parameters = inspect.signature(kind).parameters
    sizes = ("embedding_dim", "input_dim", "head_dim")
    found = {name: hidden_channels for name in sizes if name in parameters}
    if "p" in parameters and parameters["p"].default is inspect.Parameter.empty:
        found["p"] = 2
    return found


def _one_or_several(parts: list[Tensor]) -> Tensor | tuple[Tensor, ...]:
    return parts[0] if len(parts) == 1 else tuple(parts)
