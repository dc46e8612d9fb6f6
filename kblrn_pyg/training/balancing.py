"""Chooses how far to trust each of several experts that were trained separately."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Real

import numpy as np
import torch
from torch import Tensor

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation import RankTable, evaluate_each
from kblrn_pyg.evaluation.ranks import Ids
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.kblrn import KBLRN
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.training.validation import Graph

# Factors of all experts at once, of which some may be of no use, and then of one.
_OF_ALL = (0.0, 0.05, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
_OF_ONE = (0.0, 0.3, 0.6, 1.6, 3.0)
_ROUNDS = 2  # what is best of one depends on the others
# A relation is believed to need other factors as if all relations together had asked
# so many of its queries; the number is the best of these by cross-validation.
_PRIORS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 1e9)
_FOLDS = 5

# By name of the expert, one for each relation.
Factors = Mapping[str, Tensor]
# The factor of each expert that all relations share, and those of relations.
Trial = tuple[dict[str, float], Factors]


def scale_experts(model: KBLRN, factors: Mapping[str, float | Tensor]) -> None:
    r"""Multiplies the scores of experts by factors.

    Args:
        model (KBLRN): The model.
        factors (dict): The factor of each expert by name, or one for each relation;
            experts that are not named stay as they are.
    """
    for name, factor in factors.items():
        if name not in model.experts:
            raise ValueError(
                f"'factors' must name experts of {', '.join(model.experts)} (got "
                f"{name!r})"
            )
        _check_factor(name, factor, model.num_relations)
    for name, factor in factors.items():
        model.experts[name].scale(factor)  # type: ignore[operator]


def _check_factor(name: str, factor: float | Tensor, num_relations: int) -> None:
    """Refuses factors that are not numbers, or not one for each relation."""
    shape = list(factor.shape) if isinstance(factor, Tensor) else []
    if shape not in ([], [num_relations]):
        raise ValueError(
            f"the factor of {name!r} must be a number, or one for each relation, "
            f"{num_relations} (got {shape})"
        )
    if (
        not isinstance(factor, Real | Tensor)
        or not np.isfinite(np.asarray(factor)).all()
    ):
        raise ValueError(f"the factor of {name!r} must be finite (got {factor!r})")


def balance(
    model: KBLRN,
    val: Graph,
    filter_with: Sequence[Graph] = (),
    progress: bool = False,
    by_relation: bool = True,
) -> dict[str, float]:
    r"""Chooses the exponents of a product of experts by the MRR of a validation set.

    Trained embeddings fit almost all training triples, so other experts that are
    trained beside them do not learn what is useful for unseen triples. Experts that
    were trained separately, on the same triples, are overconfident when they are
    multiplied. This function multiplies the scores of all experts that can be
    scaled, see :meth:`Expert.scale`, by factors: first the same factor for all of
    them, and then a separate factor for each. Relations whose queries clearly
    favour other factors get their own; cross-validation chooses how clearly they
    must.

    Args:
        model (KBLRN): The model, whose experts are scaled.
        val (HeteroData or Data): The split to validate on.
        filter_with (sequence, optional): Additional splits whose answers do not count
            as wrong. (default: :obj:`()`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
        by_relation (bool, optional): Whether relations may have their own factors.
            (default: :obj:`True`)

    Returns:
        The factor of each scaled expert, for all relations together.
    """
    return _balanced(model, val, filter_with, progress, by_relation).together


def balance_relations(
    model: KBLRN, val: Graph, filter_with: Sequence[Graph] = (), progress: bool = False
) -> dict[str, Tensor]:
    r"""Does the same as :meth:`balance`, and returns the factors of each relation.

    Args:
        model (KBLRN): See :meth:`balance`.
        val (HeteroData or Data): See :meth:`balance`.
        filter_with (sequence, optional): See :meth:`balance`.
            (default: :obj:`()`)
        progress (bool, optional): See :meth:`balance`. (default: :obj:`False`)

    Returns:
        The factors of each expert that was scaled, one for each relation.
    """
    return _balanced(model, val, filter_with, progress, by_relation=True).factors


def _balanced(
    model: KBLRN,
    val: Graph,
    filter_with: Sequence[Graph],
    progress: bool,
    by_relation: bool,
) -> "_Choice":
    experts: dict[str, Expert] = dict(model.experts.items())  # type: ignore[arg-type]
    names = [name for name, one in experts.items() if one.can_be_scaled]
    if len(names) == len(experts):
        names = names[1:]  # the scale of all scores does not matter to ranks
    choice = _Choice(names, model.num_relations, by_relation)
    number = 1 + _ROUNDS * len(names) if names else 0
    bar = ProgressBar(total=number, desc="balance", disable=not progress, leave=False)
    with bar:
        for trials in _trials(choice):
            score = _Trials(model, [factors for _, factors in trials])
            tables = evaluate_each(model, val, filter_with, score, len(trials))
            choice.note_all(trials, tables)
            bar.update()
    for name in names:
        experts[name].scale(choice.factors[name])
    return choice


class _Trials:
    """Scores with several factors of experts; each expert scores once."""

    def __init__(self, model: KBLRN, factors: list[Factors]) -> None:
        self.model, self.factors = model, factors

    def __call__(self, queries: Queries) -> Iterator[Tensor]:
        model = self.model
        queries = queries.to(next(model.parameters()).device)
        entities = None if model.shard is None else model.own_entities()
        rest: Tensor | None = None
        scaled: dict[str, Tensor] = {}
        for name, expert in model.experts.items():
            scores = expert.score_all(queries, model.num_nodes, entities)  # type: ignore[operator]
            if name in self.factors[0]:
                scaled[name] = scores
            else:
                rest = scores if rest is None else rest + scores
        for factors in self.factors:
            total = next(iter(scaled.values())) * 0 if rest is None else rest.clone()
            for name, scores in scaled.items():
                factor = factors[name].to(scores)[queries.rel_type]
                total = total.addcmul_(scores.to(total.dtype), factor[:, None])
            yield total


class _Choice:
    """The best factors so far, for all relations together and for each relation."""

    def __init__(self, names: list[str], num_relations: int, by_relation: bool) -> None:
        self.by_relation = by_relation
        self.together = dict.fromkeys(names, 1.0)
        one = torch.ones(num_relations)
        self.factors = {name: one.clone() for name in names}
        self.mrr = -1.0  # of the factors of all relations together
        # What each relation has by its factors: the sum of reciprocal ranks, and
        # the MRR of all relations by the trial that they are from.
        self.sums = np.full(num_relations, -np.inf)
        self.mrr_of = np.zeros(num_relations)
        self.prior = 0.0
        self.num_queries = 0

    def note_all(self, trials: list[Trial], tables: list[RankTable]) -> None:
        """Takes what trials make better."""
        relation = tables[0].relation
        if not len(relation):
            raise ValueError("'val' must ask about at least one triple (got none)")
        reciprocal = np.stack([1 / table.rank for table in tables])
        if not self.num_queries:  # the first trials
            self.prior = _best_prior(relation, reciprocal, len(self.sums))
        self.num_queries = len(relation)
        for (together, factors), row in zip(trials, reciprocal):
            self._note(together, factors, relation, row)

    def _note(
        self,
        together: Mapping[str, float],
        factors: Factors,
        relation: Ids,
        reciprocal: np.ndarray,
    ) -> None:
        sums = np.bincount(relation, weights=reciprocal, minlength=len(self.sums))
        mrr = float(reciprocal.mean())
        is_better = np.full(len(sums), mrr > self.mrr)
        if mrr > self.mrr:
            self.mrr = mrr
            self.together.update(together)
        if self.by_relation:
            before = self.sums + self.prior * self.mrr_of
            is_better = sums + self.prior * mrr > before
        self.sums[is_better], self.mrr_of[is_better] = sums[is_better], mrr
        chosen = torch.from_numpy(is_better)
        for name, factor in factors.items():
            self.factors[name][chosen] = factor[chosen]

    def settle(self) -> None:
        """Starts again from the current factors of each relation: ranks do not
        depend on other relations."""
        self.mrr = float(self.sums.sum() / self.num_queries)
        self.mrr_of[:] = self.mrr


def _best_prior(relation: Ids, reciprocal: np.ndarray, num_relations: int) -> float:
    """Chooses a prior by the results of relations on held-out queries.

    ``reciprocal`` are the reciprocal ranks of all queries, a row for each trial.
    """
    # Both queries of a triple are in the same fold.
    fold = np.arange(len(relation)) % (len(relation) // 2) % _FOLDS
    total = np.zeros(len(_PRIORS))
    for i in range(_FOLDS):
        others, own = fold != i, fold == i
        if not others.any() or not own.any():
            continue
        sums = np.stack(
            [
                np.bincount(
                    relation[others], weights=row[others], minlength=num_relations
                )
                for row in reciprocal
            ]
        )
        mrr = reciprocal[:, others].mean(axis=1, keepdims=True)
        for k, prior in enumerate(_PRIORS):
            best = np.argmax(sums + prior * mrr, axis=0)
            total[k] += reciprocal[best[relation[own]], np.flatnonzero(own)].sum()
    # The largest of equal ones: relations differ only for a reason.
    return _PRIORS[len(_PRIORS) - 1 - int(np.argmax(total[::-1]))]


def _trials(choice: _Choice) -> Iterator[list[Trial]]:
    """Yields factors to try together, based on the results so far."""
    names = list(choice.together)
    if not names:
        return
    one = torch.ones_like(choice.factors[names[0]])

    def same(factor: float) -> Trial:
        return dict.fromkeys(names, factor), dict.fromkeys(names, factor * one)

    yield [same(factor) for factor in _OF_ALL]
    choice.settle()
    for name in _ROUNDS * names:
        begin, begins = choice.together[name], choice.factors[name].clone()
        yield [
            (
                choice.together | {name: factor * begin},
                choice.factors | {name: factor * begins},
            )
            for factor in _OF_ONE
        ]
