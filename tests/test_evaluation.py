"""Ranks equal those of a naive twin, figures those computed by hand."""

import importlib
import itertools
import math
import random
import threading
import time
from contextlib import contextmanager
from fractions import Fraction

import naive
import numpy as np
import pytest
import torch
from test_mining import as_kb
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.transforms import RandomLinkSplit

from kblrn_pyg.data import DataError, ask, unify_types
from kblrn_pyg.evaluation import evaluate, evaluate_each, query_auc
from kblrn_pyg.kernels.ranking import rank_answers

# The function of that name hides the module.
EVALUATE = importlib.import_module("kblrn_pyg.evaluation.evaluate")
NUM_KBS = 120
HEAD, TAIL = 0, 1  # as in a RankTable


class TableModel(nn.Module):
    """Looks its scores up: ``tails[r, h, t]`` and ``heads[r, t, h]`` differ."""

    def __init__(self, tails, heads):
        super().__init__()
        self.register_parameter("tails", nn.Parameter(tails))
        self.register_parameter("heads", nn.Parameter(heads))
        self.num_relations, self.num_nodes, _ = tails.shape
        self.calls = []

    def score_tails(self, head_index, rel_type):
        self.note(TAIL, head_index, rel_type)
        return self.tails[rel_type, head_index]

    def score_heads(self, rel_type, tail_index):
        self.note(HEAD, tail_index, rel_type)
        return self.heads[rel_type, tail_index]

    def note(self, side, given, rel_type):
        assert given.dtype == rel_type.dtype == torch.long
        assert not self.training
        assert not torch.is_grad_enabled()
        self.calls.append([(side, *q) for q in zip(rel_type.tolist(), given.tolist())])


def table_model(num_nodes, num_relations, rng, dtype=torch.float32, num_scores=4):
    """Few distinct scores, so that there are many ties; 0 for continuous ones."""
    shape = (2, num_relations, num_nodes, num_nodes)
    generator = np.random.default_rng(rng.randrange(2**32))
    if num_scores:
        scores = generator.integers(num_scores, size=shape) / 8 - 0.25
    else:
        scores = generator.normal(size=shape)
    return TableModel(*torch.from_numpy(scores).to(dtype))


def constant_model(num_nodes, num_relations):
    return TableModel(*torch.full((2, num_relations, num_nodes, num_nodes), 0.5))


def columns(triples):
    flat = torch.tensor(triples, dtype=torch.long).reshape(-1, 3).t()
    return tuple(column.contiguous() for column in flat)


def split_kb(triples, num_entities, num_relations, rng):
    """Known, validation and test triples; some are in more than one of them."""
    parts = [[triple for triple in triples if rng.random() < 0.5] for _ in range(3)]
    known, valid, test = parts
    train = as_kb(known, num_entities, num_relations)
    return parts, train, ask(train, columns(valid)), ask(train, columns(test))


def naive_rows(model, asked, known, allowed=None):
    """(relation, side, head, tail) -> (rank, candidates, answers), one by one."""
    known, rows = {tuple(triple) for triple in known}, {}
    for (h, r, t), side in itertools.product(asked, (HEAD, TAIL)):
        if side == TAIL:
            scores, true = model.tails[r, h].tolist(), t
            answers = {e for e in range(len(scores)) if (h, r, e) in known}
        else:
            scores, true = model.heads[r, t].tolist(), h
            answers = {e for e in range(len(scores)) if (e, r, t) in known}
        rank, num_candidates = Fraction(1), 1
        for entity, score in enumerate(scores):
            if entity == true or entity in answers:
                continue
            if allowed is not None and entity not in allowed[r, side]:
                continue
            num_candidates += 1
            if score > scores[true]:
                rank += 1
            elif score == scores[true]:
                rank += Fraction(1, 2)
        rows[r, side, h, t] = (rank, num_candidates, len(answers))
    return rows


def as_rows(table):
    keys = zip(
        *(c.tolist() for c in (table.relation, table.side, table.head, table.tail))
    )
    values = zip(
        table.rank.tolist(), table.num_candidates.tolist(), table.num_answers.tolist()
    )
    return list(zip(keys, values))


@pytest.fixture(params=range(NUM_KBS))
def case(request):
    rng = random.Random(request.param)
    kb = naive.random_kb(rng)
    dtype = [torch.float32, torch.float64, torch.float16][request.param % 3]
    model = table_model(*kb[1:], rng, dtype, num_scores=rng.choice([0, 2, 4]))
    return rng, model, *split_kb(*kb, rng)


