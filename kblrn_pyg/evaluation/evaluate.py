"""Computes ranks from a model and a knowledge base."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.backend import uses_kernels
from kblrn_pyg.data import Names, flat_triples
from kblrn_pyg.data.candidates import Candidates
from kblrn_pyg.data.known import Answers, KnownFacts
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.evaluation.model import (
    ScoringModel,
    checked_scores,
    device_of,
    evaluating,
    kb_for,
    listed,
    score_on_device,
)
from kblrn_pyg.evaluation.ranks import Ids, RankTable, relation_ids
from kblrn_pyg.kernels.ranking import Standings, rank_answers
from kblrn_pyg.kernels.threads import default_threads, no_scratch, run_all
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.shard import add_up, num_processes, process_rank

# Rows of scores of queries, in one or several ways.
Score = Callable[[Queries], Iterable[Tensor]]

# The memory that the scores of one chunk of queries may take: on a CPU little,
# so that they stay in the cache, elsewhere much, so that all cores are busy. A
# model of three experts may hold four such matrices: one for each, and their sum.
_BYTES, _BYTES_ELSEWHERE = 32 * 2**20, 256 * 2**20
_BYTES_PER_SCORE = 4 * 4
# Fewer queries than this read the embeddings for little: these may take more memory.
_FEW, _MOST_BYTES = 8, 640 * 2**20


def evaluate(
    model: ScoringModel,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
    batch_size: int | None = None,
    relations: Iterable[int | str] | None = None,
    progress: bool = False,
    candidates: str = "all",
) -> RankTable:
    r"""Ranks the triples that a knowledge base asks about, from both sides.

    Ranks are filtered and realistic: entities that are known to answer a query,
    other than the true answer in question, are not candidates, and a tie counts as
    one half. Queries that several triples share are scored once.

    Args:
        model (KBLRN): The model.
        data (HeteroData or Data): The knowledge base, in any form that the model
            can be created from. Its :obj:`edge_label_index` is ranked; this and its
            :obj:`edge_index` are known answers.
        filter_with (iterable, optional): Knowledge bases over the same entities
            and relations whose triples are known, too: the validation split,
            when the test split is ranked.
            (default: :obj:`()`)
        batch_size (int, optional): The number of queries that one thread scores
            at once. (default: :obj:`None`, what fits into 32 MB, but 8 if 640 MB
            are enough, or into 256 MB on a device other than a CPU)
        relations (iterable, optional): The relations to rank, by id or name.
            (default: :obj:`None`, all)
        progress (bool, optional): If set to :obj:`True`, shows a progress bar.
            (default: :obj:`False`)
        candidates (str, optional): :obj:`"observed"` lets answers compete only with
            entities that the relation has on that side in training,
            :obj:`"types"` with those of the right node type; see
            :class:`~kblrn_pyg.data.candidates.Candidates`. Such ranks cannot be
            compared with those of the literature. (default: :obj:`"all"`)

    Returns:
        A row for the head query of each triple, then a row for the tail query of
        each triple.
    """
    request = _Request(filter_with, batch_size, relations, progress, candidates)
    names = [relation for _, relation, _ in kb_for(model, data).edge_types]

    def score(queries: Queries) -> list[Tensor]:
        return [score_on_device(model, queries, names)]

    return _evaluate(model, data, request, score, number=1)[0]


def evaluate_each(
    model: ScoringModel,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data],
    score: Score,
    number: int,
) -> list[RankTable]:
    r"""Does the same as :meth:`evaluate` for several scoring functions at once,
    which may share most of their work.

    Args:
        model (KBLRN): The model, for its device and its entities.
        data (HeteroData or Data): See :meth:`evaluate`.
        filter_with (iterable): See :meth:`evaluate`.
        score (callable): Returns or yields rows of scores of some queries, one
            tensor for each scoring function.
        number (int): The number of scoring functions.
    """
    names = [relation for _, relation, _ in kb_for(model, data).edge_types]

    def checked(queries: Queries) -> Iterator[Tensor]:
        found = 0
        for found, scores in enumerate(score(queries), 1):
            if found <= number:
                yield checked_scores(model, queries, names, scores)
        if found != number:
            raise ValueError(
                f"'score' must return {number} rows of scores for a query (got {found})"
            )

    return _evaluate(model, data, _Request(filter_with), checked, number)


class _Request(NamedTuple):
    """The arguments of an evaluation; see :meth:`evaluate`."""

    filter_with: Iterable[HeteroData | Data]
    batch_size: int | None = None
    relations: Iterable[int | str] | None = None
    progress: bool = False
    candidates: str = "all"


def _evaluate(
    model: ScoringModel,
    data: HeteroData | Data,
    request: _Request,
    score: Score,
    number: int,
) -> list[RankTable]:
    data = kb_for(model, data)
    batch_size = _batch_size(request.batch_size, model)
    names = relation_names(data)
    head, rel, tail = flat_triples(data, "edge_label_index")
    if request.relations is not None:
        ids = relation_ids(request.relations, Names("relation", names))
        keep = torch.isin(rel, torch.tensor(ids, dtype=torch.long))
        head, rel, tail = head[keep], rel[keep], tail[keep]
    others = listed(request.filter_with, "filter_with")
    known = KnownFacts(data, [data, *others], "filter_with")
    kind = request.candidates
    allowed = None if kind == "all" else Candidates(data, kind)
    if allowed is not None and getattr(model, "shard", None) is not None:
        raise ValueError("'candidates' must be all where several processes rank")
    sides = [
        _Asked.of(Queries.of_triples(head, rel, tail, side), answer, known, allowed)
        for side, answer in zip(SIDES, (head, tail))
    ]
    total = sum(len(asked.queries) for asked in sides)
    is_silent = not request.progress
    bar = ProgressBar(total=total, desc="Ranking", unit="query", disable=is_silent)
    with bar, evaluating(model):
        standings = [
            _rank(model, asked, _Way(score, number), batch_size, bar.update)
            for asked in sides
        ]
    return [
        RankTable(
            relations=names,
            relation=np.tile(rel.numpy(), 2),
            side=np.repeat(range(len(SIDES)), len(rel)),
            head=np.tile(head.numpy(), 2),
            tail=np.tile(tail.numpy(), 2),
            rank=both.rank,
            num_candidates=both.num_candidates,
            num_answers=np.concatenate([asked.num_answers for asked in sides]),
        )
        for both in (
            Standings(*map(np.concatenate, zip(*one))) for one in zip(*standings)
        )
    ]


class _Way(NamedTuple):
    """The scoring functions, and their number."""

    score: Score
    number: int


class _Asked(NamedTuple):
    """The distinct queries of one side, and the answers to rank."""

    queries: Queries
    known: Answers
    row: Ids  # the query of each answer
    answer: Ids
    allowed: Candidates | None  # that answers compete with, if not all

    @classmethod
    def of(
        cls,
        queries: Queries,
        answer: Tensor,
        known: KnownFacts,
        allowed: Candidates | None = None,
    ) -> "_Asked":
        distinct, row = queries.distinct(known.num_nodes)
        rows = row.numpy(), answer.numpy()
        return cls(distinct, known.answers(distinct), *rows, allowed)

    def removed(self, part: slice) -> NDArray[np.bool_] | None:
        """Returns which entities do not compete for some queries; known answers are
        left to the filter."""
        if self.allowed is None:
            return None
        rel = self.queries.rel_type[part].tolist()
        side = self.queries.side
        masks = {r: ~self.allowed.mask(r, side) for r in set(rel)}
        found = np.stack([masks[r] for r in rel])
        for i, row in enumerate(range(part.start, part.stop)):
            found[i, self.known.of(row)] = False
        return found

    @property
    def num_answers(self) -> Ids:
        """The number of known answers of each answer's query."""
        return np.diff(self.known.ptr)[self.row]


