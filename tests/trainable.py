"""A model that is quick to train, and what tests of training do with it."""

import random
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

from kblrn_pyg.data import ask, flat_triples, make_kb
from kblrn_pyg.training import Run, fit, load_checkpoint, seed_all, set_threads

NUM_NODES, NUM_RELATIONS, NUM_BATCHES = 20, 3, 6
SETTINGS = {
    "epochs": 6,
    "batch_size": 16,
    "validate_every": 2,
    "patience": 9,
    "lr": 0.01,
}


class FakeModel(torch.nn.Module):
    """A DistMult that uses random numbers of every kind."""

    num_nodes, num_relations = NUM_NODES, NUM_RELATIONS

    def __init__(self, name="fake", pause=0.0):
        super().__init__()
        seed_all(0)
        self.entity = torch.nn.Embedding(NUM_NODES, 4)
        self.relation = torch.nn.Embedding(NUM_RELATIONS, 4)
        self.name, self.pause, self.config = name, pause, {"channels": 4}

    def fingerprint(self):
        return self.name * 10

    def feature_parameters(self):
        return [self.relation.weight]

    def loader(self, *triples, **kwargs):
        return DataLoader(TensorDataset(*triples), **kwargs)

    def score_tails(self, head_index, rel_type):
        query = self.entity(head_index) * self.relation(rel_type)
        return F.dropout(query, 0.1, self.training) @ self.entity.weight.t()

    def score_heads(self, rel_type, tail_index):
        return self.score_tails(tail_index, rel_type)

    def loss(self, head_index, rel_type, tail_index):
        time.sleep(self.pause)
        scores = self.score_tails(head_index, rel_type)
        negative = torch.randint(NUM_NODES, (len(head_index), 5))
        candidates = torch.cat([tail_index[:, None], negative], dim=1)
        noise = 1 + 0.1 * np.random.standard_normal() + 0.1 * random.gauss(0, 1)
        loss = F.cross_entropy(
            scores.gather(1, candidates), torch.zeros_like(head_index)
        )
        return loss * noise


def small_kb():
    generator = torch.Generator().manual_seed(1)

    def triples(number):
        return tuple(
            torch.randint(high, (number,), generator=generator)
            for high in (NUM_NODES, NUM_RELATIONS, NUM_NODES)
        )

    names = [f"e{i}" for i in range(NUM_NODES)]
    train = make_kb(names, ["r", "s", "t"], triples(90))
    return train, ask(train, triples(10))


def two_sets():
    """Two validation sets, one of them a part of the other."""
    train, val = small_kb()
    triples = (column[:4] for column in flat_triples(val, "edge_label_index"))
    return {"all": val, "some": ask(train, tuple(triples))}


def train_fake(folder=None, **changes):
    """Trains a new model, in a folder if there is one, and returns its weights."""
    set_threads(1)
    model = FakeModel(pause=changes.pop("pause", 0.0))
    train, val = small_kb()
    arguments = {"val": val, **SETTINGS, **changes}
    run = None if folder is None else Run(folder)
    result = fit(model, train, run=run, **arguments)
    return model.state_dict(), result


def same(one, other):
    """Whether nested states are equal, bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def without_times(lines):
    times = ("seconds", "triples_per_second")
    return [{k: v for k, v in line.items() if k not in times} for line in lines]


def assert_same_end(folder, expected):
    found, wanted = (load_checkpoint(f / "checkpoint.pt") for f in (folder, expected))
    for part in ("model", "best", "optimizer", "stopping"):
        assert same(getattr(found, part), getattr(wanted, part)), part
    lines = without_times(Run(folder).read_log())
    assert lines == without_times(Run(expected).read_log())
    assert lines == without_times(found.history)
    assert not list(folder.glob(".*"))