def test_ranks_equal_those_of_the_naive_twin(case):
    rng, model, (known, valid, test), _, valid_kb, test_kb = case
    table = evaluate(
        model, test_kb, [valid_kb], batch_size=rng.choice([None, 1, 2, 3, 1000])
    )
    expected = naive_rows(model, test, known + valid + test)
    assert len(table) == 2 * len(test)
    assert table.side.tolist() == [HEAD] * len(test) + [TAIL] * len(test)
    for key, row in as_rows(table):
        assert row == expected[key]
    assert {key for key, _ in as_rows(table)} == set(expected)


def test_ranks_among_observed_entities(case):
    rng, model, (known, valid, test), _, valid_kb, test_kb = case
    table = evaluate(
        *(model, test_kb, [valid_kb]),
        batch_size=rng.choice([None, 1, 2, 3, 1000]),
        candidates="observed",
    )
    allowed = {
        (r, side): {
            triple[0 if side == HEAD else 2] for triple in known if triple[1] == r
        }
        for r in range(model.num_relations)
        for side in (HEAD, TAIL)
    }
    expected = naive_rows(model, test, known + valid + test, allowed)
    assert dict(as_rows(table)) == expected
    with pytest.raises(DataError, match="without node types"):
        evaluate(model, test_kb, candidates="types")
    with pytest.raises(ValueError, match="must be one of all, observed, types"):
        evaluate(model, test_kb, candidates="some")


def test_ranks_among_entities_of_a_node_type():
    data = HeteroData()
    data["person"].num_nodes, data["city"].num_nodes = 3, 4
    data["person", "lives_in", "city"].edge_index = torch.tensor([[0, 1, 2], [1, 0, 3]])
    kb = unify_types(data)
    model = table_model(7, 1, random.Random(0))
    triples = [(0, 0, 4), (1, 0, 3), (2, 0, 6)]
    allowed = {(0, HEAD): {0, 1, 2}, (0, TAIL): {3, 4, 5, 6}}
    found = dict(as_rows(evaluate(model, kb, candidates="types")))
    assert found == naive_rows(model, triples, triples, allowed)


def test_filter_is_what_it_is_given(case):
    _, model, (known, valid, test), train, valid_kb, test_kb = case
    expected = naive_rows(model, test, known + test)
    assert all(row == expected[key] for key, row in as_rows(evaluate(model, test_kb)))
    expected = naive_rows(model, known, known + valid + test)
    table = evaluate(model, train, (kb for kb in (valid_kb, test_kb)))
    assert all(row == expected[key] for key, row in as_rows(table))


def test_the_cases_contain_what_they_should():
    """Ties, several answers, unseen entities, repeated and no triples."""
    found = dict.fromkeys(["tie", "many", "unseen", "twice", "none"], 0)
    for seed in range(NUM_KBS):
        rng = random.Random(seed)
        kb = naive.random_kb(rng)
        model = table_model(*kb[1:], rng, num_scores=rng.choice([0, 2, 4]))
        (known, _, test), _, _, test_kb = split_kb(*kb, rng)
        table = evaluate(model, test_kb)
        found["tie"] += bool((table.rank % 1 == 0.5).any())
        found["many"] += bool((table.num_answers > 1).any())
        seen = {e for h, _, t in known for e in (h, t)}
        found["unseen"] += any(h not in seen for h, _, _ in test)
        found["twice"] += len(set(test)) < len(test)
        found["none"] += len(test) == 0
    assert min(found.values()) >= 3, found


def test_each_query_is_scored_once_and_in_chunks():
    test = [(0, 0, 1), (0, 0, 2), (0, 0, 3), (4, 1, 3), (4, 0, 3), (0, 0, 1)]
    kb = ask(as_kb([], 5, 2), columns(test))
    model = table_model(5, 2, random.Random(0))
    evaluate(model, kb, batch_size=2)
    assert all(1 <= len(call) <= 2 for call in model.calls)
    asked = [query for call in model.calls for query in call]
    assert len(asked) == len(set(asked))
    expected = {(TAIL, r, h) for h, r, _ in test} | {(HEAD, r, t) for _, r, t in test}
    assert set(asked) == expected


