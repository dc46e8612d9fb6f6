"""From a model and a knowledge base to ranks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from tqdm import tqdm

from kblrn_pyg.data import Vocabulary, flat_triples, validate_kb
from kblrn_pyg.evaluation.metrics import Metrics, auc_pr
from kblrn_pyg.evaluation.ranks import HEAD, TAIL, Ids, RankTable, relation_ids
from kblrn_pyg.kernels.ranking import Standings, rank_answers
from kblrn_pyg.kernels.threads import default_threads, run_all

# The memory that the scores of one chunk of queries may take: on a CPU little,
# so that they stay in the cache, elsewhere much, so that all cores are busy. A
# model of three experts may hold four such matrices: one for each, and their sum.
_BYTES, _BYTES_ELSEWHERE = 32 * 2**20, 256 * 2**20
_BYTES_PER_SCORE = 4 * 4


class Scorer(Protocol):
    r"""What evaluation needs of a model: scores of all tails and of all heads.

    On a CPU several threads ask for scores at once.
    """

    training: bool

    @property
    def num_nodes(self) -> int:
        """The number of entities."""

    @property
    def num_relations(self) -> int:
        """The number of relations."""

    def score_tails(self, head_index: Tensor, rel_type: Tensor) -> Tensor:
        """Scores every entity as the tail of each query, ``[B, num_nodes]``."""

    def score_heads(self, rel_type: Tensor, tail_index: Tensor) -> Tensor:
        """Scores every entity as the head of each query, ``[B, num_nodes]``."""

    def parameters(self) -> Iterator[Any]:
        """The parameters, whose device is that of the queries."""

    def train(self, mode: bool = True) -> Any:
        """Switches training mode on or off."""


class Triples(NamedTuple):
    r"""Flat triples.

    Args:
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
    """

    head: Ids
    rel: Ids
    tail: Ids

    def sides(self, asked: int) -> tuple[Ids, Ids]:
        """Returns the entities that are given, and those that are asked for."""
        return (self.tail, self.head) if asked == HEAD else (self.head, self.tail)


class Queries(NamedTuple):
    r"""The distinct queries of one side, and what is known to answer them.

    Args:
        relations (list): The names of all relations.
        side (int): Which side is asked for.
        given (numpy.ndarray): The entity that each query gives.
        rel (numpy.ndarray): The relation of each query, ascending.
        known_ptr (numpy.ndarray): Where the known answers of each query begin.
        known (numpy.ndarray): The known answers, distinct within a query.
    """

    relations: list[str]
    side: int
    given: Ids
    rel: Ids
    known_ptr: Ids
    known: Ids

    def text(self, i: int) -> str:
        """Returns a query as people write it."""
        name, entity = self.relations[self.rel[i]], self.given[i]
        return (
            f"(?, {name}, {entity})" if self.side == HEAD else f"({entity}, {name}, ?)"
        )


def evaluate(
    model: Scorer,
    data: HeteroData,
    filter_with: Iterable[HeteroData] = (),
    batch_size: int | None = None,
    relations: Iterable[int | str] | None = None,
    progress: bool = False,
) -> RankTable:
    r"""Ranks the triples that a knowledge base asks about, from both sides.

    Ranks are filtered and realistic: entities that are known to answer a query,
    other than the true answer in question, are no candidates, and a tie counts
    half. Queries that several triples share are scored once.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The knowledge base. Its :obj:`edge_label_index` is
            ranked; this and its :obj:`edge_index` are known answers.
        filter_with (iterable, optional): Knowledge bases over the same entities
            and relations whose :obj:`edge_label_index` is known, too: the
            validation split, when the test split is ranked.
            (default: :obj:`()`)
        batch_size (int, optional): The number of queries that are scored at
            once by one thread. (default: :obj:`None`, what fits into 32 MB,
            on another device than a CPU into 256 MB)
        relations (iterable, optional): The relations to rank, by id or name.
            (default: :obj:`None`, all)
        progress (bool, optional): If set to :obj:`True`, shows a progress bar.
            (default: :obj:`False`)

    Returns:
        A row for each triple with its head asked for, then a row for each
        triple with its tail asked for.
    """
    _check_model(model, data)
    batch_size = _batch_size(batch_size, model)
    names = _relation_names(data)
    asked = _triples([(data, "edge_label_index")])
    if relations is not None:
        keep = np.isin(asked.rel, relation_ids(relations, names))
        asked = Triples(*(column[keep] for column in asked))
    known = _known_triples(data, filter_with)

    sides = [
        _queries(asked, known, side, model.num_nodes, names) for side in (HEAD, TAIL)
    ]
    total = sum(len(queries.rel) for queries, _ in sides)
    standings, num_answers = [], []
    bar = tqdm(total=total, desc="Ranking", unit="query", disable=not progress)
    with bar, evaluating(model):
        for queries, row in sides:
            _, answer = asked.sides(queries.side)
            standings.append(
                _rank_side(model, queries, row, answer, batch_size, bar.update)
            )
            num_answers.append(np.diff(queries.known_ptr)[row])
    both = Standings(*map(np.concatenate, zip(*standings)))
    return RankTable(
        relations=names,
        relation=np.tile(asked.rel, 2),
        side=np.repeat([HEAD, TAIL], len(asked.rel)),
        head=np.tile(asked.head, 2),
        tail=np.tile(asked.tail, 2),
        rank=1 + both.better + both.ties / 2,
        num_candidates=both.num_candidates,
        num_answers=np.concatenate(num_answers),
    )


@dataclass(frozen=True)
class QueryResult:
    r"""How well a model answers one query.

    Args:
        auc_pr (float): The area under the precision-recall curve over all
            entities.
        metrics (Metrics): What the ranks of the answers sum up to, each with
            the other answers removed.
    """

    auc_pr: float
    metrics: Metrics


def query_auc(
    model: Scorer,
    data: HeteroData,
    relation: int | str,
    head: int | str | None = None,
    tail: int | str | None = None,
    answers: Sequence[int | str] = (),
) -> QueryResult:
    r"""Compares the answers to one query with a complete list of them.

    All answers count, those that are known from training, too.

    Args:
        model (KBLRN): The model.
        data (HeteroData): The knowledge base.
        relation (int or str): The relation, by id or name.
        head (int or str, optional): The head, if tails are asked for.
            (default: :obj:`None`)
        tail (int or str, optional): The tail, if heads are asked for.
            (default: :obj:`None`)
        answers (sequence): All entities that complete the query.
    """
    if head is not None and tail is None:
        side, given = TAIL, head
    elif tail is not None and head is None:
        side, given = HEAD, tail
    else:
        raise ValueError(
            f"exactly one of 'head' and 'tail' must be given (got {head} and {tail})"
        )
    _check_model(model, data)
    names = _relation_names(data)
    true = np.unique(_entity_ids(data, answers))
    if len(true) == 0:
        raise ValueError("'answers' must name at least one entity (got none)")
    queries = Queries(
        relations=names,
        side=side,
        given=_entity_ids(data, [given]),
        rel=np.array(relation_ids([relation], names)),
        known_ptr=np.array([0, len(true)]),
        known=true,
    )
    with evaluating(model):
        scores = _score(model, queries, slice(0, 1))
    row = np.zeros(len(true), np.int64)
    found = rank_answers(scores, row, true, queries.known_ptr, queries.known)
    is_answer = np.zeros(model.num_nodes, np.bool_)
    is_answer[true] = True
    return QueryResult(
        auc_pr(scores[0], is_answer),
        Metrics.of(1 + found.better + found.ties / 2, found.num_candidates),
    )


def _queries(
    asked: Triples, known: Triples, side: int, num_nodes: int, relations: list[str]
) -> tuple[Queries, Ids]:
    """Returns the distinct queries behind triples, and which one is each triple's."""
    given, _ = asked.sides(side)
    code, row = np.unique(asked.rel * num_nodes + given, return_inverse=True)
    known_given, known_answer = known.sides(side)
    known_code = known.rel * num_nodes + known_given
    place = np.searchsorted(code, known_code)
    is_asked = np.append(code, -1)[place] == known_code  # -1: beyond the last one
    place, known_answer = place[is_asked], known_answer[is_asked]
    # Row and answer in one number, so that one sort groups them and drops
    # what is known twice.
    pairs = np.unique(place * num_nodes + known_answer)
    known_ptr = np.searchsorted(pairs, np.arange(len(code) + 1) * num_nodes)
    rel, entity = np.divmod(code, num_nodes)
    return Queries(relations, side, entity, rel, known_ptr, pairs % num_nodes), row