def _rank(
    model: ScoringModel,
    asked: _Asked,
    way: _Way,
    batch_size: int,
    done: Callable[[int], object],
) -> list[Standings]:
    """Ranks each answer to the query in its row, one chunk of rows at a time."""
    queries, known, row, answer = asked[:4]
    order = np.argsort(row, kind="stable")
    bounds = np.searchsorted(row[order], np.arange(len(queries) + 1))
    outs = [
        Standings(*(np.zeros(len(row), np.int64) for _ in Standings._fields))
        for _ in range(way.number)
    ]
    shard = getattr(model, "shard", None)

    def rank_chunk(begin: int, _: None) -> int:
        end = min(begin + batch_size, len(queries))
        part = order[bounds[begin] : bounds[end]]
        removed = asked.removed(slice(begin, end))
        for scored, out in zip(way.score(queries[begin:end]), outs):
            found = rank_rows(scored, begin, end, part, removed)
            for column, values in zip(out, found):
                column[part] = values
        return end - begin

    def rank_rows(
        scored: Tensor,
        begin: int,
        end: int,
        part: Ids,
        removed: NDArray[np.bool_] | None,
    ) -> Standings:
        place, true = row[part] - begin, answer[part]
        if removed is not None:
            scored = scored.masked_fill(
                torch.from_numpy(removed).to(scored.device), -torch.inf
            )
        known_ptr = known.ptr[begin : end + 1]
        if not uses_kernels(scored) and shard is None:
            given = scored, place, true, known_ptr, known.entity
            found = rank_on_device(*given)
        else:
            scores = np.ascontiguousarray(scored.cpu().numpy())
            own = None if shard is None else shard.answer_scores(scores, place, true)
            found = rank_answers(
                scores,
                place,
                true,
                known_ptr,
                known.entity,
                first=0 if shard is None else shard.low,
                own=own,
            )
        if removed is not None:
            number = found.num_candidates - removed.sum(axis=1)[place]
            found = found._replace(num_candidates=number)
        return found

    chunks = range(0, len(queries), batch_size)
    if shard is not None:  # all processes do the same chunk at a time
        for begin in chunks:
            done(rank_chunk(begin, None))
    else:  # each process does some of the chunks
        own = chunks[process_rank() :: num_processes()]
        for number in side_by_side(rank_chunk, own, device_of(model)):
            done(number)
    if num_processes() > 1:
        outs = [
            Standings(*(add_up(torch.from_numpy(i)).numpy() for i in out))
            for out in outs
        ]
    return outs


