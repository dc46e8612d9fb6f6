"""Node features: a weight for each head and tail of a relation."""

import math

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.nn.expert import Expert, factor_of
from kblrn_pyg.nn.part import Part, Ref


class NodeExpert(Expert):
    r"""The node features of Node+LinkFeat (Toutanova and Chen, 2015).

    .. math::
        s(h, r, t) = u_{r, t} + v_{r, h}

    There is a weight for each tail and for each head that a relation has in the
    knowledge base; other entities have no weight. Together with rules of one step,
    this is the baseline in the paper:

    .. code-block:: python

        rules = mine_rules(train, max_hops=1, min_head_coverage=0.0)
        model = KBLRN.from_data(train, ["r", NodeExpert(train)], rules=rules)

    Args:
        data (HeteroData): The knowledge base.
        weight_decay (float, optional): The weight of the squares of weights in the
            loss. (default: :obj:`0.0`)
    """

    name = "node"

    tail: Parameter
    head: Parameter
    tail_keys: Tensor
    head_keys: Tensor

    def __init__(self, data: HeteroData, weight_decay: float = 0.0) -> None:
        super().__init__()
        if not 0 <= weight_decay < math.inf:
            raise ValueError(
                f"'weight_decay' must not be negative (got {weight_decay})"
            )
        self.weight_decay = weight_decay
        self.num_nodes = data["entity"].num_nodes
        head, rel, tail = flat_triples(data)
        for end, entity in (("tail", tail), ("head", head)):
            keys = torch.unique(rel * self.num_nodes + entity)
            self.register_buffer(f"{end}_keys", keys, persistent=False)
            self.register_parameter(end, Parameter(torch.zeros(len(keys))))

    def reset_parameters(self) -> None:
        """Sets all weights to zero."""
        with torch.no_grad():
            self.tail.zero_()
            self.head.zero_()

    @torch.no_grad()
    def with_facts(self, update: KBUpdate) -> "NodeExpert":
        """Keeps the weights of heads and tails that still exist; see
        :class:`Expert`."""
        expert = type(self)(update.kb, self.weight_decay)
        expert.to(device=self.head.device, dtype=self.head.dtype)
        for end in ("head", "tail"):
            keys, new = getattr(self, f"{end}_keys"), getattr(expert, f"{end}_keys")
            rel = torch.div(keys, self.num_nodes, rounding_mode="floor")
            keys = rel * expert.num_nodes + keys % self.num_nodes
            is_there = torch.isin(keys, new)
            place = torch.searchsorted(new, keys[is_there])
            getattr(expert, end)[place] = getattr(self, end)[is_there]
        return expert.train(self.training)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        of_head = self._look_up("head", rel_type, head_index)
        return of_head + self._look_up("tail", rel_type, tail_index)

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        if entities is not None:
            return super().add_to(scores, queries, entities)
        other = "head" if queries.side == "tail" else "tail"
        known = self._look_up(other, queries.rel_type, queries.entity)
        relations, row = queries.rel_type.unique(return_inverse=True)
        rows = self._rows(queries.side, relations).to(scores.dtype)
        return scores + rows.index_select(0, row) + known[:, None].to(scores.dtype)

    def _rows(self, end: str, relations: Tensor) -> Tensor:
        """Returns the weights of all entities, a row for each relation."""
        keys, weight = getattr(self, f"{end}_keys"), getattr(self, end)
        first = torch.searchsorted(keys, relations * self.num_nodes)
        last = torch.searchsorted(keys, (relations + 1) * self.num_nodes)
        number = last - first
        row = torch.repeat_interleave(torch.arange(len(number)).to(number), number)
        start = first - torch.cat([number.new_zeros(1), number.cumsum(0)[:-1]])
        at = torch.arange(len(row), device=row.device) + start[row]
        rows = weight.new_zeros(len(relations), self.num_nodes)
        place = row, keys[at] % self.num_nodes
        return rows.index_put(place, weight[at])

    def _look_up(self, end: str, rel_type: Tensor, entity: Tensor) -> Tensor:
        keys, weight = getattr(self, f"{end}_keys"), getattr(self, end)
        key = rel_type * self.num_nodes + entity
        at = torch.searchsorted(keys, key).clamp(max=max(len(keys) - 1, 0))
        if not len(keys):
            return weight.new_zeros(key.shape)
        return torch.where(keys[at] == key, weight[at], 0.0)

    def penalty(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor | float:
        """Returns the mean square of the weights of a batch; see :class:`Expert`."""
        if self.weight_decay == 0:
            return 0.0
        of_head = self._look_up("head", rel_type, head_index)
        of_tail = self._look_up("tail", rel_type, tail_index)
        return self.weight_decay * (of_head.square() + of_tail.square()).mean()

    @torch.no_grad()
    def scale(self, factor: float | Tensor) -> None:
        """Multiplies the weights; see :class:`Expert`."""
        self.tail.mul_(factor_of(factor, self.tail_keys // self.num_nodes))
        self.head.mul_(factor_of(factor, self.head_keys // self.num_nodes))

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns what either end adds; see :class:`Expert`."""
        index = torch.tensor([rel], device=self.tail.device)
        parts = []
        for end, entity in (("head", head), ("tail", tail)):
            weight = self._look_up(end, index, index.new_tensor([entity]))
            words = (Ref("entity", entity), f" is a {end} of ", Ref("relation", rel))
            parts.append(Part(float(weight.detach()), words, details={"kind": end}))
        return parts

    def fingerprint(self) -> bytes:
        """Returns which weights there are."""
        keys = [self.tail_keys, self.head_keys]
        return b" ".join(
            [super().fingerprint(), *(one.cpu().numpy().tobytes() for one in keys)]
        )
