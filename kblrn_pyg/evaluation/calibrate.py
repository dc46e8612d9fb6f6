"""Calibrates the probability that a triple is true, on a validation set."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.ids import as_ids, check_ids
from kblrn_pyg.data.known import KnownFacts
from kblrn_pyg.evaluation.evaluate import side_by_side
from kblrn_pyg.evaluation.model import device_of, evaluating, kb_for, listed
from kblrn_pyg.evaluation.reliability import Reliability
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.calibration import NEGATIVES, Calibration
from kblrn_pyg.progress import ProgressBar

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

# How many triples are scored at once.
_TRIPLES = 1 << 11  # so that rows of embeddings stay in the cache
# How often a false triple that is a fact is drawn again.
_MAX_DRAWS = 20
# How far the numbers of a relation may be from those of all, as a variance.
_SPREAD = 3.0
_MAX_STEPS = 50
# How many training triples of a relation tell how large its scores are.
_NUM_IN_TRAINING = 64


class LabelledTriples(NamedTuple):
    r"""True triples, and false ones.

    Args:
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
        is_true (numpy.ndarray): Whether it is true.
    """

    head: Ids
    rel: Ids
    tail: Ids
    is_true: NDArray[np.bool_]


def calibrate(
    model: KBLRN,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
    ratio: float = 1.0,
    negatives: str = "observed",
    least: int = 10,
    seed: int = 0,
) -> Calibration:
    r"""Calibrates scores to probabilities, by logistic regression.

    Triples that a knowledge base asks about are true. For each of them, a false one
    is drawn: its head or its tail, alternately, is replaced by an entity that the
    relation has on that side in training (:obj:`"observed"`) or by any entity
    (:obj:`"all"`), so that no known fact results. Relations with few triples use
    the slope and the intercept of all relations together, in units of their own
    scores of training triples and of false ones; others have their own.

    Args:
        model (KBLRN): The model, whose :obj:`calibration` is not changed.
        data (HeteroData or Data): The validation split; its triples must not have
            been used in training.
        filter_with (iterable, optional): Splits whose triples are facts, too, such
            as the test split. (default: :obj:`()`)
        ratio (float, optional): The number of false triples for each true one.
            (default: :obj:`1.0`)
        negatives (str, optional): See above. (default: :obj:`"observed"`)
        least (int, optional): The minimum number of true triples that a relation
            needs to have its own slope and intercept. (default: :obj:`10`)
        seed (int, optional): The seed for choosing false triples.
            (default: :obj:`0`)
    """
    if least < 1:
        raise ValueError(f"'least' must be positive (got {least})")
    triples = labelled_triples(model, data, filter_with, ratio, negatives, seed)
    scores = triple_scores(model, triples.head, triples.rel, triples.tail)
    training = _of_training(model, data, filter_with, negatives, seed)
    mean, std = _units(model, training, scores)
    values = (scores - mean[triples.rel]) / std[triples.rel]
    truth = triples.is_true.astype(np.float64)
    whole = _fit(values, truth, np.zeros(2), np.zeros(2))
    if whole[0] <= 0:
        raise ValueError(
            "the scores of true triples must be higher than those of false ones: the "
            "model has not learned anything about this split"
        )
    count = np.bincount(
        triples.rel[triples.is_true], minlength=model.num_relations
    ).astype(np.int64)
    slope = whole[0] / std
    intercept = whole[1] - slope * mean
    own = _fit_relations(scores, triples, np.flatnonzero(count >= least))
    for r, (own_slope, own_intercept) in own.items():
        slope[r], intercept[r] = own_slope, own_intercept
    count[~np.isin(np.arange(len(count)), list(own))] = 0
    return Calibration(
        torch.from_numpy(slope),
        torch.from_numpy(intercept),
        torch.from_numpy(count),
        float(ratio),
        negatives,
    )


def labelled_triples(
    model: KBLRN,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
    ratio: float = 1.0,
    negatives: str = "observed",
    seed: int = 0,
) -> LabelledTriples:
    r"""Returns the triples that a knowledge base asks about, and false triples.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): The knowledge base.
        filter_with (iterable, optional): See :meth:`calibrate`.
            (default: :obj:`()`)
        ratio (float, optional): See :meth:`calibrate`. (default: :obj:`1.0`)
        negatives (str, optional): See :meth:`calibrate`.
            (default: :obj:`"observed"`)
        seed (int, optional): See :meth:`calibrate`. (default: :obj:`0`)
    """
    if not 0 < ratio < np.inf:
        raise ValueError(f"'ratio' must be positive (got {ratio})")
    if negatives not in NEGATIVES:
        names = ", ".join(NEGATIVES)
        raise ValueError(f"'negatives' must be one of {names} (got {negatives!r})")
    data = kb_for(model, data)
    true = [column.numpy() for column in flat_triples(data, "edge_label_index")]
    if len(true[0]) == 0:
        raise ValueError("'data' must ask about at least one triple (got none)")
    rng = np.random.default_rng(seed)
    order = rng.permutation(max(1, round(ratio * len(true[0])))) % len(true[0])
    corruption = _Corruption(data, _facts(model, data, filter_with), negatives, rng)
    return _labelled(true, corruption.of([one[order] for one in true]))


def _facts(
    model: KBLRN, data: HeteroData, filter_with: Iterable[HeteroData | Data]
) -> KnownFacts:
    others = [data, *model.known, *listed(filter_with, "filter_with")]
    return KnownFacts(data, others, "filter_with")


def _labelled(true: list[Ids], false: list[Ids]) -> LabelledTriples:
    labels = np.repeat([True, False], [len(true[0]), len(false[0])])
    head, rel, tail = (np.concatenate(both) for both in zip(true, false))
    return LabelledTriples(head, rel, tail, labels)


def reliability_of(
    model: KBLRN,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
    seed: int = 1,
    num_bins: int = 15,
) -> Reliability:
    r"""Compares the probabilities of a calibrated model with the truth.

    False triples are drawn in the same way as in its calibration.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): The split whose triples are true, such as the
            test split.
        filter_with (iterable, optional): See :meth:`calibrate`.
            (default: :obj:`()`)
        seed (int, optional): The seed for choosing false triples.
            (default: :obj:`1`)
        num_bins (int, optional): The number of bins. (default: :obj:`15`)
    """
    found = model.calibration
    if found is None:
        raise ValueError("'model' must be calibrated (got one that is not)")
    choices = found.ratio, found.negatives, seed
    triples = labelled_triples(model, data, filter_with, *choices)
    scores = triple_scores(model, triples.head, triples.rel, triples.tail)
    probability = found.probability(
        torch.from_numpy(scores), torch.from_numpy(triples.rel)
    )
    return Reliability.of(probability.numpy(), triples.is_true, num_bins)


def triple_scores(model: KBLRN, head: Ids, rel: Ids, tail: Ids) -> Floats:
    r"""Returns the score of each triple, from both of its queries if they differ.

    Args:
        model (KBLRN): The model.
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
    """
    parts = expert_scores(model, head, rel, tail)
    return np.sum(list(parts.values()), axis=0)


def expert_scores(
    model: KBLRN, head: Ids, rel: Ids, tail: Ids, progress: bool = False
) -> dict[str, Floats]:
    r"""Returns the score of each triple by each expert; see
    :meth:`KBLRN.score_experts`.

    Args:
        model (KBLRN): The model.
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    kinds = {"heads": head, "relations": rel, "tails": tail}
    columns = [as_ids(ids, kind) for kind, ids in kinds.items()]
    sizes = model.num_nodes, model.num_relations, model.num_nodes
    check_ids(dict(zip(kinds, zip(columns, sizes))))
    device, size = device_of(model), len(columns[0])
    found = {name: np.empty(size) for name in model.experts}

    def score(begin: int, _: None) -> int:
        part = slice(begin, min(begin + _TRIPLES, size))
        h, r, t = (torch.from_numpy(one[part]).to(device) for one in columns)
        for name, one in model.score_experts(h, r, t).items():
            found[name][part] = one.double().cpu().numpy()
        return part.stop - begin

    bar = ProgressBar(total=size, desc="Scoring", unit="triple", disable=not progress)
    with bar, evaluating(model):
        for number in side_by_side(score, range(0, size, _TRIPLES), device):
            bar.update(number)
    return found


