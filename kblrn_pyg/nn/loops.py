"""Loops: whether the head of a triple is its tail."""

import torch
from torch import Tensor
from torch.nn import Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.nn.expert import Expert, factor_of
from kblrn_pyg.nn.part import Part, Ref


class LoopExpert(Expert):
    r"""Knows which relations join an entity with itself.

    .. math::
        s(h, r, t) = w_r \, [h = t], \quad
        w_r = \log \frac{k_r + 1/2}{n_r - k_r + 1/2}

    Of the :math:`n_r` facts of a relation, :math:`k_r` are loops. For most relations,
    there are none: nobody is married to themselves. Other experts do not know this.
    What is similar to an entity, shares its facts or its numbers, is a good answer to
    many questions, and nothing is more similar to an entity than the entity itself.
    The weights are learned; the formula gives their initial values.

    Args:
        data (HeteroData): The knowledge base.
    """

    name = "loops"
    uses_own_threads = True
    needs_scores = False

    num_loops: Tensor
    num_facts: Tensor

    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        head, rel, tail = flat_triples(data)
        size, self.num_nodes = len(data.edge_types), data["entity"].num_nodes
        for name, relations in (("num_facts", rel), ("num_loops", rel[head == tail])):
            counts = torch.bincount(relations, minlength=size)
            self.register_buffer(name, counts, persistent=False)
        self.weight = Parameter(torch.empty(size))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Sets the weights to the logarithms of the odds of loops."""
        others = self.num_facts - self.num_loops
        self.weight.copy_((self.num_loops + 0.5).log() - (others + 0.5).log())

    @torch.no_grad()
    def scale(self, factor: float | Tensor) -> None:
        """Multiplies the weights; see :class:`Expert`."""
        relation = torch.arange(len(self.weight), device=self.weight.device)
        self.weight.mul_(factor_of(factor, relation))

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples."""
        self._check_ids(rel_type, head_index, tail_index)
        return self.weight[rel_type] * (head_index == tail_index)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        self._check_ids(queries.rel_type, queries.entity, candidates)
        is_loop = candidates == queries.entity[:, None]
        return self.weight[queries.rel_type][:, None] * is_loop

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds to the scores of the known entities themselves; see
        :class:`Expert`."""
        self._check_ids(queries.rel_type, queries.entity)
        if entities is not None:
            check_shape("scores", scores, (len(queries), len(entities)))
        row, column = _columns_of(queries.entity, entities)
        weight = self.weight[queries.rel_type[row]].to(scores.dtype)
        return scores.index_put_((row, column), weight, accumulate=True)

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns whether the triple is a loop; see :class:`Expert`."""
        if head != tail:
            return [Part(0.0, ("h and t are different",))]
        loops, facts = int(self.num_loops[rel]), int(self.num_facts[rel])
        note = (f"true for {loops:,} of {facts:,} facts of ", Ref("relation", rel))
        details = {"loops": loops, "facts": facts}
        score = float(self.weight[rel].detach())
        return [Part(score, ("h and t are the same",), note, details=details)]

    def speaks_of(self, rel: int) -> bool:
        """Returns whether loops of a relation have a weight."""
        return bool(self.weight[rel] != 0)

    def _check_ids(self, rel_type: Tensor, *entities: Tensor) -> None:
        check_ids({"relations": (rel_type.flatten(), len(self.weight))})
        for some in entities:
            check_ids({"entities": (some.flatten(), self.num_nodes)})

    def extra_repr(self) -> str:
        """Returns the number of relations with loops."""
        having = int((self.num_loops > 0).sum())
        return f"{having:,} of {len(self.weight):,} relations have loops"


def _columns_of(entity: Tensor, entities: Tensor | None) -> tuple[Tensor, Tensor]:
    """Returns the rows whose entity has a column, and these columns."""
    row = torch.arange(entity.numel(), device=entity.device)
    if entities is None or not entities.numel():
        return (row, entity) if entities is None else (row[:0], row[:0])
    ordered, order = entities.sort()
    place = torch.searchsorted(ordered, entity).clamp(max=ordered.numel() - 1)
    row = (ordered[place] == entity).nonzero().flatten()
    return row, order[place[row]]
