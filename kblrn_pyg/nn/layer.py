"""The numerical expert with a layer of functions for each relation and attribute."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.data.layers import LayerFeatures, layer_features
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.kernels.layers import (
    DISTANCE,
    Layers,
    add_layers,
    layer_gradient,
    layer_gradient_of,
    score_layers,
)
from kblrn_pyg.kernels.threads import no_scratch, run_slices
from kblrn_pyg.nn.expert import factor_of
from kblrn_pyg.nn.features import FeatureExpert, at_least_single
from kblrn_pyg.nn.layer_basis import coarse_to_fine
from kblrn_pyg.nn.layer_columns import kernel_layers, known_in
from kblrn_pyg.nn.layer_parts import layer_part
from kblrn_pyg.nn.part import Part
from kblrn_pyg.nn.rebuild import take_weights

# The least number of queries to hand to a thread at once.
_MIN_ROWS = 128


class LayerExpert(FeatureExpert):
    r"""Scores a triple by comparing its entities' numbers, with a layer for each
    relation and attribute:

    .. math::
        \log f_{(r, N)}(h, r, t) = \sum_i g^r_i(n_h^{(i)} - n_t^{(i)}), \quad
        g^r_i(d) = \sum_m w^r_{i, m} \, \phi_m(d)

    The functions :math:`\phi_m` are hat functions from coarse to fine, whose knots
    are at quantiles of the differences. So :math:`g` is piecewise linear: it can
    have any shape, takes a single look-up, and is robust to outliers. If only the
    head's number is unknown, or only the tail's, a separate weight replaces
    :math:`g`; if both are unknown, the score is zero. Numbers are never imputed.

    Whether a number is known is informative, too: only places have coordinates. If
    :obj:`ignore_unknown`, this information is not used. The score is then zero if a
    number is unknown, and the mean of :math:`g` over arbitrary pairs of entities is
    subtracted from :math:`g`, so that only the values of the numbers count for or
    against a triple.

    Args:
        data (HeteroData): The knowledge base, with the numbers of entities.
        features (LayerFeatures, optional): The comparisons of each relation, and
            the knots. (default: :obj:`None`, what :meth:`layer_features` finds)
        ignore_unknown (bool, optional): Whether to ignore whether a number is
            known. (default: :obj:`False`)
    """

    name = "numerical"

    knot_ptr: Tensor
    knot: Tensor
    value: Tensor
    column: Tensor
    is_distance: Tensor
    basis: Tensor
    basis_index: Tensor
    arbitrary: Tensor | None

    def __init__(
        self,
        data: HeteroData,
        features: LayerFeatures | None = None,
        ignore_unknown: bool = False,
    ) -> None:
        features = layer_features(data) if features is None else features
        index, values, num_weights = coarse_to_fine(features.knot_ptr.diff().tolist())
        super().__init__(features.ptr, num_weights)
        self.features, self.ignore_unknown = features, ignore_unknown
        if ignore_unknown and features.arbitrary is None:
            raise ValueError(
                "'features' must know arbitrary pairs where 'ignore_unknown' is True"
            )
        missing = torch.empty(len(features), 2)
        self.missing = Parameter(missing, requires_grad=not ignore_unknown)
        x = data["entity"].x.detach().double().numpy()
        self._layers = layers = kernel_layers(features, x)
        self._columns: tuple[Tensor, Layers] | None = None
        self._x, self._attribute_names = data["entity"].x, list(data.attribute_names)
        buffers = {
            "knot_ptr": features.knot_ptr,
            "knot": features.knot,
            "value": torch.from_numpy(layers.value),
            "column": torch.from_numpy(np.stack([layers.head, layers.tail])),
            "is_distance": torch.from_numpy(layers.kind == DISTANCE),
            "basis": values,
            "basis_index": index,
            "arbitrary": features.arbitrary if ignore_unknown else None,
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer, persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets all weights to zero."""
        torch.nn.init.zeros_(self.weight)
        torch.nn.init.zeros_(self.missing)

    @torch.no_grad()
    def scale(self, factor: float | Tensor) -> None:
        """Multiplies the weights, of unknown numbers, too; see :class:`Expert`."""
        relation = self.relation_of_feature()
        self.missing.mul_(factor_of(factor, relation[:, None]))
        knot, weight = self.basis_index
        of_knot = relation.repeat_interleave(self.knot_ptr.diff())
        of_weight = torch.zeros_like(self.weight, dtype=torch.long)
        of_weight[weight] = of_knot[knot]
        self.weight.mul_(factor_of(factor, of_weight))

    def table(self) -> Tensor:
        """Returns the value of each layer at each of its knots."""
        knot, weight = self.basis_index
        values = self.weight.double().index_select(0, weight) * self.basis
        table = values.new_zeros(len(self.knot)).index_add(0, knot, values)
        if self.arbitrary is None:
            return table
        size = self.knot_ptr.diff()
        layer = torch.arange(len(size), device=size.device).repeat_interleave(size)
        mean = table.new_zeros(len(size)).index_add(0, layer, table * self.arbitrary)
        return table - mean.index_select(0, layer)

    def forward(
        self, head_index: Tensor, rel_type: Tensor, tail_index: Tensor
    ) -> Tensor:
        """Scores triples, whose indices broadcast against each other."""
        indices = torch.broadcast_tensors(head_index, rel_type, tail_index)
        head, rel, tail = (index.flatten() for index in indices)
        self._check_ids(Queries(head, rel, "tail"), tail[:, None])
        counts = self.feature_ptr.diff()[rel]
        row = torch.arange(rel.numel(), device=rel.device).repeat_interleave(counts)
        first = self.feature_ptr[rel].repeat_interleave(counts)
        begin = (counts.cumsum(0) - counts).repeat_interleave(counts)
        layer = first + torch.arange(row.numel(), device=rel.device) - begin
        values = self._look_up(layer, head[row], tail[row], self.table())
        scores = self.weight.new_zeros(rel.numel())
        scores = scores.index_add(0, row, values.to(scores.dtype))
        return scores.view(indices[0].shape)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        if not uses_kernels(candidates):
            return super().score_candidates(queries, candidates)
        self._check_ids(queries, candidates)
        dtype = at_least_single(self.weight).dtype
        scores = torch.zeros(candidates.shape, dtype=dtype)
        return self._add(scores, queries, self._layers, candidates)

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        scores = at_least_single(scores)
        if not uses_kernels(scores):
            return self._add_by_torch(scores, queries, entities)
        self._check_ids(queries)
        layers = self._layers if entities is None else self._layers_of(entities)
        width = self.value.size(1) if entities is None else len(entities)
        check_shape("scores", scores, (len(queries), width))
        return self._add(scores, queries, layers)

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns what each layer of the relation gives; see :class:`Expert`."""
        begin, end = self.feature_ptr[rel : rel + 2].tolist()
        if begin == end:
            return [Part(0.0, ("the relation has no numerical attributes",))]
        layer = torch.arange(begin, end, device=self.feature_ptr.device)
        ends = [torch.full_like(layer, one) for one in (head, tail)]
        with torch.no_grad():
            values = self._look_up(layer, ends[0], ends[1], self.table()).tolist()
        x = self._x[[head, tail]].tolist()
        return [
            layer_part(self.features, i, x, value, self._attribute_names)
            for i, value in zip(range(begin, end), values)
        ]

    def with_facts(self, update: KBUpdate) -> "LayerExpert":
        """Keeps what is compared, and the knots; see :class:`Expert`."""
        expert = type(self)(update.kb, self.features, self.ignore_unknown)
        take_weights(expert, self, update)
        return expert

    def fingerprint(self) -> bytes:
        """Returns which numbers the weights are for."""
        tensors = self.feature_ptr, self.knot_ptr, self.knot, self.value, self.column
        content = [tensor.cpu().numpy().tobytes() for tensor in tensors]
        if self.ignore_unknown:
            content.append(b"ignores unknown numbers")
        return b" ".join([super().fingerprint(), *content])

    def extra_repr(self) -> str:
        """Returns the number of layers."""
        return f"{len(self.features):,} layers with {len(self.knot):,} knots"

    def _look_up(
        self, layer: Tensor, head: Tensor, tail: Tensor, table: Tensor
    ) -> Tensor:
        """Returns the values of layers; all indices broadcast."""
        columns = self.column[:, layer]
        known = [
            ~self.value[column, entity].isnan()
            for column, entity in zip(columns, (head, tail))
        ]
        both = known[0] & known[1]
        # Unknown numbers leave here, so that no NaN can ever reach a gradient.
        compared = self._compare(layer, columns, head, tail).masked_fill(~both, 0)
        place = self._place(layer, compared)
        first, last = self.knot_ptr[layer], self.knot_ptr[layer + 1] - 1
        low, high = (place - 1).clamp(first, last), place.clamp(first, last)
        width = (self.knot[high] - self.knot[low]).masked_fill(low == high, 1)
        part = (compared - self.knot[low]) / width
        at_low, at_high = (_select(table, index) for index in (low, high))
        inside = at_low + part * (at_high - at_low)
        missing = self.missing.double().unbind(1)
        no_head, no_tail = (_select(one, layer) for one in missing)
        outside = torch.where(known[1], no_head, torch.zeros_like(no_head))
        outside = torch.where(known[0], no_tail, outside)
        return torch.where(both, inside, outside)

    def _compare(
        self, layer: Tensor, columns: Tensor, head: Tensor, tail: Tensor
    ) -> Tensor:
        apart = self.value[columns[0], head] - self.value[columns[1], tail]
        if not self.is_distance.any():
            return apart
        is_distance = self.is_distance[layer]
        squares = apart.square()
        for axis in (1, 2):  # which differences do not have
            rows = columns + axis * is_distance
            further = self.value[rows[0], head] - self.value[rows[1], tail]
            squares = squares + further.square()
        return torch.where(is_distance, squares.sqrt(), apart)

    def _place(self, layer: Tensor, compared: Tensor) -> Tensor:
        """Returns the first knot of each layer that is greater, by bisection."""
        low, high = self.knot_ptr[layer], self.knot_ptr[layer + 1]
        low, high, _ = torch.broadcast_tensors(low, high, compared)
        steps = int(self.knot_ptr.diff().max()).bit_length() if len(self.knot) else 0
        for _ in range(steps):
            middle = (low + high) // 2
            is_left = low < high
            goes_on = self.knot[middle.clamp(max=len(self.knot) - 1)] <= compared
            low = torch.where(is_left & goes_on, middle + 1, low)
            high = torch.where(is_left & ~goes_on, middle, high)
        return low

    def _add_by_torch(
        self, scores: Tensor, queries: Queries, entities: Tensor | None
    ) -> Tensor:
        """Adds one layer of each relation at a time, on any device."""
        if entities is None:
            entities = torch.arange(scores.size(1), device=scores.device)
        first, behind = (self.feature_ptr[queries.rel_type + i] for i in (0, 1))
        table = self.table()
        for j in range(int((behind - first).max()) if len(queries) else 0):
            row = (first + j < behind).nonzero().flatten()
            ends = queries.entity[row][:, None], entities[None]
            head, tail = ends if queries.side == "tail" else ends[::-1]
            values = self._look_up((first[row] + j)[:, None], head, tail, table)
            scores = scores.index_add(0, row, values.to(scores.dtype))
        return scores

    def _layers_of(self, entities: Tensor) -> Layers:
        """Returns the layers of the entities of columns; the same ones may come
        again."""
        check_ids({"entities": (entities, self.value.size(1))})
        last = self._columns  # which another thread may replace
        if last is None or not torch.equal(last[0], entities):
            value = self._layers.value[:, entities.numpy()]
            ptr, known, numbers = known_in(value, self._layers)
            layers = self._layers._replace(
                known_ptr=ptr, known=known, known_value=numbers
            )
            last = self._columns = entities.clone(), layers
        return last[1]

    def _check_ids(self, queries: Queries, candidates: Tensor | None = None) -> None:
        num_nodes = self.value.size(1)
        ids = {
            "relations": (queries.rel_type, len(self.feature_ptr) - 1),
            "entities": (queries.entity, num_nodes),
        }
        check_ids(ids)
        if candidates is not None:
            check_ids({"candidates": (candidates, num_nodes)}, num_dims=2)
            check_shape("candidates", candidates, (len(queries), candidates.size(1)))

    def _add(
        self,
        scores: Tensor,
        queries: Queries,
        layers: Layers,
        candidates: Tensor | None = None,
    ) -> Tensor:
        numbers = self.table(), self.missing.double()
        return _AddLayers.apply(scores, *numbers, layers, queries, candidates)


class _AddLayers(torch.autograd.Function):
    """Adds the layers of queries to rows of scores."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        table: Tensor,
        missing: Tensor,
        layers: Layers,
        queries: Queries,
        candidates: Tensor | None,
    ) -> Tensor:
        columns = [queries.entity, queries.rel_type]
        columns += [] if candidates is None else [candidates]
        arrays = [column.contiguous().numpy() for column in columns]
        is_tail = int(queries.side == "tail")
        ctx.asked, ctx.shapes = (layers, is_tail, arrays), (table.shape, missing.shape)
        # Some candidates take far less time than all entities.
        ctx.min_rows = 1 if candidates is None else _MIN_ROWS
        ctx.mark_dirty(scores)
        numbers = table.detach().numpy(), missing.detach().numpy()
        kernel = add_layers if candidates is None else score_layers
        rows = scores.detach().numpy()

        def add(part: slice, _: None) -> None:
            some = (column[part] for column in arrays)
            kernel(layers, is_tail, *some, numbers, rows[part])

        run_slices(add, len(rows), no_scratch, min_rows=ctx.min_rows)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        layers, is_tail, arrays = ctx.asked
        kernel = layer_gradient if len(arrays) == 2 else layer_gradient_of
        rows = grad.contiguous().numpy()

        def add(part: slice, _: None) -> tuple[np.ndarray, ...]:
            grads = tuple(np.zeros(shape) for shape in ctx.shapes)
            some = (column[part] for column in arrays)
            kernel(layers, is_tail, *some, rows[part], *grads)
            return grads

        found = run_slices(add, len(rows), no_scratch, min_rows=ctx.min_rows)
        table, missing = (torch.from_numpy(sum(grads)) for grads in zip(*found))
        return grad, table, missing, None, None, None


def _select(values: Tensor, index: Tensor) -> Tensor:
    """Indexes numbers; unlike brackets, its gradient is fast."""
    return values.index_select(0, index.flatten()).view(index.shape)