def _of_training(
    model: KBLRN,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data],
    negatives: str,
    seed: int,
) -> LabelledTriples:
    """Returns some training triples of each relation, and as many false ones."""
    data = kb_for(model, data)
    rng = np.random.default_rng([seed, 1])
    triples = [column.numpy() for column in flat_triples(data)]
    order = rng.permutation(len(triples[0]))
    order = order[np.argsort(triples[1][order], kind="stable")]
    rel = triples[1][order]
    is_early = np.arange(len(rel)) - np.searchsorted(rel, rel) < _NUM_IN_TRAINING
    true = [column[order[is_early]] for column in triples]
    facts = _facts(model, data, filter_with)
    return _labelled(true, _Corruption(data, facts, negatives, rng).of(true))


def _units(
    model: KBLRN, triples: LabelledTriples, others: Floats
) -> tuple[Floats, Floats]:
    """Returns the mean and the deviation of the scores of each relation.

    Scores of one relation may be a hundred times those of another. A relation
    without training triples has the mean and the deviation of other scores.
    """
    scores = triple_scores(model, triples.head, triples.rel, triples.tail)
    mean = np.full(model.num_relations, others.mean())
    std = np.full(model.num_relations, others.std() or 1.0)
    for r in np.unique(triples.rel).tolist():
        own = scores[triples.rel == r]
        mean[r], std[r] = own.mean(), own.std() or 1.0
    return mean, std