def _rank_side(
    model: Scorer,
    queries: Queries,
    row: Ids,
    answer: Ids,
    batch_size: int,
    done: Callable[[int], object],
) -> Standings:
    """Ranks each answer to the query in its row, one chunk of rows at a time."""
    order = np.argsort(row, kind="stable")
    bounds = np.searchsorted(row[order], np.arange(len(queries.rel) + 1))
    out = Standings(*(np.empty(len(row), np.int64) for _ in Standings._fields))

    def rank(begin: int, _: None) -> int:
        end = min(begin + batch_size, len(queries.rel))
        scores = _score(model, queries, slice(begin, end))
        part = order[bounds[begin] : bounds[end]]
        known_ptr = queries.known_ptr[begin : end + 1]
        found = rank_answers(
            scores, row[part] - begin, answer[part], known_ptr, queries.known
        )
        for column, values in zip(out, found):
            column[part] = values
        return end - begin

    for number in _side_by_side(
        rank, range(0, len(queries.rel), batch_size), _device(model)
    ):
        done(number)
    return out


def _side_by_side(
    rank: Callable[[int, None], int], chunks: range, device: torch.device
) -> Iterator[int]:
    """Ranks one chunk with each thread of a CPU.

    Threads that share a chunk would wait for each other at every step.
    """
    num_threads = min(default_threads(), torch.get_num_threads(), len(chunks))
    if device.type != "cpu" or num_threads < 2:
        yield from run_all(rank, chunks, lambda: None, 1)
        return

    def rank_alone(begin: int, _: None) -> int:
        torch.set_num_threads(1)  # of this thread, and so is 'no_grad'
        with torch.no_grad():
            return rank(begin, None)

    before = torch.get_num_threads()
    try:
        yield from run_all(rank_alone, chunks, lambda: None, num_threads)
    finally:
        torch.set_num_threads(before)


