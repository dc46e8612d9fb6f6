"""From a model and a knowledge base to ranks."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from tqdm import tqdm

from kblrn_pyg.evaluation.queries import (
    Queries,
    Triples,
    distinct_queries,
    join_triples,
    known_triples,
    relation_names,
    score_all,
)
from kblrn_pyg.evaluation.ranks import HEAD, TAIL, Ids, RankTable, relation_ids
from kblrn_pyg.evaluation.scorer import Scorer, device_of, evaluating, kb_for
from kblrn_pyg.kernels.ranking import Standings, rank_answers
from kblrn_pyg.kernels.threads import default_threads, run_all

# The memory that the scores of one chunk of queries may take: on a CPU little,
# so that they stay in the cache, elsewhere much, so that all cores are busy. A
# model of three experts may hold four such matrices: one for each, and their sum.
_BYTES, _BYTES_ELSEWHERE = 32 * 2**20, 256 * 2**20
_BYTES_PER_SCORE = 4 * 4


def evaluate(
    model: Scorer,
    data: HeteroData | Data,
    filter_with: Iterable[HeteroData | Data] = (),
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
        data (HeteroData or Data): The knowledge base, in any form that the
            model may be made from. Its :obj:`edge_label_index` is
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
    data = kb_for(model, data)
    batch_size = _batch_size(batch_size, model)
    names = relation_names(data)
    asked = join_triples([(data, "edge_label_index")])
    if relations is not None:
        keep = np.isin(asked.rel, relation_ids(relations, names))
        asked = Triples(*(column[keep] for column in asked))
    known = known_triples(data, filter_with)

    sides = [
        distinct_queries(asked, known, side, model.num_nodes, names)
        for side in (HEAD, TAIL)
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
        scores = score_all(model, queries, slice(begin, end))
        part = order[bounds[begin] : bounds[end]]
        known_ptr = queries.known_ptr[begin : end + 1]
        found = rank_answers(
            scores, row[part] - begin, answer[part], known_ptr, queries.known
        )
        for column, values in zip(out, found):
            column[part] = values
        return end - begin

    for number in _side_by_side(
        rank, range(0, len(queries.rel), batch_size), device_of(model)
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


def _batch_size(batch_size: int | None, model: Scorer) -> int:
    if batch_size is None:
        num_bytes = _BYTES if device_of(model).type == "cpu" else _BYTES_ELSEWHERE
        return max(1, num_bytes // (_BYTES_PER_SCORE * max(model.num_nodes, 1)))
    if batch_size < 1:
        raise ValueError(f"'batch_size' must be positive (got {batch_size})")
    return batch_size
