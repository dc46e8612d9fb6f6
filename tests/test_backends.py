"""Plain torch, as other devices run it, against the kernels, both on the CPU."""

import pytest
import torch
from test_columns import NUM_NODES, all_queries, columns_of, random_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.backend import plain_torch, uses_kernels
from kblrn_pyg.data import ask, flat_triples
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.training.optimizers import RowAdagrad

LOSSES = {
    "exact": {"num_negatives": None},
    "shared": {"num_negatives": 15, "negatives": "shared"},
    "sparse": {"num_negatives": 15, "negatives": "shared", "sparse": True},
    "triple": {"num_negatives": 12},
}


def make(loss, scorer="distmult", **settings):
    torch.manual_seed(0)
    settings = {"threshold": 0.5, **LOSSES[loss], **settings}
    return KBLRN.from_data(random_kb(2), "lrn", 8, scorer, **settings).double()


def test_the_choice():
    assert uses_kernels(torch.zeros(1))
    with plain_torch():
        assert not uses_kernels(torch.zeros(1))
    assert not uses_kernels(torch.zeros(1, device="meta"))


@pytest.mark.parametrize("scorer", ["distmult", "complex", "transe", "rotate"])
@pytest.mark.parametrize("loss", list(LOSSES))
def test_losses_and_gradients(loss, scorer):
    model = make(loss, scorer, learn_rbf=True)
    triples = flat_triples(model.kb)
    found = []
    for is_plain in (False, True):
        torch.manual_seed(1)
        model.zero_grad()
        if is_plain:
            with plain_torch():
                value = model.loss(*triples)
                value.backward()
        else:
            value = model.loss(*triples)
            value.backward()
        grads = [p.grad.to_dense().clone() for p in model.parameters()]
        found.append([value.detach(), *grads])
    for one, other in zip(*found):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("activation", ["rbf", "sign"])
def test_scores(activation):
    model = make("exact", numerical=activation).eval()
    columns = columns_of(9)
    for queries in all_queries():
        candidates = torch.randint(NUM_NODES, (len(queries), 11))
        ways = (
            lambda q=queries: model.score_all(q),
            lambda q=queries: model.score_all(q, columns),
            lambda q=queries, c=candidates: model.score_candidates(q, c),
        )
        for way in ways:
            expected = way()
            with plain_torch():
                found = way()
            torch.testing.assert_close(found, expected)


def test_ranks():
    model = make("exact")
    kb = random_kb(2)
    asked = ask(kb, tuple(i[:60] for i in flat_triples(kb)))
    expected = evaluate(model, asked)
    with plain_torch():
        found = evaluate(model, asked)
    assert (found.rank == expected.rank).all()
    assert (found.num_candidates == expected.num_candidates).all()


def test_updates_of_rows():
    tables = []
    for is_plain in (False, True):
        torch.manual_seed(0)
        table = torch.nn.Parameter(torch.randn(50, 6))
        optimizer = RowAdagrad([table], lr=0.1)
        for _ in range(3):
            rows = torch.randint(50, (1, 40))
            grad = torch.sparse_coo_tensor(rows, torch.randn(40, 6), table.shape)
            table.grad = grad
            if is_plain:
                with plain_torch():
                    optimizer.step()
            else:
                optimizer.step()
        tables.append(table.detach())
    torch.testing.assert_close(*tables)
