"""The experts and the model: scores agree, gradients are right, losses are exact."""

import itertools
import random
from functools import partial

import naive
import numpy as np
import pytest
import torch
from test_mining import as_kb
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn.kge import ComplEx, DistMult, RotatE, TransE

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, read_kb
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.dropping import drop
from kblrn_pyg.loader.link import LabelledTriples
from kblrn_pyg.nn import (
    INSTANCES,
    RESCAL,
    Expert,
    FreeTransE,
    TransH,
    TransR,
    TuckER,
    latent,
    losses,
    products,
)
from kblrn_pyg.nn.dropout import drop_entries
from kblrn_pyg.rules import RuleSet, mine_rules
from kblrn_pyg.training import fit

SCORERS = [
    *("distmult", "complex", "transe", "unit-transe", "rotate", "rescal"),
    *("transh", "transr", "tucker"),
    ["distmult", "transe", "complex"],
]


@pytest.fixture(scope="module")
def data():
    """Has self-loops, empty relations, unknown numbers and rules of all kinds."""
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    kb = as_kb(triples, num_entities, num_relations)
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(num_entities, 2, generator=rng, dtype=torch.double)
    x[1, 0] = x[2, 1] = torch.nan
    kb["entity"].x, kb.attribute_names = x, ["a", "b"]
    return kb


def make(data, experts="lrn", max_rules=None, **kwargs):
    torch.manual_seed(0)
    rules = None
    if "r" in experts:
        rules = mine_rules(data, parallel=True, max_rules_per_relation=max_rules)
    kwargs = {"hidden_channels": 6, "threshold": 0.3, **kwargs}
    return KBLRN.from_data(data, experts, rules=rules, **kwargs)


def every_triple(model):
    ids = itertools.product(
        range(model.num_nodes), range(model.num_relations), range(model.num_nodes)
    )
    return torch.tensor(list(ids)).t().contiguous()