def test_chunk_size_changes_nothing():
    rng = random.Random(5)
    test = [(rng.randrange(30), rng.randrange(3), rng.randrange(30)) for _ in range(99)]
    kb = ask(as_kb(test[:40], 30, 3), columns(test))
    model = table_model(30, 3, rng)
    whole = evaluate(model, kb)
    assert len(model.calls) == 2
    for batch_size in (1, 7, 64):
        table = evaluate(model, kb, batch_size=batch_size)
        for name, column in whole.to_dict().items():
            assert np.array_equal(column, table.to_dict()[name]), name


def test_threads_change_nothing_and_leave_nothing(monkeypatch):
    rng = random.Random(6)
    test = [(rng.randrange(30), rng.randrange(3), rng.randrange(30)) for _ in range(99)]
    kb, model = as_kb(test, 30, 3), table_model(30, 3, rng)
    before, threads, graded = torch.get_num_threads(), set(), []

    def score_tails(head_index, rel_type):
        threads.add(threading.get_ident())
        graded.append(torch.is_grad_enabled())
        time.sleep(0.001)
        return type(model).score_tails(model, head_index, rel_type)

    monkeypatch.setattr(model, "score_tails", score_tails)
    tables = []
    for number in (1, 3):
        monkeypatch.setattr(EVALUATE, "default_threads", lambda: number)  # noqa: B023
        torch.set_num_threads(number)
        try:
            tables.append(evaluate(model, kb, batch_size=2).to_dict())
            assert torch.get_num_threads() == number
        finally:
            torch.set_num_threads(before)
        assert len(threads) == number
    assert not any(graded)
    for name, column in tables[0].items():
        assert np.array_equal(column, tables[1][name]), name


def test_chunks_respect_a_byte_budget(monkeypatch):
    test = [(h, 0, h) for h in range(20)]
    kb, model = as_kb(test, 20, 1), constant_model(20, 1)
    monkeypatch.setattr(EVALUATE, "_BYTES", 12 * 20 * 16 + 5)
    evaluate(model, kb)
    assert max(len(call) for call in model.calls) == 12
    # A few queries may take more memory, but not any amount of it.
    monkeypatch.setattr(EVALUATE, "_BYTES", 3 * 20 * 16 + 5)
    model.calls.clear()
    evaluate(model, kb)
    assert max(len(call) for call in model.calls) == 8
    monkeypatch.setattr(EVALUATE, "_BYTES", 10)
    monkeypatch.setattr(EVALUATE, "_MOST_BYTES", 10)
    model.calls.clear()
    evaluate(model, kb)
    assert [len(call) for call in model.calls] == [1] * 40


@pytest.mark.parametrize("training", [True, False])
def test_training_mode_is_restored(training):
    kb, model = as_kb([(0, 0, 1)], 3, 1), constant_model(3, 1).train(training)
    evaluate(model, kb)
    assert model.training == training
    query_auc(model, kb, 0, head=0, answers=[1])
    assert model.training == training
    model.score_heads = None
    with pytest.raises(TypeError):
        evaluate(model, kb)
    assert model.training == training


def test_constant_model_ranks_in_the_middle():
    """Every (h, r, ?) and (?, r, t) has one answer: nothing is filtered."""
    n = 9
    kb = as_kb([(h, r, (h + r) % n) for h in range(n) for r in range(2)], n, 2)
    table = evaluate(constant_model(n, 2), kb)
    metrics = table.metrics()
    assert metrics.count == 36
    assert metrics.mr == (n + 1) / 2
    assert metrics.mrr == pytest.approx(2 / (n + 1))
    assert metrics.amr == 1
    assert (metrics.hits_at_3, metrics.hits_at_5) == (0, 1)
    assert set(table.num_answers) == {1}


def test_constant_model_with_filter(case):
    _, model, _, _, valid_kb, test_kb = case
    constant = constant_model(model.num_nodes, model.num_relations)
    table = evaluate(constant, test_kb, [valid_kb])
    assert table.rank.tolist() == ((table.num_candidates + 1) / 2).tolist()
    assert (table.num_candidates + table.num_answers == model.num_nodes + 1).all()
    if len(table):
        mean = np.mean([(c + 1) / 2 for c in table.num_candidates.tolist()])
        assert table.metrics().mr == pytest.approx(mean)
        assert table.metrics().amr == pytest.approx(1)


