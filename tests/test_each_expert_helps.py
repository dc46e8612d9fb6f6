"""On the embedded data set each expert adds something, and shuffled numbers do not."""

import copy

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import fit

pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)


def shuffle_numbers(data, seed):
    """Permutes each attribute's values among the entities that have one."""
    data = copy.copy(data)
    x = data["entity"].x.clone()
    generator = torch.Generator().manual_seed(seed)
    for column in x.t():
        known = (~column.isnan()).nonzero().flatten()
        order = torch.randperm(known.numel(), generator=generator)
        column[known] = column[known[order]]
    data["entity"].x = x
    return data


@pytest.fixture(scope="module")
def mrr():
    """The test MRR of each instance, averaged over the seeds."""
    splits = load_dataset("Families")
    rules = mine_rules(splits["train"], confidences=False)

    def train(experts, seed, data):
        torch.manual_seed(seed)
        model = KBLRN.from_data(
            data, experts, 32, rules=rules, num_negatives=None, dropout=0.3
        )
        fit(model, data, epochs=10, lr=0.02, seed=seed)
        return evaluate(model, splits["test"], (splits["val"],)).metrics().mrr

    found = {
        experts: sum(train(experts, seed, splits["train"]) for seed in SEEDS)
        / len(SEEDS)
        for experts in ("l", "lr", "ln", "lrn")
    }
    found["lrn, shuffled"] = sum(
        train("lrn", seed, shuffle_numbers(splits["train"], seed)) for seed in SEEDS
    ) / len(SEEDS)
    print(found)
    return found


def test_each_expert_helps(mrr):
    assert mrr["lrn"] > mrr["lr"] + 0.01
    assert mrr["lr"] > mrr["l"] + 0.05
    assert mrr["lrn"] > mrr["ln"] + 0.05


def test_shuffled_numbers_help_nothing(mrr):
    gain = mrr["lrn"] - mrr["lr"]
    assert mrr["lrn, shuffled"] - mrr["lr"] < 0.3 * gain