@pytest.mark.parametrize("scorer", SCORERS, ids=str)
@pytest.mark.parametrize("experts", INSTANCES)
def test_scores_agree(data, experts, scorer):
    if "l" not in experts and scorer != "distmult":
        pytest.skip("no latent expert")
    model = make(data, experts, scorer=scorer).double()
    head, rel, tail = every_triple(model)
    single = model(head, rel, tail)
    assert single.abs().max() > 0
    tails = model.score_tails(head, rel).gather(1, tail[:, None]).squeeze(1)
    heads = model.score_heads(rel, tail).gather(1, head[:, None]).squeeze(1)
    torch.testing.assert_close(single, tails, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(single, heads, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "kind",
    [
        *(DistMult, ComplEx, TransE, FreeTransE, RotatE),
        *(RESCAL, TransH, TransR, TuckER),
    ],
)
def test_latent_scores_are_those_of_the_scorer(data, kind):
    num_nodes, num_relations = data["entity"].num_nodes, len(data.edge_types)
    scorer = kind(num_nodes, num_relations, 5)
    model = KBLRN.from_data(data, "l", 5, scorer=scorer)
    head, rel, tail = every_triple(model)
    torch.testing.assert_close(
        model(head, rel, tail), scorer(head, rel, tail), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match="'scorer' must have"):
        KBLRN.from_data(data, "l", scorer=kind(num_nodes + 1, num_relations, 5))


def test_rescal_is_bilinear_and_learns_by_its_own_loss():
    torch.manual_seed(0)
    model = RESCAL(6, 2, 3)
    head, rel, tail = torch.tensor([0, 4, 5]), torch.tensor([1, 0, 1]), torch.arange(3)
    for i, score in enumerate(model(head, rel, tail).tolist()):
        matrix = model.rel_emb.weight[rel[i]].view(3, 3)
        rows = model.node_emb.weight[head[i]], model.node_emb.weight[tail[i]]
        assert score == pytest.approx((rows[0] @ matrix @ rows[1]).item(), abs=1e-6)
    model.loss(head, rel, tail).backward()
    assert model.rel_emb.weight.grad.abs().sum() > 0


def test_transe_has_embeddings_of_any_length():
    torch.manual_seed(0)
    model = FreeTransE(6, 2, 3)
    torch.nn.init.uniform_(model.node_emb.weight, -5, 5)
    head, rel, tail = torch.tensor([0, 4, 5]), torch.tensor([1, 0, 1]), torch.arange(3)
    rows, moves = model.node_emb.weight.detach(), model.rel_emb.weight.detach()
    for i, score in enumerate(model(head, rel, tail).tolist()):
        apart = rows[head[i]] + moves[rel[i]] - rows[tail[i]]
        assert score == pytest.approx(-float(apart.abs().sum()), abs=1e-5)


@pytest.mark.parametrize("kind", [TransE, FreeTransE, TransH, TransR])
def test_a_scorer_is_made_again_by_its_name(data, kind):
    scorer = kind(data["entity"].num_nodes, len(data.edge_types), 5)
    model = KBLRN.from_data(data, "l", 5, scorer=scorer)
    again = KBLRN.from_data(data, "l", 5, scorer=model.config["scorer"])
    assert [type(one.kge) for one in again.experts["latent"].scorers] == [kind]
    p_norm = 3.0 - scorer.p_norm
    other = kind(data["entity"].num_nodes, len(data.edge_types), 5, p_norm=p_norm)
    other = KBLRN.from_data(data, "l", 5, scorer=other)
    assert other.config["scorer"] != model.config["scorer"]
    with pytest.raises(ValueError, match="its latent expert is different"):
        other.take_experts(model)
    sparse = kind(data["entity"].num_nodes, len(data.edge_types), 5, sparse=True)
    with pytest.raises(ValueError, match="'scorer' must have dense gradients"):
        KBLRN.from_data(data, "l", 5, scorer=sparse)


def test_relational_and_numerical_scores_follow_the_formulas(data):
    model = make(data)
    rules = model.experts["relational"].features.rules
    triples = list(zip(*(index.tolist() for index in flat_triples(data))))
    bodies = [("parallel" if p else "path", codes) for p, codes in rules.bodies()]
    x = data["entity"].x
    for head, rel, tail in every_triple(model).t().tolist()[::37]:
        part = rules.of(rel)
        holds = naive.pair_features(triples, bodies[part], head, tail)
        weight = model.experts["relational"].weight[part]
        index = [torch.tensor([i]) for i in (head, rel, tail)]
        assert float(model.experts["relational"](*index)) == pytest.approx(
            float(weight[holds].sum()), abs=1e-6
        )
        numbers = model.experts["numerical"]
        score = 0.0
        for i in range(int(numbers.ptr[rel]), int(numbers.ptr[rel + 1])):
            difference = float(
                x[head, numbers.attribute[i]] - x[tail, numbers.attribute[i]]
            )
            if difference == difference:
                off = (difference - float(numbers.centre[i])) / float(
                    numbers.log_width[i].exp()
                )
                score += float(numbers.weight[i]) * 2.718281828459045 ** (-off * off)
        assert float(numbers(*index)) == pytest.approx(score, abs=1e-6)


def known(data):
    return flat_triples(data)


@pytest.mark.parametrize("experts", INSTANCES)
def test_exact_loss_is_the_cross_entropy_over_all_entities(data, experts):
    model = make(data, experts, num_negatives=None).double()
    head, rel, tail = known(data)
    own = model.own_evidence(head, rel, tail)
    assert own.any() == ("r" in experts or "e" in experts)  # there are self-loops
    expected = 0
    for scores, answer in (
        (model.score_tails(head, rel), tail),
        (model.score_heads(rel, tail), head),
    ):
        # Facts that answer one query share its row, and each leaves it once.
        scores = scores.clone()
        key = rel * model.num_nodes + (head if answer is tail else tail)
        for k in key.unique():
            mine = (key == k).nonzero().flatten()
            for i in {int(answer[i]): i for i in mine}.values():
                scores[mine, answer[i]] -= own[i]
        expected = expected + torch.nn.functional.cross_entropy(scores, answer) / 2
    torch.testing.assert_close(model.loss(head, rel, tail), expected)


@pytest.mark.parametrize("negatives", ["triple", "shared"])
@pytest.mark.parametrize(
    "scorer",
    [
        *("distmult", ["complex", "distmult"], "transe", "unit-transe"),
        *("transh", "transr", "tucker"),
    ],
    ids=str,
)
@pytest.mark.parametrize("experts", INSTANCES)
def test_fast_candidates_equal_the_default(
    data, experts, scorer, negatives, monkeypatch
):
    if "l" not in experts and scorer != "distmult":
        pytest.skip("no latent expert")
    model = make(
        data,
        experts,
        scorer=scorer,
        num_negatives=17,
        negatives=negatives,
        learn_rbf="n" in experts,
    ).double()
    found = []
    for is_fast in (True, False):
        if not is_fast:  # everything from 'forward'
            for expert in model.experts.values():
                slow = partial(Expert.score_candidates, expert)
                monkeypatch.setattr(expert, "score_candidates", slow)
            if "l" in experts:
                monkeypatch.setattr(latent, "_FEW", 10**9)
                forward = partial(slow_forward, model.experts["latent"])
                monkeypatch.setattr(model.experts["latent"], "forward", forward)
        torch.manual_seed(1)
        model.zero_grad()
        loss = model.loss(*known(data))
        loss.backward()
        found.append([loss.detach(), *(p.grad.clone() for p in model.parameters())])
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-8)


