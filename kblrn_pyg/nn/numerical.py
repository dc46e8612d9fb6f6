"""The numerical expert: the differences between the numbers of two entities."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import Parameter
from torch_geometric.data import HeteroData

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data import NumericalFeatures, numerical_features
from kblrn_pyg.data.ids import check_ids, check_shape
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import KBUpdate
from kblrn_pyg.data.words import number_text, value_text
from kblrn_pyg.kernels.candidates import difference_gradient_of, score_differences
from kblrn_pyg.kernels.scoring import (
    Differences,
    add_differences,
    difference_gradient,
)
from kblrn_pyg.kernels.threads import no_scratch, run_slices
from kblrn_pyg.nn.features import FeatureExpert, at_least_single
from kblrn_pyg.nn.part import Part, Ref
from kblrn_pyg.nn.rebuild import take_weights

# The least number of queries to hand to a thread at once.
_MIN_ROWS = 128


class NumericalExpert(FeatureExpert):
    r"""Scores a triple by the differences of its entities' numbers:

    .. math::
        \log f_{(r, N)}(h, r, t) = \phi(\mathbf{n}_h - \mathbf{n}_t) \cdot
        \mathbf{w}^r_{\textrm{num}}, \quad
        \phi(d)_i = \exp\left(\frac{-(d_i - c_i)^2}{\sigma_i^2}\right)

    over the attributes of the relation (see
    :meth:`~kblrn_pyg.data.numerical_features`). A number that is unknown on
    either side gives an activation of zero and carries no gradient.

    Args:
        data (HeteroData): The knowledge base, with the numbers of entities.
        features (NumericalFeatures, optional): The attributes of each relation,
            with centres and widths.
            (default: :obj:`None`, what :meth:`numerical_features` finds)
        activation (str, optional): :obj:`"rbf"`, or :obj:`"sign"` for the
            sign of the difference. (default: :obj:`"rbf"`)
        learn_rbf (bool, optional): Whether centres and widths are learned; the
            paper keeps them fixed. (default: :obj:`False`)
    """

    name = "numerical"

    attribute: Tensor
    x: Tensor
    first_centre: Tensor
    first_width: Tensor
    log_width: Tensor

    def __init__(
        self,
        data: HeteroData,
        features: NumericalFeatures | None = None,
        activation: str = "rbf",
        learn_rbf: bool = False,
    ) -> None:
        features = numerical_features(data) if features is None else features
        features.check(len(data.edge_types), len(data.attribute_names))
        super().__init__(features.ptr)
        if activation not in ("rbf", "sign"):
            raise ValueError(f"'activation' must be rbf or sign (got {activation!r})")
        if learn_rbf and activation == "sign":
            raise ValueError("'learn_rbf' must be False for the activation sign")
        self.activation, self.learn_rbf = activation, learn_rbf
        self.features = features
        self.attribute_names = list(data.attribute_names)
        x = data["entity"].x.detach().double()
        self.register_buffer("attribute", features.attribute, persistent=False)
        self.register_buffer("x", x, persistent=False)
        # As exact as the numbers: a centre may be large and a width small.
        first = {"first_centre": features.centre, "first_width": features.width}
        for name, values in first.items():
            self.register_buffer(name, values.double(), persistent=False)
        if learn_rbf:
            # In units of the first widths, so that the scale of numbers is all one.
            self.shift = Parameter(torch.empty(len(features)))
            self.log_width = Parameter(torch.empty(len(features)))
        else:
            log_width = features.width.double().log()
            self.register_buffer("log_width", log_width, persistent=False)
        self._kernel_features = _kernel_features(features, x, activation == "sign")
        self._columns: tuple[Tensor, Differences] | None = None
        self.reset_parameters()

    @property
    def centre(self) -> Tensor:
        """The centres of the radial basis functions."""
        if not self.learn_rbf:
            return self.first_centre
        return self.first_centre + self.shift.double() * self.first_width

    @property
    def ptr(self) -> Tensor:
        """Where the features of each relation begin."""
        return self.feature_ptr

    def reset_parameters(self) -> None:
        """Initialises the weights as in Glorot and Bengio (2010), per relation."""
        super().reset_parameters()
        if self.learn_rbf:
            with torch.no_grad():
                self.shift.zero_()
                self.log_width.copy_(self.first_width.log())

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
        feature = first + torch.arange(row.numel(), device=rel.device) - begin
        attribute = self.attribute[feature]
        difference = self.x[head[row], attribute] - self.x[tail[row], attribute]
        known = ~difference.isnan()
        # Unknown ones leave here, so that no NaN can ever reach a gradient.
        row, feature, difference = row[known], feature[known], difference[known]
        active = self._activate(difference, feature)
        values = self.weight[feature] * active.to(self.weight.dtype)
        scores = self.weight.new_zeros(rel.numel())
        return scores.index_add(0, row, values).view(indices[0].shape)

    def score_candidates(self, queries: Queries, candidates: Tensor) -> Tensor:
        """Scores some candidates of each query; see :class:`Expert`."""
        if not uses_kernels(candidates):
            return super().score_candidates(queries, candidates)
        self._check_ids(queries, candidates)
        dtype = at_least_single(self.weight).dtype
        scores = torch.zeros(candidates.shape, dtype=dtype)
        return self._add(scores, queries, self._kernel_features, candidates)

    def add_to(
        self, scores: Tensor, queries: Queries, entities: Tensor | None = None
    ) -> Tensor:
        """Adds the scores of all entities; see :class:`Expert`."""
        scores = at_least_single(scores)
        if not uses_kernels(scores):
            return self._add_by_torch(scores, queries, entities)
        self._check_ids(queries)
        features = self._kernel_features
        if entities is not None:
            features = self._features_of(entities)
        check_shape("scores", scores, (len(queries), features.column_value.shape[1]))
        return self._add(scores, queries, features)

    def _features_of(self, entities: Tensor) -> Differences:
        """Returns the features of the entities of columns; the same ones may come
        again."""
        check_ids({"entities": (entities, len(self.x))})
        last = self._columns  # which another thread may replace
        if last is None or not torch.equal(last[0], entities):
            value = self._kernel_features.value[:, entities.numpy()]
            ptr, known = _known_in(value)
            features = self._kernel_features._replace(
                column_value=value, known_ptr=ptr, known=known
            )
            last = self._columns = entities.clone(), features
        return last[1]

    def _add_by_torch(
        self, scores: Tensor, queries: Queries, entities: Tensor | None
    ) -> Tensor:
        """Adds one feature of each relation at a time, on any device."""
        sign = -1.0 if queries.side == "head" else 1.0
        columns = self.x if entities is None else self.x[entities]
        first, behind = (self.feature_ptr[queries.rel_type + i] for i in (0, 1))
        for j in range(int((behind - first).max()) if len(queries) else 0):
            row = (first + j < behind).nonzero().flatten()
            feature = first[row] + j
            attribute = self.attribute[feature]
            own = self.x[queries.entity[row], attribute]
            difference = sign * (own[:, None] - columns[:, attribute].t())
            known = ~difference.isnan()
            difference = torch.where(known, difference, difference.new_zeros(()))
            active = self._activate(difference, feature[:, None]) * known
            values = self.weight[feature][:, None] * active.to(self.weight.dtype)
            scores = scores.index_add(0, row, values.to(scores.dtype))
        return scores

    def _check_ids(self, queries: Queries, candidates: Tensor | None = None) -> None:
        ids = {
            "relations": (queries.rel_type, len(self.feature_ptr) - 1),
            "entities": (queries.entity, len(self.x)),
        }
        check_ids(ids)
        if candidates is not None:
            check_ids({"candidates": (candidates, len(self.x))}, num_dims=2)
            check_shape("candidates", candidates, (len(queries), candidates.size(1)))

    def _add(
        self,
        scores: Tensor,
        queries: Queries,
        features: Differences,
        candidates: Tensor | None = None,
    ) -> Tensor:
        width = self.log_width.double().exp()
        numbers = self.weight.double(), self.centre, width
        asked = features, queries, candidates
        return _AddDifferences.apply(scores, *numbers, *asked)

    def parts(self, head: int, rel: int, tail: int, side: str = "tail") -> list[Part]:
        """Returns what each attribute of the relation gives; see :class:`Expert`."""
        triple = torch.tensor([[rel], [head], [tail]])
        self._check_ids(Queries(triple[1], triple[0], "tail"), triple[2:])
        begin, end = self.feature_ptr[rel : rel + 2].tolist()
        if begin == end:
            return [Part(0.0, ("the relation has no numerical attributes",))]
        return [self._part(i, head, tail) for i in range(begin, end)]

    def _part(self, i: int, head: int, tail: int) -> Part:
        attribute, weight = int(self.attribute[i]), float(self.weight[i])
        values = [_known(float(self.x[end, attribute])) for end in (head, tail)]
        details: dict[str, Any] = dict(zip(("head", "tail"), values))
        active, difference, centre, width = 0.0, None, None, None
        if values[0] is not None and values[1] is not None:
            difference = values[0] - values[1]
            feature = torch.tensor([i], device=self.feature_ptr.device)
            exact = self.x.new_tensor([difference])
            active = float(self._activate(exact, feature))
        if self.activation == "rbf":
            centre = float(self.centre[i])
            width = float(self.log_width[i].double().exp())
        name = self.attribute_names[attribute]
        details = {"attribute": name} | details | {"difference": difference}
        details |= {"centre": centre, "width": width}
        details |= {"activation": active, "weight": weight}
        words = (Ref("attribute", attribute),)
        return Part(active * weight, words, (_note(details),), details=details)

    def with_facts(self, update: KBUpdate) -> "NumericalExpert":
        """Keeps the attributes, centres and widths; see :class:`Expert`."""
        settings = self.features, self.activation, self.learn_rbf
        expert = type(self)(update.kb, *settings)
        take_weights(expert, self, update)
        return expert

    def fingerprint(self) -> bytes:
        """Returns which numbers the weights are for."""
        tensors = self.feature_ptr, self.attribute, self.x
        content = [tensor.cpu().numpy().tobytes() for tensor in tensors]
        return b" ".join([super().fingerprint(), self.activation.encode(), *content])

    def extra_repr(self) -> str:
        """Returns the number of features."""
        return f"{len(self.weight):,} numerical features"

    def _activate(self, difference: Tensor, feature: Tensor) -> Tensor:
        if self.activation == "sign":
            return difference.sign()
        width = self.log_width.double().exp()[feature]
        off = (difference - self.centre[feature]) / width
        return (-off.square()).exp()


class _AddDifferences(torch.autograd.Function):
    """Adds activations where both numbers are known, and nothing elsewhere."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        weight: Tensor,
        centre: Tensor,
        width: Tensor,
        features: Differences,
        queries: Queries,
        candidates: Tensor | None,
    ) -> Tensor:
        ctx.features, ctx.asked = features, _asked(queries, candidates)
        # Some candidates take far less time than all entities.
        ctx.min_rows = 1 if candidates is None else _MIN_ROWS
        ctx.save_for_backward(weight, centre, width)
        ctx.mark_dirty(scores)
        numbers = tuple(t.detach().numpy() for t in (weight, centre, width))
        sign, columns = ctx.asked
        kernel = add_differences if candidates is None else score_differences
        rows = scores.detach().numpy()

        def add(part: slice, _: None) -> None:
            some = (column[part] for column in columns)
            kernel(features, sign, *some, numbers, rows[part])

        run_slices(add, len(rows), no_scratch, min_rows=ctx.min_rows)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        numbers = tuple(tensor.numpy() for tensor in ctx.saved_tensors)
        sign, columns = ctx.asked
        kernel = difference_gradient if len(columns) == 2 else difference_gradient_of
        rows = grad.contiguous().numpy()
        num_learned = 3 if ctx.needs_input_grad[2] else 1

        def add(part: slice, _: None) -> np.ndarray:
            grads = np.zeros((num_learned, len(numbers[0])))
            some = (column[part] for column in columns)
            kernel(ctx.features, sign, *some, numbers, rows[part], grads)
            return grads

        found = run_slices(add, len(rows), no_scratch, min_rows=ctx.min_rows)
        total = list(torch.from_numpy(sum(found)).unbind())
        return grad, *total, *[None] * (6 - num_learned)