def test_one_relation_alone():
    rng = random.Random(11)
    test = [(rng.randrange(8), rng.randrange(3), rng.randrange(8)) for _ in range(30)]
    kb, model = as_kb(test, 8, 3), table_model(8, 3, rng)
    whole = evaluate(model, kb)
    model.calls.clear()
    table = evaluate(model, kb, relations=["r2", 0])
    assert {r for call in model.calls for _, r, _ in call} == {0, 2}
    assert as_rows(table) == as_rows(whole.select(relations=[0, 2]))
    assert 0 < len(table) < len(whole)
    with pytest.raises(DataError, match="unknown relation 'r7'"):
        evaluate(model, kb, relations=["r7"])
    with pytest.raises(ValueError, match=r"relation must lie in 0 to 2 \(got 3\)"):
        evaluate(model, kb, relations=[3])
    with pytest.raises(ValueError, match="'relations' must be a list"):
        evaluate(model, kb, relations="r2")


def test_only_the_relation_that_a_split_asks_about_is_ranked():
    """As PyG's users split: edges of the other types are known, not asked for."""
    graph = HeteroData()
    graph["person"].num_nodes, graph["town"].num_nodes = 20, 5
    people = torch.arange(20)
    graph["person", "lives_in", "town"].edge_index = torch.stack([people, people % 5])
    knows = torch.stack([people, (people + 1) % 20])
    graph["person", "knows", "person"].edge_index = knows
    split = RandomLinkSplit(0.2, 0.2, edge_types=[("person", "lives_in", "town")])
    for data in split(graph)[1:]:
        table = evaluate(constant_model(25, 2), data)
        assert set(table.relation) == {0}
        assert len(table) == 2 * 4
        # Of (h, r, ?), all towns but the true one are candidates.
        assert set(table.select(side="tail").num_candidates) == {25}


def test_a_model_is_encoded_once():
    """Before threads start, and until they end."""
    test = [(h, 0, (h + 1) % 20) for h in range(20)]
    kb, model, events = as_kb(test, 20, 1), constant_model(20, 1), []

    @contextmanager
    def encoded():
        events.append(len(model.calls))
        yield
        events.append(len(model.calls))

    model.encoded = encoded
    evaluate(model, kb, batch_size=2)
    assert events == [0, 20]
    query_auc(model, kb, 0, head=0, answers=[1])
    assert events == [0, 20, 20, 21]


def test_one_and_many():
    # (0, r0, ?) has three answers over the splits, (?, r0, 1) and (?, r0, 2) one.
    train = as_kb([(0, 0, 1)], 5, 1)
    valid, test = ask(train, columns([(0, 0, 2)])), ask(train, columns([(0, 0, 3)]))
    table = evaluate(constant_model(5, 1), test, [valid])
    assert table.num_answers.tolist() == [1, 3]
    assert table.num_candidates.tolist() == [5, 3]
    assert table.select(answers="one").side.tolist() == [HEAD]
    assert table.select(answers="many").side.tolist() == [TAIL]
    assert table.select(side="tail", answers="one").rank.tolist() == []
    assert table.metrics(table.mask(side="tail")).mr == 2
    with pytest.raises(ValueError, match="'answers' must be 'one' or 'many'"):
        table.select(answers="ONE")
    with pytest.raises(ValueError, match="'side' must be 'head' or 'tail'"):
        table.select(side=0)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_scores_are_numbers(value):
    kb, model = as_kb([(0, 0, 1)], 4, 1), constant_model(4, 1)
    model.tails.data[0, 0, [1, 2]] = value
    table = evaluate(model, kb).select(side="tail")
    assert table.rank.tolist() == [1.5 if value > 0 else 3.5]


def test_nan_scores_are_refused():
    kb, model = as_kb([(0, 0, 1), (2, 0, 3)], 4, 1), constant_model(4, 1).double()
    model.heads.data[0, 0, 3] = math.nan  # nobody asks for it
    evaluate(model, kb)
    model.tails.data[0, 2, 0] = math.nan
    with pytest.raises(ValueError, match=r"must be numbers \(got NaN: \(2, r0, \?\)\)"):
        evaluate(model, kb, batch_size=1)
    with pytest.raises(ValueError, match=r"\(2, r0, \?\)"):
        query_auc(model, kb, 0, head=2, answers=[1])
    model.heads.data[0, 3, 3] = math.nan
    with pytest.raises(ValueError, match=r"\(\?, r0, 3\)"):
        evaluate(model, kb)


