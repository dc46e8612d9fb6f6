"""The most probable answers to queries, with their scores and probabilities."""

from collections.abc import Iterable, Iterator
from numbers import Integral

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data.queries import Queries
from kblrn_pyg.evaluation import device_of, evaluating, listed, score_rows
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.nn.build import instance_of
from kblrn_pyg.predict.predictions import Predictions

Ids = NDArray[np.int64]
Scores = NDArray[np.floating]
Splits = Iterable[HeteroData | Data]
One = int | str
# Lists, because a string is a sequence of strings, too.
Several = list[int] | list[str] | list[int | str]

# How many scores are held at once, in a handful of copies.
_SCORES = 1 << 22
# How many triples are judged at once.
_TRIPLES = 1 << 16


def predict_tails(
    model: KBLRN,
    head: One | Several,
    relation: One | Several,
    k: int = 10,
    novel: bool = False,
    known: Splits = (),
) -> Predictions | list[Predictions]:
    r"""Returns the most probable tails of :math:`(h, r, ?)`.

    The probability of a tail is the softmax of the product of experts over
    *all* entities, including known answers:

    .. math::
        p(t \mid h, r) = \frac{\exp s(h, r, t)}
        {\sum_{t' \in \mathcal{E}} \exp s(h, r, t')}

    where :math:`s` is the score. Leaving known answers out of the list does not
    change the probability. The score of a known fact of an entity with a self-loop
    includes evidence that training left out; see :meth:`KBLRN.own_evidence`.

    Args:
        model (KBLRN): The model, created by :meth:`KBLRN.from_data`.
        head (int or str or list): The head, by id, name or identifier. A list
            stands for one query each, which are scored together.
        relation (int or str or list): The relation, or one for each head.
        k (int, optional): The maximum number of tails. (default: :obj:`10`)
        novel (bool, optional): If set to :obj:`True`, known facts are left out.
            (default: :obj:`False`)
        known (iterable, optional): Knowledge bases over the same entities and
            relations whose :obj:`edge_index` and :obj:`edge_label_index` are known,
            such as other splits. The :obj:`edge_index` of the knowledge base that
            the model was created from, and :obj:`model.known`, are always known.
            (default: :obj:`()`)

    Returns:
        The predictions, or a list of them if :obj:`head` is a list.

    Example:
        >>> import torch
        >>> from kblrn_pyg.datasets import Families
        >>> _ = torch.manual_seed(0)
        >>> model = KBLRN.from_data(Families()[0], experts="ln", hidden_channels=8)
        >>> found = predict_tails(model, "Ada Crowgarth", "born_in", k=3)
        >>> [prediction.rank for prediction in found]
        [1, 2, 3]
        >>> found[0].probability >= found[1].probability
        True
        >>> several = predict_tails(model, ["Ada Crowgarth", 7], "born_in", novel=True)
        >>> [len(found) for found in several], several[0][0].known
        ([10, 10], False)
    """
    return _predict(model, "tail", head, relation, k, novel, known)


def predict_heads(
    model: KBLRN,
    relation: One | Several,
    tail: One | Several,
    k: int = 10,
    novel: bool = False,
    known: Splits = (),
) -> Predictions | list[Predictions]:
    r"""Returns the most probable heads of :math:`(?, r, t)`.

    The probability of a head is the softmax of the product of experts over
    *all* entities, including known answers:

    .. math::
        p(h \mid r, t) = \frac{\exp s(h, r, t)}
        {\sum_{h' \in \mathcal{E}} \exp s(h', r, t)}

    Args:
        model (KBLRN): See :meth:`predict_tails`.
        relation (int or str or list): The relation, or one for each tail.
        tail (int or str or list): The tail, by id, name or identifier. A list
            stands for one query each, which are scored together.
        k (int, optional): The maximum number of heads. (default: :obj:`10`)
        novel (bool, optional): See :meth:`predict_tails`.
            (default: :obj:`False`)
        known (iterable, optional): See :meth:`predict_tails`.
            (default: :obj:`()`)

    Returns:
        The predictions, or a list of them if :obj:`tail` is a list.

    Example:
        >>> import torch
        >>> from kblrn_pyg.datasets import Families
        >>> _ = torch.manual_seed(0)
        >>> model = KBLRN.from_data(Families()[0], experts="ln", hidden_channels=8)
        >>> found = predict_heads(model, "born_in", "Quarstead", k=2)
        >>> {(prediction.relation, prediction.tail) for prediction in found}
        {('born_in', 'Quarstead')}
        >>> everyone = predict_heads(model, "born_in", "Quarstead", k=2232)
        >>> round(sum(prediction.probability for prediction in everyone), 5)
        1.0
    """
    return _predict(model, "head", tail, relation, k, novel, known)