def slow_forward(expert, head_index, rel_type, tail_index):
    """The scorers' own models, whose code is PyG's."""
    return sum(one.kge(head_index, rel_type, tail_index) for one in expert.scorers)


@pytest.mark.parametrize("num_negatives", [5, None])
@pytest.mark.parametrize("experts", ["l", "r", "n", "lrn"])
def test_gradients(data, experts, num_negatives):
    model = make(
        data,
        experts,
        max_rules=6,
        hidden_channels=2,
        num_negatives=num_negatives,
        learn_rbf="n" in experts,
    ).double()
    triples = known(data)
    parameters = list(model.parameters())

    def loss(*values):
        torch.manual_seed(3)
        names = [name for name, _ in model.named_parameters()]
        return torch.func.functional_call(
            _Loss(model), {f"model.{n}": v for n, v in zip(names, values)}, triples
        )

    assert torch.autograd.gradcheck(loss, parameters, eps=1e-6, atol=1e-6)


class _Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *triples):
        return self.model.loss(*triples)


@pytest.mark.parametrize("num_negatives", [20, None])
@pytest.mark.parametrize("scorer", SCORERS, ids=str)
def test_no_nan_reaches_a_gradient(data, num_negatives, scorer):
    model = make(data, scorer=scorer, num_negatives=num_negatives, learn_rbf=True)
    model.loss(*known(data)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


def test_large_numbers_close_to_each_other():
    kb = as_kb([(0, 0, 1), (2, 0, 1), (3, 0, 1)], 4, 1)
    kb["entity"].x = torch.tensor(
        [[2e9 + 37], [0], [2e9 + 38], [2e9 + 39]], dtype=torch.double
    )
    kb.attribute_names = ["a"]
    model = KBLRN.from_data(kb, "n")
    with torch.no_grad():
        model.experts["numerical"].weight.fill_(1.0)
    z = 1 / (2 / 3) ** 0.5  # of the outer ones, in standard deviations
    expected = torch.tensor([-(z**2), 0.0, -(z**2)]).exp()
    torch.testing.assert_close(model(*flat_triples(kb)), expected)
    tails = model.score_tails(torch.tensor([0, 2, 3]), torch.zeros(3, dtype=torch.long))
    torch.testing.assert_close(tails[:, 1], expected)


def test_sign_of_differences(data):
    model = make(data, "n", numerical="sign")
    head, rel, tail = every_triple(model)
    numbers = model.experts["numerical"]
    expected = torch.zeros(len(head))
    for i, (h, r, t) in enumerate(zip(head.tolist(), rel.tolist(), tail.tolist())):
        for k in range(int(numbers.ptr[r]), int(numbers.ptr[r + 1])):
            attribute = numbers.attribute[k]
            difference = float(numbers.x[h, attribute] - numbers.x[t, attribute])
            sign = (difference > 0) - (difference < 0)
            expected[i] += sign * numbers.weight[k].detach()
    assert expected.any()
    torch.testing.assert_close(model(head, rel, tail), expected)
    torch.testing.assert_close(
        model.score_tails(head, rel).gather(1, tail[:, None]).squeeze(1), expected
    )
    with pytest.raises(ValueError, match="'numerical' must be rbf, sign or layer"):
        make(data, "n", numerical="tanh")


def test_penalties_and_dropout(data):
    triples = known(data)
    plain = make(data, "l", num_negatives=None)
    for penalty in ({"n3": 0.1}, {"l2": 0.1}):
        assert make(data, "l", num_negatives=None, **penalty).loss(
            *triples
        ) > plain.loss(*triples)
    for dropout in ({"dropout": 0.5}, {"entity_dropout": 0.5}):
        for scorer in SCORERS:
            plain = make(data, "l", scorer=scorer, num_negatives=None)
            dropped = make(data, "l", scorer=scorer, num_negatives=None, **dropout)
            assert dropped(*triples).ne(plain(*triples)).any()
            heads = dropped.score_heads(*triples[1:])
            assert heads.ne(plain.score_heads(*triples[1:])).any()
            dropped.eval()
            torch.testing.assert_close(dropped(*triples), plain(*triples))


@pytest.mark.parametrize(("name", "power"), [("n3", 3), ("l2", 2)])
def test_penalties_of_complex_are_of_complex_numbers(data, name, power):
    model = make(data, "l", scorer="complex", **{name: 0.1})
    head, rel, tail = known(data)
    kge = model.experts["latent"].scorers[0].kge
    entity = torch.complex(kge.node_emb.weight, kge.node_emb_im.weight)
    relation = torch.complex(kge.rel_emb.weight, kge.rel_emb_im.weight)
    expected = sum(
        0.1 * (part.real**2 + part.imag**2).pow(power / 2).sum() / len(head)
        for part in (entity[head], relation[rel], entity[tail])
    )
    torch.testing.assert_close(
        model.experts["latent"].penalty(head, rel, tail), expected
    )


def test_gradients_of_products(monkeypatch):
    monkeypatch.setattr(products, "_WIDTH", 2)
    torch.manual_seed(0)
    query, rows, matrix = (
        torch.randn(shape, dtype=torch.double, requires_grad=True)
        for shape in ((4, 3), (5, 3), (6, 3, 3))
    )
    kind = torch.tensor([2, 0, 2, 5])
    by_type, with_all = products.ProductByType.apply, products.ProductWithAll.apply
    torch.testing.assert_close(with_all(query, rows), query @ rows.t())
    expected = torch.einsum("bi,bij->bj", query, matrix[kind])
    torch.testing.assert_close(by_type(query, matrix, kind), expected)
    assert torch.autograd.gradcheck(with_all, (query, rows))
    assert torch.autograd.gradcheck(by_type, (query, matrix, kind))


def test_dropped_entries_keep_the_mean():
    torch.manual_seed(0)
    for shape in ((1,), (3, 7), (400, 301)):
        for part in (0.1, 0.5, 0.9):
            values = torch.ones(shape, dtype=torch.double, requires_grad=True)
            dropped = drop_entries(values, part)
            other = torch.tensor([0, 1 / (1 - part)], dtype=torch.double)
            assert torch.isclose(dropped[..., None], other, rtol=1e-3).any(-1).all()
            dropped.sum().backward()
            torch.testing.assert_close(values.grad, dropped.detach())
            if values.numel() > 1000:
                assert abs(dropped.eq(0).double().mean() - part) < 0.01


def test_dropped_entries_equal_a_plain_splitmix():
    values, out = np.arange(1.0, 12.0), np.empty(11)
    for seed in (0, 1, 2**62 - 1):
        drop(values, np.uint64(seed), 20000, np.array([0.0, 2.0]), out)
        state, expected = seed, []
        for _ in range(3):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
            z ^= z >> 31
            expected += [2 * ((z >> 16 * k) % 2**16 >= 20000) for k in range(4)]
        assert (out == values * expected[:11]).all()


def test_queries_without_the_latent_expert(data):
    triples = known(data)
    for scorer in ("distmult", "rescal", ["complex", "distmult"]):
        model = make(data, "lrn", scorer=scorer, latent_dropout=0.5)
        alone = model.experts["relational"](*triples) + model.experts["numerical"](
            *triples
        )
        part = model(*triples).isclose(alone).double().mean()
        assert 0.3 < part < 0.7
        assert not model.eval()(*triples).isclose(alone).any()
    with pytest.raises(ValueError, match="'latent_dropout' must be 0 for scorers"):
        make(data, "lr", scorer=["distmult", "transe"], latent_dropout=0.5)
    assert make(data, "l", latent_dropout=0.5).experts["latent"].latent_dropout == 0


def test_candidates_are_dropped(data):
    model = make(data, "l", hidden_channels=64, entity_dropout=0.5)
    queries = Queries(*torch.zeros(2, 40, dtype=torch.long), "tail")
    (scorer,) = model.experts["latent"].scorers
    with torch.no_grad():  # so that a score counts the entries that are left
        for embedding in (scorer.kge.node_emb, scorer.kge.rel_emb):
            embedding.weight.fill_(1.0)
    # Of 64 entries a quarter stays, and counts four times.
    scores = model.score_all(queries)
    assert 55 < scores.mean() < 73
    assert scores.std() > 1
    assert (model.eval().score_all(queries) == 64).all()


def test_own_evidence_does_not_count():
    kb = as_kb([(0, 0, 1), (1, 1, 1), (2, 0, 1)], 3, 2)
    rules = RuleSet.build(["r0", "r1"], head=[0], steps=[[0, 2]])
    model = KBLRN.from_data(kb, "r", rules=rules, num_negatives=None)
    with torch.no_grad():
        model.experts["relational"].weight.fill_(5.0)
    # r0(h, x) ∧ r1(x, t) holds for (0, 1) and (2, 1) by the asked fact alone.
    uniform = torch.log(torch.tensor(3.0))
    loss = model.loss(
        torch.tensor([0]), torch.tensor([0]), torch.tensor([1]), side="tail"
    )
    torch.testing.assert_close(loss, uniform)


def own_evidence_only(num_negatives=None):
    """A model whose rule holds for (0, r0, 1) by this fact alone, and the fact."""
    kb = as_kb([(0, 0, 1), (1, 1, 1)], 3, 2)
    rules = RuleSet.build(["r0", "r1"], head=[0], steps=[[0, 2]])
    model = KBLRN.from_data(kb, "r", rules=rules, num_negatives=num_negatives)
    with torch.no_grad():
        model.experts["relational"].weight.fill_(5.0)
    return model, torch.tensor([[0], [0], [1]])


def test_own_evidence_is_left_out_once_for_facts_that_repeat():
    model, fact = own_evidence_only()
    loss = model.loss(*fact.repeat(1, 3), side="tail")
    torch.testing.assert_close(loss, torch.log(torch.tensor(3.0)))
    loss.backward()
    torch.testing.assert_close(model.experts["relational"].weight.grad, torch.zeros(1))


def test_own_evidence_of_the_true_one_drawn_again_does_not_count():
    model, fact = own_evidence_only(num_negatives=2)
    drawn = torch.tensor([[1, 2, 1]])
    facts = losses.Facts.of(model, *fact)
    found = losses.candidate_loss(model, facts, "tail", drawn)
    torch.testing.assert_close(found, torch.log(torch.tensor(3.0)))
    found.backward()
    torch.testing.assert_close(model.experts["relational"].weight.grad, torch.zeros(1))


def test_own_evidence_does_not_count_in_batches_of_pyg(monkeypatch):
    model, fact = own_evidence_only(num_negatives=2)
    triples = LabelledTriples(*fact.repeat(1, 2), None, torch.tensor([1.0, 0.0]))
    monkeypatch.setattr(losses, "batch_triples", lambda batch: triples)
    torch.testing.assert_close(model.loss(model.kb), torch.log(torch.tensor(2.0)))
    drawn = torch.tensor([[2, 1]])
    triples = LabelledTriples(*fact, drawn, None)
    torch.testing.assert_close(model.loss(model.kb), torch.log(torch.tensor(3.0)))


def test_own_evidence_is_what_a_fact_adds_to_its_own_score(data):
    model = make(data, "r").double()
    rules, every = model.experts["relational"].features.rules, every_triple(model)
    facts = set(zip(*(ids.tolist() for ids in known(data))))
    own = model.own_evidence(*every)
    assert own.any()
    for triple, found in zip(every.t().tolist(), own.tolist()):
        if tuple(triple) not in facts:
            assert found == 0
    for triple in sorted(facts):
        rest = as_kb(sorted(facts - {triple}), model.num_nodes, model.num_relations)
        without = KBLRN.from_data(rest, "r", rules=rules).double()
        without.load_state_dict(model.state_dict())
        index = torch.tensor(triple)[:, None]
        expected = model(*index) - without(*index)
        torch.testing.assert_close(model.own_evidence(*index), expected)
    assert not make(data, "ln").own_evidence(*every).any()


def test_other_inputs():
    typed = HeteroData()
    typed["person"].num_nodes, typed["town"].num_nodes = 3, 2
    typed["person", "lives_in", "town"].edge_index = torch.tensor(
        [[0, 1, 2], [0, 0, 1]]
    )
    typed["person", "knows", "person"].edge_index = torch.tensor([[0, 1], [1, 0]])
    assert repr(KBLRN.from_data(typed, "lr", 4)) == (
        "KBLRN(5, num_relations=2, experts='lr', hidden_channels=4)"
    )
    plain = Data(
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        edge_type=torch.tensor([0, 1]),
        num_nodes=3,
    )
    assert KBLRN.from_data(plain).num_relations == 2
    for wrong, message in (
        ({"experts": "x"}, "'experts' must have letters of lrneo"),
        ({"scorer": "hole"}, "'scorer' must be one of"),
        ({"num_negatives": 0}, "'num_negatives' must be positive"),
        ({"negatives": "few"}, "'negatives' must be triple or shared"),
        ({"dropout": 1.0}, "'dropout' must be at least 0 and less than 1"),
    ):
        with pytest.raises(ValueError, match=message):
            KBLRN.from_data(plain, **wrong)


def test_reset_and_state(data):
    model = make(data)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    model.reset_parameters()
    assert any(not torch.equal(before[k], v) for k, v in model.state_dict().items())
    model.load_state_dict(before)
    twin = make(data)
    twin.load_state_dict(model.state_dict())
    head, rel, tail = known(data)
    assert torch.equal(model(head, rel, tail), twin(head, rel, tail))
    assert model.fingerprint() == twin.fingerprint()
    assert model.fingerprint() != make(data, "lr").fingerprint()
    other, _ = read_kb([("a", "r0", "b")])
    assert KBLRN.from_data(other["train"]).fingerprint() != model.fingerprint()


def test_experts_of_another_model(data):
    model, alone = make(data), make(data, "l")
    for parameter in alone.parameters():
        torch.nn.init.normal_(parameter)
    rules, numbers = (p.clone() for p in model.feature_parameters())
    model.take_experts(alone)
    for mine, theirs in zip(
        model.experts["latent"].parameters(), alone.experts["latent"].parameters()
    ):
        assert torch.equal(mine, theirs)
        assert mine is not theirs
    assert torch.equal(model.experts["relational"].weight, rules)
    assert torch.equal(model.experts["numerical"].weight, numbers)
    features = make(data, "rn")
    torch.nn.init.normal_(features.experts["relational"].weight)
    model.take_experts(features)
    assert torch.equal(
        model.experts["relational"].weight, features.experts["relational"].weight
    )
    assert torch.equal(
        next(model.experts["latent"].parameters()), next(alone.parameters())
    )


@pytest.mark.parametrize(
    ("experts", "settings", "message"),
    [
        ("l", {"scorer": "transe"}, "its latent expert is different"),
        ("l", {"hidden_channels": 4}, "its latent expert is different"),
        ("r", {"max_rules": 2}, "its relational expert is different"),
        ("n", {"numerical": "sign"}, "its numerical expert is different"),
    ],
)
def test_experts_that_mean_something_else(data, experts, settings, message):
    model, other = make(data), make(data, experts, **settings)
    before = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(ValueError, match=message):
        model.take_experts(other)
    assert all(map(torch.equal, before, model.parameters()))


def test_experts_of_as_many_other_rules(data):
    model, other = make(data, "r"), make(data, "r")
    model.take_experts(other)
    other.experts["relational"].features.rules.steps[0, 0] += 1
    with pytest.raises(ValueError, match="its relational expert is different"):
        model.take_experts(other)


def test_experts_of_another_knowledge_base(data):
    with pytest.raises(ValueError, match=r"must have one of the experts l \(got n\)"):
        make(data, "l").take_experts(make(data, "n"))
    other = data.clone()
    other["entity"].name = [f"not {name}" for name in data["entity"].name]
    with pytest.raises(ValueError, match="of the same knowledge base"):
        make(data).take_experts(make(other))


def test_test_gives_the_numbers_of_pyg(data):
    num_nodes, num_relations = data["entity"].num_nodes, len(data.edge_types)
    scorer = DistMult(num_nodes, num_relations, 5)
    model = KBLRN.from_data(data, "l", 5, scorer=scorer)
    triples = known(data)
    theirs = scorer.test(*triples, batch_size=100, k=3, log=False)
    assert model.test(*triples, batch_size=100, k=3, log=False) == pytest.approx(theirs)


def test_parts_sum_to_the_score(data):
    model = make(data)
    for head, rel, tail in every_triple(model).t().tolist()[::29]:
        index = [torch.tensor([i]) for i in (head, rel, tail)]
        for expert in model.experts.values():
            parts = expert.parts(head, rel, tail)
            total = sum(part.contribution for part in parts)
            assert float(expert(*index)) == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("learn_rbf", [False, True])
def test_numbers_stay_exact_when_a_model_is_converted(learn_rbf):
    times = [("a", "t", 1.7e9), ("b", "t", 1.7e9 + 60), ("c", "t", 1.7e9 + 180)]
    facts = [("a", "before", "b"), ("b", "before", "c")]
    kb = read_kb(facts, numerical=times, min_entities=1)[0]["train"]
    model = KBLRN.from_data(kb, "n", learn_rbf=learn_rbf)
    torch.nn.init.ones_(model.experts["numerical"].weight)
    triples = every_triple(model)
    wanted = model(*triples)
    assert wanted.abs().max() > 0.1
    model.float()
    torch.testing.assert_close(model(*triples), wanted)
    assert model.experts["numerical"].x.dtype == torch.double


def test_the_scale_of_numbers_is_all_one_to_learned_centres():
    rng = random.Random(0)
    values = {f"e{i}": rng.random() for i in range(30)}
    facts = [(f"e{i}", "near", f"e{(7 * i + 1) % 30}") for i in range(30)]
    learned = []
    for scale in (2.0**-10, 1.0, 2.0**10):
        numbers = [(name, "x", scale * value) for name, value in values.items()]
        kb = read_kb(facts, numerical=numbers)[0]["train"]
        torch.manual_seed(0)
        model = KBLRN.from_data(kb, "n", learn_rbf=True, num_negatives=None)
        fit(model, kb, epochs=5, lr=0.1, validate_every=5)
        expert = model.experts["numerical"]
        centre, width = expert.centre / scale, expert.log_width.exp() / scale
        learned.append(torch.cat([centre, width, expert.weight]).detach())
        assert abs(centre - expert.first_centre / scale) > 0.01
    for other in learned[1:]:
        torch.testing.assert_close(other, learned[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("num_negatives", [None, 5])
@pytest.mark.parametrize("experts", INSTANCES)
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_short_floats(data, dtype, experts, num_negatives):
    model = make(data, experts, num_negatives=num_negatives).to(dtype)
    triples = every_triple(model)
    head, rel, tail = triples
    scores = model.score_tails(head, rel).gather(1, tail[:, None]).flatten()
    torch.testing.assert_close(scores.to(dtype), model(*triples), atol=0.1, rtol=0.1)
    loss = model.loss(*flat_triples(data))
    loss.backward()
    assert loss.isfinite()
    assert any(p.grad is not None and p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("name", ["n3", "l2"])
@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf")])
def test_penalties_that_are_none_are_refused(data, name, weight):
    what = "not be negative" if weight == -1 else "be a finite number"
    with pytest.raises(ValueError, match=f"'{name}' must {what}"):
        make(data, "l", **{name: weight})