def _asked(
    queries: Queries, candidates: Tensor | None
) -> tuple[float, list[np.ndarray]]:
    """Returns the sign that turns known minus candidate into head minus tail, and
    the columns of ids."""
    sign = -1.0 if queries.side == "head" else 1.0
    columns = [queries.entity, queries.rel_type]
    columns += [] if candidates is None else [candidates]
    return sign, [column.contiguous().numpy() for column in columns]


def _known(value: float) -> float | None:
    return value if value == value else None  # NaN, the unknown, differs from itself


def _note(details: dict[str, Any]) -> str:
    """Returns the calculation of a difference, and its typical value."""
    name = details["attribute"]
    head, tail = (
        "unknown" if details[end] is None else value_text(name, details[end])
        for end in ("head", "tail")
    )
    if details["difference"] is None:
        return f"{head} and {tail}"
    tail = f"({tail})" if tail.startswith("−") else tail
    text = f"{head} − {tail} = {value_text('', details['difference'])}"
    if details["centre"] is None:
        return text
    usual = (number_text(details[key], details["width"]) for key in ("centre", "width"))
    return f"{text}, usually {' ± '.join(usual)}"


def _kernel_features(
    features: NumericalFeatures, x: Tensor, use_sign: bool
) -> Differences:
    value = x.double().t().contiguous().numpy()
    return Differences(
        features.ptr.numpy(),
        features.attribute.numpy(),
        value,
        value,
        *_known_in(value),
        use_sign,
    )


def _known_in(value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns which columns have a number, for each attribute."""
    known = ~np.isnan(value)
    ptr = np.append(0, np.cumsum(known.sum(axis=1)))
    return ptr, np.nonzero(known)[1]
