"""Row-sparse training equals dense training, and touches no other rows."""

from functools import partial

import pytest
import torch
from test_experts import data  # noqa: F401, a fixture

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn import SCORERS
from kblrn_pyg.training import Run, fit, optimizers
from kblrn_pyg.training.optimizers import RowAdagrad, ThreadedAdam


@pytest.mark.parametrize("negatives", ["triple", "shared"])
@pytest.mark.parametrize("scorer", SCORERS)
def test_sparse_gradients_are_the_dense_ones(data, scorer, negatives):  # noqa: F811
    grads = []
    for sparse in (False, True):
        torch.manual_seed(0)
        model = KBLRN.from_data(
            data,
            "lr",
            4,
            scorer=scorer,
            num_negatives=20,
            negatives=negatives,
            sparse=sparse,
            reciprocal=scorer == "conve",
        )
        torch.manual_seed(1)
        model.loss(*flat_triples(data)).backward()
        grads.append([p.grad for p in model.parameters()])
    for dense, other in zip(*grads):
        assert not dense.is_sparse
        found = other.to_dense() if other.is_sparse else other
        torch.testing.assert_close(found, dense, rtol=1e-4, atol=1e-6)
    assert any(grad.is_sparse for grad in grads[1])


def naive_row_adagrad(table, steps, lr, eps):
    """One number a row, row by row."""
    table, sums = table.clone(), torch.zeros(len(table), dtype=table.dtype)
    for rows, values in steps:
        for row in rows.unique().tolist():
            total = values[rows == row].sum(dim=0)
            sums[row] += total.pow(2).mean()
            table[row] -= lr * total / (sums[row].sqrt() + eps)
    return table


def test_row_adagrad_equals_a_loop():
    torch.manual_seed(0)
    start = torch.randn(7, 3, dtype=torch.double)
    table = torch.nn.Parameter(start.clone())
    optimizer = RowAdagrad([table], lr=0.3, eps=1e-6)
    steps = []
    for _ in range(4):
        rows = torch.randint(6, (5,))  # with repetitions, and never row 6
        values = torch.randn(5, 3, dtype=torch.double)
        table.grad = torch.sparse_coo_tensor(rows[None], values, table.shape)
        optimizer.step()
        steps.append((rows, values))
    expected = naive_row_adagrad(start, steps, 0.3, 1e-6)
    torch.testing.assert_close(table.detach(), expected)
    assert torch.equal(table[6], start[6])


def test_dense_parameters_are_updated_as_by_adagrad():
    torch.manual_seed(0)
    start = torch.randn(4, 3)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    optimizers = RowAdagrad([ours], lr=0.1), torch.optim.Adagrad([theirs], lr=0.1)
    for _ in range(3):
        grad = torch.randn(4, 3)
        for parameter, optimizer in zip((ours, theirs), optimizers):
            parameter.grad = grad.clone()
            optimizer.step()
    torch.testing.assert_close(ours, theirs)


def test_sparse_training_learns_and_needs_its_optimiser(data):  # noqa: F811
    settings = {"num_negatives": 20, "negatives": "shared", "sparse": True}
    torch.manual_seed(0)
    model = KBLRN.from_data(data, "l", 4, **settings)
    result = fit(model, data, epochs=30, lr=0.1, optimizer="adagrad", validate_every=1)
    assert result.history[-1]["loss"] < 0.9 * result.history[0]["loss"]
    with pytest.raises(ValueError, match="'optimizer' must be adagrad for row-sparse"):
        fit(model, data, epochs=1, optimizer="adam")
    with pytest.raises(ValueError, match="'sparse' must be False where the loss"):
        KBLRN.from_data(data, "l", 4, num_negatives=None, sparse=True)
    with pytest.raises(ValueError, match="'optimizer' must be one of adam, adagrad"):
        fit(model, data, epochs=1, optimizer="sgd")


def test_sparse_models_are_saved_and_resumed(data, tmp_path):  # noqa: F811
    torch.manual_seed(0)
    settings = {"num_negatives": 20, "negatives": "shared", "sparse": True}
    weights = []
    for name, stops in (("whole", [4]), ("stopped", [2, 4])):
        for epochs in stops:
            torch.manual_seed(0)
            model = KBLRN.from_data(data, "lr", 4, **settings)
            run = Run(tmp_path / name)
            fit(model, data, epochs=epochs, lr=0.1, optimizer="adagrad", run=run)
        weights.append(KBLRN.load(tmp_path / name / "model.pt").state_dict())
    for key, value in weights[0].items():
        assert torch.equal(value, weights[1][key]), key


fused_adam = partial(torch.optim.Adam, fused=True)


def test_threaded_adam_equals_torch():
    torch.manual_seed(0)
    shapes = (3000, 50), (50, 3000), (7,), (0,)
    start = [torch.randn(shape) for shape in shapes]
    start[1] = start[1].t()  # which cannot be cut in pieces
    found = []
    for make, num_threads in ((ThreadedAdam, 1), (ThreadedAdam, 2), (fused_adam, 2)):
        torch.manual_seed(1)
        parameters = [torch.nn.Parameter(one.clone()) for one in start]
        optimizer = make([{"params": parameters, "lr": 0.01}])
        for _ in range(4):
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            before = torch.get_num_threads()
            torch.set_num_threads(num_threads)
            optimizer.step()
            torch.set_num_threads(before)
        found.append((parameters, optimizer.state_dict()["state"]))
    for parameters, state in found[:2]:
        for one, other in zip(parameters, found[2][0]):
            torch.testing.assert_close(one, other, rtol=0, atol=1e-7)
        for place, numbers in found[2][1].items():
            assert state[place].keys() == numbers.keys()
            assert state[place]["step"] == numbers["step"] == 4


def test_threaded_adam_shares_its_work(monkeypatch):
    monkeypatch.setattr(optimizers, "default_threads", lambda: 2)
    sizes = []
    monkeypatch.setattr(
        optimizers, "_adam", lambda given, *_: sizes.append(len(given[0])) or _[0]
    )
    table = torch.nn.Parameter(torch.randn(3000, 50))
    table.grad = torch.ones_like(table)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    ThreadedAdam([table]).step()
    torch.set_num_threads(before)
    assert sizes == [75_000, 75_000]