def rank_on_device(
    scores: Tensor, row: Ids, answer: Ids, known_ptr: Ids, known: Ids
) -> Standings:
    r"""Does the same as :meth:`rank_answers`, on the device of the scores.

    Args:
        scores (torch.Tensor): A row of scores for each query.
        row (numpy.ndarray): The query of each answer.
        answer (numpy.ndarray): The answers.
        known_ptr (numpy.ndarray): Where the known answers of each query begin.
        known (numpy.ndarray): The known answers.
    """
    counts = np.diff(known_ptr)[row]
    begin = np.repeat(known_ptr[row] - (np.cumsum(counts) - counts), counts)
    removed = known[begin + np.arange(len(begin))]
    of_answer = np.repeat(np.arange(len(row)), counts)
    keep = removed != answer[of_answer]  # an answer never removes itself
    ids = row, answer, of_answer[keep], removed[keep]
    query, true, place, other = (torch.from_numpy(i).to(scores.device) for i in ids)
    own, rows = scores[query, true], scores[query]
    above = (rows > own[:, None]).sum(dim=1)
    equal = (rows == own[:, None]).sum(dim=1) - 1  # the answer ties with itself
    others = scores[query[place], other]
    above.index_add_(0, place, -(others > own[place]).long())
    equal.index_add_(0, place, -(others == own[place]).long())
    number = scores.size(1) - torch.bincount(place, minlength=len(row))
    return Standings(*(column.cpu().numpy() for column in (above, equal, number)))


def side_by_side(
    work: Callable[[int, None], int], chunks: range, device: torch.device
) -> Iterator[int]:
    r"""Processes one chunk in each thread of a CPU.

    Threads that share a chunk would wait for each other at every step.

    Args:
        work (callable): Takes the start of a chunk, and returns its size.
        chunks (range): The starts of the chunks.
        device (torch.device): The device of the model.
    """
    num_threads = min(default_threads(), torch.get_num_threads(), len(chunks))
    if device.type != "cpu" or num_threads < 2:
        yield from run_all(work, chunks, no_scratch, 1)
        return

    def work_alone(begin: int, _: None) -> int:
        torch.set_num_threads(1)  # of this thread, and so is 'no_grad'
        with torch.no_grad():
            return work(begin, None)

    before = torch.get_num_threads()
    try:
        yield from run_all(work_alone, chunks, no_scratch, num_threads)
    finally:
        torch.set_num_threads(before)


def _batch_size(batch_size: int | None, model: ScoringModel) -> int:
    if batch_size is None:
        num_bytes = _BYTES if device_of(model).type == "cpu" else _BYTES_ELSEWHERE
        of_query = _BYTES_PER_SCORE * max(model.num_nodes, 1)
        few = min(_FEW, _MOST_BYTES // of_query)
        return max(1, few, num_bytes // of_query)
    if batch_size < 1:
        raise ValueError(f"'batch_size' must be positive (got {batch_size})")
    return batch_size
