"""Training with the exact loss, whose batches are queries, resumes exactly, too."""

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import Families
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import Run, fit


class KilledError(Exception):
    pass


@pytest.fixture(scope="module")
def train():
    return Families()[0]


@pytest.fixture(scope="module")
def rules(train):
    return mine_rules(train, max_rules_per_relation=5, confidences=False)


def new_model(train, rules):
    torch.manual_seed(0)
    return KBLRN.from_data(
        train, "lrn", 8, rules=rules, num_negatives=None, dropout=0.2
    )


def learn(model, train, folder):
    fit(model, train, epochs=3, batch_size=4096, lr=0.01, seed=5, run=Run(folder))
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_resumed_weights_are_those_of_an_undisturbed_run(train, rules, tmp_path):
    undisturbed = learn(new_model(train, rules), train, tmp_path / "one")
    model, calls = new_model(train, rules), []
    loss = model.loss

    def dying_loss(*batch):
        calls.append(len(batch))
        if len(calls) == 6:
            raise KilledError
        return loss(*batch)

    model.loss = dying_loss
    with pytest.raises(KilledError):
        learn(model, train, tmp_path / "two")
    assert set(calls) == {4}  # triples and their side: batches of queries
    resumed = learn(new_model(train, rules), train, tmp_path / "two")
    assert undisturbed.keys() == resumed.keys()
    for name, value in undisturbed.items():
        assert torch.equal(value, resumed[name]), name