def _score(model: Scorer, queries: Queries, part: slice) -> np.ndarray:
    """Scores all entities as answers to some queries."""
    device = _device(model)
    given = torch.from_numpy(queries.given[part]).to(device)
    rel = torch.from_numpy(queries.rel[part]).to(device)
    if queries.side == HEAD:
        scores = model.score_heads(rel, given)
    else:
        scores = model.score_tails(given, rel)
    if scores.size() != (len(rel), model.num_nodes):
        raise ValueError(
            f"the scores of the model must have the shape "
            f"{[len(rel), model.num_nodes]} (got {list(scores.size())})"
        )
    # The maximum of a row is NaN if any score is, and takes no memory to find.
    is_nan = scores.amax(dim=1).isnan()
    if is_nan.any():
        query = queries.text(part.start + int(is_nan.nonzero()[0]))
        raise ValueError(f"the scores of the model must be numbers (got NaN: {query})")
    if scores.dtype not in (torch.float32, torch.float64):
        scores = scores.float()
    return np.ascontiguousarray(scores.detach().cpu().numpy())


@contextmanager
def evaluating(model: Scorer) -> Iterator[None]:
    r"""Switches off training mode and gradients for a while.

    Args:
        model (KBLRN): The model.
    """
    was_training = model.training
    model.train(False)
    try:
        # Not inference mode: what a model keeps from here must stay usable in
        # training.
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def _device(model: Scorer) -> torch.device:
    parameter = next(iter(model.parameters()), None)
    return torch.device("cpu") if parameter is None else parameter.device


def _batch_size(batch_size: int | None, model: Scorer) -> int:
    if batch_size is None:
        num_bytes = _BYTES if _device(model).type == "cpu" else _BYTES_ELSEWHERE
        return max(1, num_bytes // (_BYTES_PER_SCORE * max(model.num_nodes, 1)))
    if batch_size < 1:
        raise ValueError(f"'batch_size' must be positive (got {batch_size})")
    return batch_size


def _check_model(model: Scorer, data: HeteroData) -> None:
    validate_kb(data)
    sizes = (data["entity"].num_nodes, len(data.edge_types))
    if (model.num_nodes, model.num_relations) != sizes:
        raise ValueError(
            f"'model' must be over the entities and relations of 'data', {sizes} "
            f"(got {(model.num_nodes, model.num_relations)})"
        )


def _known_triples(data: HeteroData, filter_with: Iterable[HeteroData]) -> Triples:
    if isinstance(filter_with, HeteroData):
        raise ValueError("'filter_with' must be a list of them (got one HeteroData)")
    sources = [(data, "edge_index"), (data, "edge_label_index")]
    for other in filter_with:
        validate_kb(other)
        if other["entity"].num_nodes != data["entity"].num_nodes or _relation_names(
            other
        ) != _relation_names(data):
            raise ValueError(
                "'filter_with' must be over the entities and relations of 'data' "
                f"(got {other['entity'].num_nodes} entities and "
                f"{len(other.edge_types)} relations)"
            )
        sources.append((other, "edge_label_index"))
    return _triples(sources)


def _triples(sources: list[tuple[HeteroData, str]]) -> Triples:
    columns = zip(*(flat_triples(data, key) for data, key in sources))
    return Triples(*(torch.cat(column).cpu().numpy() for column in columns))


def _relation_names(data: HeteroData) -> list[str]:
    return [relation for _, relation, _ in data.edge_types]


def _entity_ids(data: HeteroData, entities: Sequence[int | str]) -> Ids:
    names, num_nodes = Vocabulary.of(data).entities, data["entity"].num_nodes
    ids = np.array(
        [names.resolve(e) if isinstance(e, str) else e for e in entities], np.int64
    )
    outside = ids[(ids < 0) | (ids >= num_nodes)]
    if len(outside) > 0:
        raise ValueError(
            f"entities must lie in 0 to {num_nodes - 1} (got {outside[0]})"
        )
    return ids