class _Corruption:
    """Creates false triples from true ones."""

    def __init__(
        self,
        data: HeteroData,
        known: KnownFacts,
        negatives: str,
        rng: np.random.Generator,
    ) -> None:
        self.known, self.rng = known, rng
        self.num_nodes = int(data["entity"].num_nodes)
        self.pools: list[tuple[Ids, Ids]] = []
        for edge_type in data.edge_types:
            ends = data[edge_type].edge_index.numpy()
            pool = tuple(np.unique(end) for end in ends)
            is_wide = negatives == "observed" and min(map(len, pool)) > 1
            every = np.arange(self.num_nodes)
            self.pools.append(pool if is_wide else (every, every))  # type: ignore[arg-type]

    def of(self, triples: list[Ids]) -> list[Ids]:
        false = [column.copy() for column in triples]
        side = np.arange(len(false[0])) % 2  # heads and tails by turns
        left = np.arange(len(false[0]))
        for draw in range(_MAX_DRAWS):
            # What is hard to make false may take any entity at last.
            entity = self._draw(false[1][left], side[left], draw > _MAX_DRAWS // 2)
            for end, column in ((0, false[0]), (1, false[2])):
                rows = side[left] == end
                column[left[rows]] = entity[rows]
            wrong = self.known.contains(*(one[left] for one in false))
            if not wrong.any():
                return false
            for one, before in zip(false, triples):
                one[left[wrong]] = before[left[wrong]]
            left = left[wrong]
        keep = np.ones(len(false[0]), bool)
        keep[left] = False  # there are no other triples
        return [one[keep] for one in false]

    def _draw(self, rel: Ids, side: Ids, any_entity: bool) -> Ids:
        drawn = self.rng.integers(self.num_nodes, size=len(rel))
        if any_entity:
            return drawn
        for code in np.unique(2 * rel + side).tolist():
            pool = self.pools[code // 2][code % 2]
            rows = np.flatnonzero(2 * rel + side == code)
            drawn[rows] = pool[self.rng.integers(len(pool), size=len(rows))]
        return drawn


def _fit_relations(
    scores: Floats, triples: LabelledTriples, relations: Ids
) -> dict[int, tuple[float, float]]:
    """Returns slope and intercept of each relation whose slope is positive.

    Scores of one relation may be a hundred times those of another. So each is measured
    in its own deviations, in which relations are alike, and pulled towards all others.
    """
    truth = triples.is_true.astype(np.float64)
    values, units = np.zeros_like(scores), {}
    for r in relations.tolist():
        rows = triples.rel == r
        units[r] = mean, std = scores[rows].mean(), scores[rows].std() or 1.0
        values[rows] = (scores[rows] - mean) / std
    rows = np.isin(triples.rel, relations)
    usual = _fit(values[rows], truth[rows], np.zeros(2), np.zeros(2))
    precision = np.full(2, 1 / _SPREAD)
    found = {}
    for r, (mean, std) in units.items():
        rows = triples.rel == r
        slope, intercept = _fit(values[rows], truth[rows], usual, precision)
        if slope > 0:
            found[r] = slope / std, intercept - slope * mean / std
    return found


def _fit(values: Floats, truth: Floats, centre: Floats, precision: Floats) -> Floats:
    """Fits slope and intercept by Newton's method, regularised towards given ones.

    Platt's targets, which are not quite 0 and 1, keep them finite.
    """
    num_true = truth.sum()
    high, low = (num_true + 1) / (num_true + 2), 1 / (len(truth) - num_true + 2)
    target = np.where(truth > 0, high, low)
    columns = np.stack([values, np.ones_like(values)], axis=1)

    def loss_at(point: Floats) -> float:
        logit = columns @ point
        away = point - centre
        fit = np.logaddexp(0.0, logit) - target * logit
        return float(fit.sum() + (precision * away * away).sum() / 2)

    found, loss = centre.copy(), loss_at(centre)
    for _ in range(_MAX_STEPS):
        probability = 1 / (1 + np.exp(-np.clip(columns @ found, -500, 500)))
        gradient = columns.T @ (probability - target) + precision * (found - centre)
        weight = probability * (1 - probability)
        hessian = (columns * weight[:, None]).T @ columns + np.diag(precision + 1e-9)
        step = np.linalg.solve(hessian, gradient)
        # Far from the optimum, a whole step may be too long, and lead away from it.
        step *= min(1.0, 5.0 / max(np.abs(step).max(), 1e-12))
        while (after := loss_at(found - step)) > loss and np.abs(step).max() > 1e-8:
            step /= 2
        found, loss = found - step, after
        if np.abs(step).max() < 1e-8:
            break
    return found
