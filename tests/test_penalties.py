"""What embeddings learn besides: small norms, relations; and half the precision."""

import random

import naive
import pytest
import torch
import torch.nn.functional as F
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.backend import plain_torch
from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn.penalties import embeddings
from kblrn_pyg.nn.rows import TakeRows

SCORERS = ("distmult", "complex", "rescal", "transe", "unit-transe", "rotate")
MULTIPLY = ("distmult", "complex", "rescal")


@pytest.fixture(scope="module")
def data():
    return as_kb(*naive.random_kb(random.Random(11)))


def make(data, **settings):
    torch.manual_seed(0)
    given = {"hidden_channels": 6, "num_negatives": None, **settings}
    return KBLRN.from_data(data, "l", **given).double()


def kges(model):
    return [scorer.kge for scorer in model.experts["latent"].scorers]


def relation_losses(kge, head, rel, tail, num_relations):
    """One triple and one relation at a time, by the model of PyG."""
    total = 0.0
    for h, r, t in zip(head.tolist(), rel.tolist(), tail.tolist()):
        scores = [
            kge(*(torch.tensor([i]) for i in (h, other, t)))
            for other in range(num_relations)
        ]
        total = total + F.cross_entropy(torch.cat(scores)[None], torch.tensor([r]))
    return total / len(head)


@pytest.mark.parametrize("scorer", [*SCORERS, ["distmult", "complex"]])
@pytest.mark.parametrize("num_negatives", [None, 5])
def test_relation_prediction(data, scorer, num_negatives):
    settings = {"scorer": scorer, "num_negatives": num_negatives}
    model = make(data, relation_prediction=0.7, **settings)
    triples = flat_triples(data)
    expected = sum(
        0.7 * relation_losses(kge, *triples, model.num_relations) for kge in kges(model)
    )
    found = model.experts["latent"].penalty(*triples)
    torch.testing.assert_close(found, expected)
    assert_same_gradients(model, found, expected)
    assert_part_of_loss(data, settings, {"relation_prediction": 0.7}, expected)


@pytest.mark.parametrize("scorer", ["distmult", "complex", "rotate"])
def test_reciprocal_relations_are_predicted_from_both_sides(data, scorer):
    model = make(data, scorer=scorer, reciprocal=True, relation_prediction=1.0)
    head, rel, tail = flat_triples(data)
    (kge,) = kges(model)
    number = 2 * model.num_relations
    inverse = rel + model.num_relations
    expected = relation_losses(kge, head, rel, tail, number)
    expected = (expected + relation_losses(kge, tail, inverse, head, number)) / 2
    found = model.experts["latent"].penalty(head, rel, tail)
    torch.testing.assert_close(found, expected)
    assert_same_gradients(model, found, expected)


def product_with(kge, rel, entity, transposed):
    """The vector that a relation makes of an entity, as complex numbers or not."""
    if hasattr(kge, "node_emb_im"):
        re, im = kge.node_emb.weight[entity], kge.node_emb_im.weight[entity]
        number = torch.complex(re, im)
        by = torch.complex(kge.rel_emb.weight[rel], kge.rel_emb_im.weight[rel])
        return number * (by.conj() if transposed else by)
    vector, size = kge.node_emb.weight[entity], kge.hidden_channels
    by = kge.rel_emb.weight[rel]
    if len(by) == size:
        return vector * by
    matrix = by.view(size, size)
    return matrix @ vector if transposed else vector @ matrix


@pytest.mark.parametrize("scorer", MULTIPLY)
def test_duality_induced_penalty(data, scorer):
    model = make(data, scorer=scorer, dura=0.3)
    triples = flat_triples(data)
    (kge,) = kges(model)
    expected = torch.zeros((), dtype=torch.double)
    for h, r, t in zip(*(column.tolist() for column in triples)):
        for rows in (kge.node_emb, getattr(kge, "node_emb_im", None)):
            if rows is not None:
                expected = expected + rows.weight[[h, t]].pow(2).sum()
        for entity, transposed in ((h, False), (t, True)):
            vector = product_with(kge, r, entity, transposed)
            expected = expected + vector.abs().pow(2).sum()
    expected = 0.3 * expected / len(triples[0])
    found = model.experts["latent"].penalty(*triples)
    torch.testing.assert_close(found, expected)
    assert_same_gradients(model, found, expected)
    assert_part_of_loss(data, {"scorer": scorer}, {"dura": 0.3}, expected)


def assert_same_gradients(model, found, expected):
    parameters = list(model.parameters())
    pairs = (
        torch.autograd.grad(value, parameters, retain_graph=True, allow_unused=True)
        for value in (found, expected)
    )
    for one, other in zip(*pairs):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one.to_dense(), other.to_dense())


