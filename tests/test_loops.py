"""Loops: facts whose head is their tail."""

import math

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import LoopExpert
from kblrn_pyg.training import fit

NUM_NODES = 12


@pytest.fixture
def kb():
    """Random facts of a, some of which are loops; loops only (b); none (c)."""
    generator = torch.Generator().manual_seed(0)
    head, tail = torch.randint(NUM_NODES, (2, 60), generator=generator)
    rel = torch.randint(3, (60,), generator=generator)
    tail = torch.where(rel == 1, head, tail)
    tail = torch.where((rel == 2) & (head == tail), (head + 1) % NUM_NODES, tail)
    names = [f"e{i}" for i in range(NUM_NODES)]
    return make_kb(names, ["a", "b", "c"], (head, rel, tail))


@pytest.fixture
def expert(kb):
    torch.manual_seed(0)
    found = LoopExpert(kb)
    torch.nn.init.normal_(found.weight)
    return found


def test_weights_begin_with_the_odds_of_loops(kb):
    triples = list(zip(*(index.tolist() for index in flat_triples(kb))))
    for rel, weight in enumerate(LoopExpert(kb).weight.tolist()):
        facts = [(h, t) for h, r, t in triples if r == rel]
        loops = sum(h == t for h, t in facts)
        odds = (loops + 0.5) / (len(facts) - loops + 0.5)
        assert weight == pytest.approx(math.log(odds), rel=1e-6)
    of_a, of_b, of_c = LoopExpert(kb).weight.tolist()
    assert of_b > 1 > 0 > of_a > of_c


def test_relations_without_facts_have_no_weight():
    kb = make_kb(["x", "y"], ["a", "b"], torch.tensor([[0], [0], [1]]))
    expert = LoopExpert(kb)
    assert expert.weight[1] == 0
    assert [expert.speaks_of(rel) for rel in (0, 1)] == [True, False]


@pytest.mark.parametrize("side", SIDES)
def test_all_ways_of_scoring_agree(expert, side):
    entity = torch.arange(NUM_NODES).repeat(3)
    rel = torch.arange(3).repeat_interleave(NUM_NODES)
    queries = Queries(entity, rel, side)
    expected = torch.tensor(
        [
            [expert.weight[r].item() if e == c else 0.0 for c in range(NUM_NODES)]
            for e, r in zip(entity.tolist(), rel.tolist())
        ]
    )
    candidates = torch.arange(NUM_NODES).expand(len(entity), -1)
    triples = queries.triples(candidates)
    torch.testing.assert_close(expert(*triples), expected)
    torch.testing.assert_close(expert.score_candidates(queries, candidates), expected)
    torch.testing.assert_close(expert.score_all(queries, NUM_NODES), expected)
    for some in ([7, 2, 11], [0], []):
        columns = torch.tensor(some, dtype=torch.long)
        found = expert.score_all(queries, NUM_NODES, columns)
        torch.testing.assert_close(found, expected[:, columns])


def test_gradients(expert):
    expert = expert.double()
    queries = Queries(torch.arange(NUM_NODES), torch.arange(NUM_NODES) % 3, "tail")
    whole = torch.arange(NUM_NODES).expand(NUM_NODES, -1)
    found = [
        torch.autograd.grad(torch.logsumexp(scores, dim=1).sum(), expert.weight)[0]
        for scores in (
            expert.score_all(queries, NUM_NODES),
            expert.score_candidates(queries, whole),
        )
    ]
    assert found[0].abs().min() > 0
    torch.testing.assert_close(found[0], found[1])


def test_scores_of_others_have_their_gradients(kb):
    """It writes to the scores of experts before it."""
    torch.manual_seed(0)
    model = KBLRN.from_data(kb, "lo", 4, num_negatives=None)
    queries = Queries(torch.arange(6), torch.arange(6) % 3, "head")
    whole = torch.arange(NUM_NODES).expand(6, -1)
    parameters = list(model.parameters())
    fast, slow = (
        torch.autograd.grad(torch.logsumexp(scores, dim=1).sum(), parameters)
        for scores in (
            model.score_all(queries),
            model.score_candidates(queries, whole),
        )
    )
    for a, b in zip(fast, slow):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("entity", "rel"), [(NUM_NODES, 0), (-1, 0), (0, 3), (0, -1)])
def test_ids_are_checked(expert, entity, rel):
    entity, rel = torch.tensor([entity]), torch.tensor([rel])
    queries = Queries(entity, rel, "tail")
    ways = (
        lambda: expert(entity, rel, entity),
        lambda: expert.score_candidates(queries, entity[:, None]),
        lambda: expert.score_all(queries, NUM_NODES),
    )
    for score in ways:
        with pytest.raises(ValueError, match="must lie in 0 to"):
            score()


def test_factors_of_relations(expert):
    before = expert.weight.detach().clone()
    expert.scale(torch.tensor([2.0, 0.0, 1.0]))
    expected = before * torch.tensor([2.0, 0.0, 1.0])
    torch.testing.assert_close(expert.weight.detach(), expected)


def test_reasons_say_how_many_facts_are_loops(kb):
    model = KBLRN.from_data(kb, "o")
    loop, other = (model.explain("e1", "c", tail) for tail in ("e1", "e2"))
    num_facts = kb["entity", "c", "entity"].num_edges
    assert f"true for 0 of {num_facts} facts of c" in loop.to_text()
    assert loop.score == pytest.approx(model.experts["loops"].weight[2].item())
    assert other.score == 0


def test_new_entities_and_files(kb, tmp_path):
    model = KBLRN.from_data(kb, "ro")
    torch.nn.init.normal_(model.experts["loops"].weight)
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt").update([("new", "c", "e1")])
    weights = (one.experts["loops"].weight for one in (model, again))
    torch.testing.assert_close(*weights)
    assert (
        again.experts["loops"].num_facts[2] == 1 + kb["entity", "c", "entity"].num_edges
    )
    index = torch.tensor([NUM_NODES]), torch.tensor([2]), torch.tensor([NUM_NODES])
    assert again.experts["loops"](*index) == again.experts["loops"].weight[2]


def test_friends_are_not_their_own():
    """All of a group know each other: the same paths lead to oneself as to others."""
    size = 6
    index = torch.arange(8 * size)
    head, tail = torch.cartesian_prod(index, index).t()
    know = (head // size == tail // size) & (head != tail)
    head, tail = head[know], tail[know]
    held_out = torch.arange(len(head)) % 7 == 0
    facts = head[~held_out], torch.zeros_like(head[~held_out]), tail[~held_out]
    names = [f"e{i}" for i in index.tolist()]
    train = make_kb(names, ["knows"], facts)
    test = train.clone()
    asked = torch.stack([head[held_out], tail[held_out]])
    test["entity", "knows", "entity"].edge_label_index = asked
    found = {}
    for experts in ("r", "ro"):
        torch.manual_seed(0)
        model = KBLRN.from_data(train, experts, num_negatives=None)
        fit(model, train, epochs=10, lr=0.05, batch_size=32)
        found[experts] = evaluate(model, test).metrics().mrr
    assert found["ro"] > max(found["r"] + 0.01, 0.99), found
