"""BinNumbers: numbers as facts."""

import numpy as np
import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import BinNumbers, DataError, flat_triples, validate_kb
from kblrn_pyg.data.intervals import nested_intervals
from kblrn_pyg.data.kb import make_kb
from kblrn_pyg.datasets import Families


@pytest.fixture(scope="module")
def splits():
    return [Families(split=split)[0] for split in ("train", "val")]


def test_every_number_lies_in_a_bin_of_each_size(splits):
    train, _ = splits
    binned = BinNumbers(4)(train)
    validate_kb(binned)
    x, size = train["entity"].x.numpy(), train["entity"].num_nodes
    names, found = binned["entity"].name, nested_intervals(train, 4)
    assert names[:size] == train["entity"].name
    assert len(names) == binned["entity"].num_nodes == size + len(found)
    assert binned["entity"].x[size:].isnan().all()
    new = binned.edge_types[len(train.edge_types) :]
    assert [one[1] for one in new] == [f"{one} in" for one in train.attribute_names]
    begin = size
    for a, edge_type in enumerate(new):
        edges = set(map(tuple, binned[edge_type].edge_index.t().tolist()))
        expected = {
            (int(e), begin + i)
            for i, place in enumerate(range(found.ptr[a], found.ptr[a + 1]))
            for e in np.flatnonzero(
                (x[:, a] >= found.low[place]) & (x[:, a] < found.high[place])
            )
        }
        assert edges == expected
        # Two bins and four, and not more than about a quarter in each of these.
        known = int((~np.isnan(x[:, a])).sum())
        assert len(edges) == 2 * known
        count = np.bincount([tail - begin for _, tail in edges])
        assert count.max() <= 0.6 * known
        begin += len(count)


def test_bins_that_differ_by_the_last_digit_have_names_of_their_own():
    x = 1 + torch.arange(4).double().repeat(5)[:, None] * 2**-52
    names = [str(i) for i in range(20)]
    facts = tuple(torch.zeros(1, dtype=torch.long) for _ in range(3))
    binned = BinNumbers(4)(make_kb(names, ["r"], facts, x, ["value"]))
    bins = binned["entity"].name[20:]
    assert len(set(bins)) == len(bins) == 6


def test_infinite_numbers_are_refused():
    x = torch.arange(20.0)[:, None]
    x[3] = torch.inf
    names = [str(i) for i in range(20)]
    facts = tuple(torch.zeros(1, dtype=torch.long) for _ in range(3))
    with pytest.raises(DataError, match="must be finite, or NaN where unknown"):
        BinNumbers(4)(make_kb(names, ["r"], facts, x, ["value"]))


def test_other_splits_get_the_same_bins_and_ask_the_same(splits):
    train, val = (BinNumbers(8)(split) for split in splits)
    assert train["entity"].name == val["entity"].name
    assert train.edge_types == val.edge_types
    for mine, theirs in zip(flat_triples(train), flat_triples(val)):
        assert torch.equal(mine, theirs)
    for before, after in zip(
        flat_triples(splits[1], "edge_label_index"),
        flat_triples(val, "edge_label_index"),
    ):
        assert torch.equal(before, after)
    asked = flat_triples(train, "edge_label_index")
    assert torch.equal(asked[1], flat_triples(train)[1])
    # What was given is as it was.
    assert splits[0]["entity"].num_nodes == Families()[0]["entity"].num_nodes
    assert len(splits[0].edge_types) == len(Families()[0].edge_types)


def test_a_model_learns_from_bins(splits):
    train = BinNumbers(4)(splits[0])
    model = KBLRN.from_data(train, "l", hidden_channels=4, num_negatives=5)
    assert model.num_relations == len(splits[0].edge_types) + 5
    assert "birth_year < " in str(model.predict_tails(0, "birth_year in", k=2000))


def test_what_cannot_be_is_refused(splits):
    with pytest.raises(ValueError, match="num_bins"):
        BinNumbers(3)
    once = BinNumbers(2)(splits[0])
    with pytest.raises(DataError, match="there is a relation 'height in' already"):
        BinNumbers(2)(once)
    named = Families()[0]
    named["entity"].name = [*once["entity"].name[-1:], *named["entity"].name[1:]]
    with pytest.raises(DataError, match="there is an entity"):
        BinNumbers(2)(named)
    assert repr(BinNumbers(2)) == "BinNumbers(num_bins=2)"