def assert_part_of_loss(data, settings, penalty, expected):
    torch.manual_seed(1)
    plain = make(data, **settings).loss(*flat_triples(data))
    torch.manual_seed(1)
    model = make(data, **settings, **penalty)
    torch.testing.assert_close(model.loss(*flat_triples(data)) - plain, expected)


@pytest.mark.parametrize("scorer", [*MULTIPLY, ["rescal", "complex"]])
@pytest.mark.parametrize("entity_dropout", [0.0, 0.3])
def test_gradients_of_all_at_once(data, scorer, entity_dropout):
    """Rows are looked up in tables that get gradients as a whole, too."""
    settings = {"n3": 0.1, "l2": 0.2, "dura": 0.3, "relation_prediction": 0.4}
    model = make(data, scorer=scorer, entity_dropout=entity_dropout, **settings)
    if entity_dropout:
        model.eval()  # without the random numbers, which differ
    triples, parameters = flat_triples(data), list(model.parameters())
    found = torch.autograd.grad(model.loss(*triples), parameters)
    latent = model.experts["latent"]
    scores = model.score_tails(*triples[:2]), model.score_heads(*triples[1:])
    answers = triples[2], triples[0]
    losses = [F.cross_entropy(one, answer) for one, answer in zip(scores, answers)]
    expected = sum(losses) / 2 + latent.penalty(*triples)
    wanted = torch.autograd.grad(expected, parameters)
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other)


def test_some_triples_of_large_batches_are_penalised(data, monkeypatch):
    """On average, what is drawn has the penalty of all."""
    model = make(data, scorer="complex", n3=0.1, relation_prediction=0.4)
    expected = model.experts["latent"].penalty(*flat_triples(data))
    monkeypatch.setattr(embeddings, "_MAX_PENALISED", 5)
    with torch.no_grad():
        found = [
            model.experts["latent"].penalty(*flat_triples(data)) for _ in range(2000)
        ]
    assert len({float(one) for one in found}) > 100
    torch.testing.assert_close(sum(found) / len(found), expected, rtol=0.01, atol=0)


def test_rows_are_added_to_the_gradient_of_the_table():
    tables = [torch.randn(5, k, dtype=torch.double).requires_grad_() for k in (2, 3)]
    index, weights = torch.tensor([4, 0, 4]), torch.randn(5, 5, dtype=torch.double)

    def value(*given):
        rows, *same = TakeRows.apply(index, *given)
        again, *same = TakeRows.apply(index[:1], *same)
        whole = torch.cat(same, dim=1) * weights
        return (rows**2).sum() + (again**3).sum() + (whole**2).sum()

    assert torch.autograd.gradcheck(value, tables)
    rows, *_ = TakeRows.apply(index, *tables)  # nothing uses the tables
    (found,) = torch.autograd.grad(rows.sum(), tables[:1])
    assert found.tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [2, 2]]


@pytest.mark.parametrize("scorer", [*MULTIPLY, ["rescal", "complex"]])
@pytest.mark.parametrize("num_negatives", [None, 12])
@pytest.mark.parametrize("is_plain", [False, True])
def test_half_the_precision(data, scorer, num_negatives, is_plain):
    """Losses and gradients are close to the others, but not the same."""
    found = []
    for precision in ("float32", "bfloat16"):
        settings = {"num_negatives": num_negatives, "negatives": "shared"}
        settings = settings if num_negatives else {}
        model = make(data, scorer=scorer, precision=precision, **settings).float()
        for parameter in model.parameters():
            parameter.data *= 3
        torch.manual_seed(2)
        if is_plain:
            with plain_torch():
                loss = model.loss(*flat_triples(data))
                loss.backward()
        else:
            loss = model.loss(*flat_triples(data))
            loss.backward()
        grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
        assert all(grad.dtype == torch.float for grad in grads)
        found.append((loss, torch.cat(grads)))
    (loss, grad), (rounded, by_rounded) = found
    torch.testing.assert_close(loss, rounded, rtol=0.02, atol=0.02)
    assert loss != rounded
    assert F.cosine_similarity(grad, by_rounded, dim=0) > 0.999


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dura": -1.0}, "'dura' must not be negative"),
        ({"dura": 0.1, "scorer": "transe"}, "'dura' must be 0 for scorers that do not"),
        ({"relation_prediction": -0.5}, "'relation_prediction' must not be negative"),
        ({"precision": "float16"}, "'precision' must be float32 or bfloat16"),
    ],
)
def test_what_cannot_be_is_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        make(data, **settings)
