"""What the benchmark of scorers compares."""

import random

import naive
import pytest
import torch
import training_scorers
from contestants import LoopContestant
from test_mining import as_kb
from training_scorers import MODELS, PYKEEN_BATCHES, _both_sides, _by_queries

from kblrn_pyg.data import flat_triples

PAIRS = [(name, loss) for name, model in MODELS.items() for loss in model.losses]


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(training_scorers, "BATCH", 4)
    monkeypatch.setattr(training_scorers, "NEGATIVES", 3)
    return as_kb(*naive.random_kb(random.Random(10)))


def test_queries_are_cut_with_all_of_their_answers(data):
    triples = torch.stack(flat_triples(data), dim=1)
    both, num_relations = _both_sides(triples, len(data.edge_types))
    assert {(t, r + num_relations // 2, h) for h, r, t in triples.tolist()} <= {
        tuple(one) for one in both.tolist()
    }
    torch.manual_seed(0)
    pieces = [set(map(tuple, part.tolist())) for part in _by_queries(both)]
    assert sum(map(len, pieces)) == len({*map(tuple, both.tolist())})
    asked = [{(h, r) for h, r, _ in part} for part in pieces]
    assert sum(map(len, asked)) == len(set.union(*asked))
    assert max(map(len, asked)) == 4 * PYKEEN_BATCHES


@pytest.mark.parametrize(("scorer", "loss"), PAIRS)
def test_both_train_as_many_batches(data, scorer, loss):
    pytest.importorskip("pykeen.models")
    mine = training_scorers.ours(data, scorer, loss)
    theirs = training_scorers.pykeen(data, scorer, loss)
    assert isinstance(theirs, LoopContestant)
    mine.take_turn(0.0, 2)
    theirs.take_turn(0.0, 2)
    assert len(mine.seconds) == 2
    assert len(theirs.seconds) == PYKEEN_BATCHES - 1
    assert abs(mine.num_batches - theirs.num_batches) <= 1
    assert mine.batch > 0
    assert theirs.epoch > 0