def _predict(
    model: KBLRN,
    side: str,
    entity: One | Several,
    relation: One | Several,
    k: int,
    novel: bool,
    known: Splits,
) -> Predictions | list[Predictions]:
    check_k(k)
    facts = model.known_facts.including(listed(known, "known"))
    names = model.vocabulary
    pairs = [
        (names.entities.find(given), names.relations.find(rel))
        for given, rel in _pairs(entity, relation)
    ]
    ids = torch.tensor(pairs, dtype=torch.long).view(-1, 2)
    queries = Queries(ids[:, 0], ids[:, 1], side)
    found: list[Predictions] = []
    with evaluating(model):
        for some, scores, probability in score_queries(model, queries):
            answers = facts.answers(some)
            known_ids = [answers.of(i) for i in range(len(some))]
            best = [_best(row, ids, k, novel) for row, ids in zip(scores, known_ids)]
            found += _predictions(model, some, best, known_ids, (scores, probability))
    return found if isinstance(entity, list | tuple) else found[0]


def _pairs(
    entity: One | Several, relation: One | Several
) -> list[tuple[object, object]]:
    """Pairs each entity with its relation."""
    if not isinstance(entity, list | tuple):
        return [(entity, relation)]
    if not isinstance(relation, list | tuple):
        return [(one, relation) for one in entity]
    if len(relation) != len(entity):
        raise ValueError(
            f"'relation' must be one, or as many as there are entities, {len(entity)} "
            f"(got {len(relation)})"
        )
    return list(zip(entity, relation))


def _best(scores: Scores, known: Ids, k: int, novel: bool) -> Ids:
    """Returns the answers with the highest scores."""
    if not novel:
        return largest(scores, k)
    candidates = np.delete(np.arange(len(scores)), known)
    return candidates[largest(scores[candidates], k)]


def _predictions(
    model: KBLRN,
    queries: Queries,
    best: list[Ids],
    known: list[Ids],
    scored: tuple[Scores, Scores],
) -> Iterator[Predictions]:
    """Returns the predictions of each query; all are judged together."""
    counts = torch.tensor([len(one) for one in best])
    row = torch.arange(len(queries)).repeat_interleave(counts)
    answer = torch.from_numpy(np.concatenate(best))
    queries = queries[row]
    columns = [rows[row.numpy(), answer.numpy()].tolist() for rows in scored]
    is_known = [np.isin(some, ids) for some, ids in zip(best, known)]
    columns.append(np.concatenate(is_known).tolist())
    more = judged(model, queries, answer)
    columns += [column for column in more if column is not None]
    triples = list(zip(*(ids.tolist() for ids in queries.triples(answer))))
    begin = 0
    for end in counts.cumsum(0).tolist():
        some = (column[begin:end] for column in columns)
        yield Predictions.of(model.vocabulary, triples[begin:end], *some)
        begin = end


def judged(
    model: KBLRN, queries: Queries, answer: Tensor
) -> tuple[list[str], list[float] | None]:
    r"""Returns which experts have a score for triples, and the probability that
    these are true.

    These are the experts whose score is not zero. There are no probabilities unless
    the model is calibrated.

    Args:
        model (KBLRN): The model, in evaluation mode.
        queries (Queries): The queries.
        answer (torch.Tensor): An answer to each query.
    """
    device = device_of(model)
    triples = queries.to(device).triples(answer.to(device))
    some = [
        model.score_experts(*columns)
        for columns in zip(*(ids.split(_TRIPLES) for ids in triples))
    ]
    parts = {name: torch.cat([one[name] for one in some]) for name in some[0]}
    spoke = {name: values.ne(0).tolist() for name, values in parts.items()}
    letters = [
        instance_of(name for name, column in spoke.items() if column[i])
        for i in range(len(queries))
    ]
    if model.calibration is None:
        return letters, None
    total = sum(part.double() for part in parts.values())
    assert isinstance(total, Tensor)
    sure = model.calibration.probability(total.cpu(), triples[1].cpu())
    return letters, sure.tolist()


def check_k(k: int) -> None:
    """Refuses a number of predictions that is not a positive integer."""
    if not isinstance(k, Integral):
        raise ValueError(f"'k' must be an integer (got {k!r})")
    if k < 1:
        raise ValueError(f"'k' must be positive (got {k})")


def score_queries(
    model: KBLRN, queries: Queries
) -> Iterator[tuple[Queries, Scores, Scores]]:
    """Returns some queries at a time, the scores and probabilities of all answers."""
    names = list(model.vocabulary.relations.identifiers)
    size = max(1, _SCORES // model.num_nodes)
    for begin in range(0, len(queries), size):
        part = queries[begin : begin + size]
        scores = score_rows(model, part, names)
        probability = torch.from_numpy(scores).softmax(dim=1)
        # One infinite score makes its whole row NaN.
        if probability[:, 0].isnan().any():
            raise ValueError("the scores of the model must be finite (got inf)")
        yield part, scores, probability.numpy()


def largest(values: Scores, k: int) -> Ids:
    r"""Returns the positions of the largest values, ties in their order.

    Example:
        >>> largest(np.array([1.0, 3.0, 2.0, 3.0, 2.0]), 3).tolist()
        [1, 3, 2]
    """
    places = np.arange(len(values))
    if k < len(values):
        places = np.flatnonzero(values >= np.partition(values, -k)[-k])
    order = np.argsort(-values[places], kind="stable")
    return places[order[:k]]
