"""Node features: a weight for each head and tail of a relation."""

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import NodeExpert
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import fit


@pytest.fixture
def kb():
    generator = torch.Generator().manual_seed(0)
    head, tail = torch.randint(12, (2, 40), generator=generator)
    rel = torch.randint(3, (40,), generator=generator)
    names = [f"e{i}" for i in range(12)]
    return make_kb(names, ["a", "b", "c"], (head, rel, tail))


def naive_scores(expert, kb):
    """Every triple, by dictionaries."""
    head, rel, tail = (index.tolist() for index in flat_triples(kb))
    tails, heads = sorted(set(zip(rel, tail))), sorted(set(zip(rel, head)))
    u = dict(zip(tails, expert.tail.tolist()))
    v = dict(zip(heads, expert.head.tolist()))
    return {
        (h, r, t): u.get((r, t), 0.0) + v.get((r, h), 0.0)
        for h in range(12)
        for r in range(3)
        for t in range(12)
    }


@pytest.fixture
def expert(kb):
    torch.manual_seed(0)
    found = NodeExpert(kb, weight_decay=0.1)
    with torch.no_grad():
        found.tail.normal_()
        found.head.normal_()
    return found


@pytest.mark.parametrize("side", SIDES)
def test_scores_are_those_of_dictionaries(kb, expert, side):
    slow = naive_scores(expert, kb)
    entity = torch.arange(12).repeat(3)
    rel = torch.arange(3).repeat_interleave(12)
    queries = Queries(entity, rel, side)
    candidates = torch.arange(12).expand(36, -1)
    triples = torch.stack([one.expand(36, 12) for one in queries.triples(candidates)])
    expected = torch.tensor([slow[tuple(one)] for one in triples.flatten(1).T.tolist()])
    expected = expected.view(36, 12)
    torch.testing.assert_close(expert.score_all(queries, 12), expected)
    torch.testing.assert_close(expert.score_candidates(queries, candidates), expected)
    some = torch.tensor([7, 2, 11])
    torch.testing.assert_close(expert.score_all(queries, 12, some), expected[:, some])


def test_gradients(expert):
    expert = expert.double()
    queries = Queries(torch.arange(12), torch.arange(12) % 3, "tail")
    fast = torch.logsumexp(expert.score_all(queries, 12), dim=1).sum()
    whole = torch.arange(12).expand(12, -1)
    slow = torch.logsumexp(expert.score_candidates(queries, whole), dim=1).sum()
    for a, b in zip(
        *(torch.autograd.grad(x, expert.parameters()) for x in (fast, slow))
    ):
        torch.testing.assert_close(a, b)


def test_penalty_is_of_the_weights_of_a_batch(kb, expert):
    head, rel, tail = flat_triples(kb)
    heads, tails = (
        expert._look_up("head", rel, head),
        expert._look_up("tail", rel, tail),
    )
    expected = 0.1 * (heads**2 + tails**2).mean()
    torch.testing.assert_close(expert.penalty(head, rel, tail), expected)
    with pytest.raises(ValueError, match="'weight_decay' must not be negative"):
        NodeExpert(kb, weight_decay=-1.0)


def test_node_and_link_features_are_a_model(tmp_path):
    train, val = (Families(split=split)[0] for split in ("train", "val"))
    rules = mine_rules(train, max_hops=1)
    model = KBLRN.from_data(
        train, ["r", NodeExpert(train)], rules=rules, num_negatives=None
    )
    before = evaluate(model, val).metrics().mrr
    fit(model, train, epochs=5, lr=0.05, seed=0)
    after = evaluate(model, val).metrics().mrr
    assert after > before + 0.03
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert evaluate(again, val).metrics().mrr == after
    triple = [int(index[0]) for index in flat_triples(train)]
    parts = again.experts["node"].parts(*triple)
    score = again.experts["node"](*(torch.tensor([i]) for i in triple))
    assert sum(part.contribution for part in parts) == pytest.approx(float(score))


@pytest.mark.parametrize("decay", [-1.0, float("nan"), float("inf")])
def test_weight_decay_is_a_number(kb, decay):
    with pytest.raises(ValueError, match="'weight_decay' must not be negative"):
        NodeExpert(kb, decay)