def test_what_does_not_fit_is_refused():
    kb = as_kb([(0, 0, 1)], 4, 1)
    with pytest.raises(ValueError, match=r"'model' must be over .* \(got \(5, 1\)\)"):
        evaluate(constant_model(5, 1), kb)
    with pytest.raises(ValueError, match="'model' must be over"):
        evaluate(constant_model(4, 2), kb)
    model = constant_model(4, 1)
    with pytest.raises(ValueError, match="'filter_with' must be over"):
        evaluate(model, kb, [as_kb([], 5, 1)])
    with pytest.raises(ValueError, match="'filter_with' must be over"):
        evaluate(model, kb, [as_kb([], 4, 2)])
    with pytest.raises(ValueError, match="'filter_with' must be a list"):
        evaluate(model, kb, kb)
    with pytest.raises(ValueError, match=r"'batch_size' must be positive \(got 0\)"):
        evaluate(model, kb, batch_size=0)
    broken = ask(kb, columns([(0, 0, 3)]))
    broken["entity", "r0", "entity"].edge_label_index += 1
    with pytest.raises(DataError, match="must lie in 0 to 3"):
        evaluate(model, broken)
    model.score_heads = lambda rel_type, tail_index: torch.zeros(1, 3)
    with pytest.raises(
        ValueError, match=r"must have the shape \[1, 4\] \(got \[1, 3\]\)"
    ):
        evaluate(model, kb)


WRONG_SCORES = {
    "few rows": lambda scores: [scores[:0]],
    "few columns": lambda scores: [scores[:, :3]],
    "many columns": lambda scores: [torch.cat([scores, scores], dim=1)],
    "one dimension": lambda scores: [scores[0]],
    "NaN": lambda scores: [scores * math.nan],
    "complex": lambda scores: [scores.to(torch.complex64)],
    "sparse": lambda scores: [scores.to_sparse()],
    "an array": lambda scores: [scores.numpy()],
    "nothing": lambda scores: [],
    "two": lambda scores: [scores, scores],
}


@pytest.mark.parametrize("wrong", WRONG_SCORES)
def test_scores_that_cannot_be_ranked_are_refused(wrong):
    """More columns than entities were ranked, and a second row was left out."""
    kb, model = as_kb([(0, 0, 1), (0, 0, 2)], 4, 1), constant_model(4, 1)

    def score(queries):
        return WRONG_SCORES[wrong](torch.randn(len(queries), 4))

    with pytest.raises(ValueError, match=r"score.* must"):
        evaluate_each(model, kb, [], score, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.long])
def test_scores_of_other_types_are_ranked(dtype):
    kb, model = as_kb([(0, 0, 1), (0, 0, 2)], 4, 1), constant_model(4, 1)

    def score(queries):
        yield torch.arange(4).expand(len(queries), 4).to(dtype)

    (table,) = evaluate_each(model, kb, [], score, 1)
    assert table.rank.tolist() == [4, 4, 2, 2]


def test_progress_bar(capsys, monkeypatch):
    monkeypatch.setattr("kblrn_pyg.progress.LINE_SECONDS", 0.0)
    kb, model = as_kb([(0, 0, 1), (0, 0, 2)], 4, 1), constant_model(4, 1)
    evaluate(model, kb, progress=True)
    assert "3/3" in capsys.readouterr().err
    evaluate(model, kb)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("num_threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernel(num_threads, dtype):
    scores = np.array([[3, 1, 2, 2, 2], [0, 0, 0, 0, 0]], dtype)
    known_ptr, known = np.array([0, 3, 4]), np.array([4, 0, 2, 1])
    row, answer = np.array([0, 0, 1, 1, 0]), np.array([2, 1, 0, 1, 0])
    found = rank_answers(scores, row, answer, known_ptr, known, num_threads)
    assert found.better.tolist() == [0, 1, 0, 0, 0]
    assert found.ties.tolist() == [1, 0, 3, 4, 0]
    assert found.num_candidates.tolist() == [3, 2, 4, 5, 3]


def test_kernel_without_answers():
    no_ids = np.empty(0, np.int64)
    found = rank_answers(np.zeros((1, 2)), no_ids, no_ids, np.zeros(2, int), no_ids)
    assert [len(column) for column in found] == [0, 0, 0]
