"""On Families-num, each ability to use numbers has a relation that needs it."""

import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, layer_features, make_kb, pair_attributes
from kblrn_pyg.data.kb import ask
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import LayerExpert
from kblrn_pyg.rules import RuleSet
from kblrn_pyg.training import fit, seed_all


@pytest.fixture(scope="module")
def splits():
    return load_dataset("Families-num")


def alone(splits, relation):
    """The knowledge base of each split with the facts of one relation only."""
    train = splits["train"]
    rel = [name for _, name, _ in train.edge_types].index(relation)

    def facts(split, key):
        head, rel_type, tail = flat_triples(splits[split], key)
        own = rel_type == rel
        return head[own], torch.zeros_like(rel_type[own]), tail[own]

    entity, names = train["entity"], train.attribute_names
    kb = make_kb(entity.name, [relation], facts("train", "edge_index"), entity.x, names)
    asked = {name: facts(name, "edge_label_index") for name in ("val", "test")}
    return {"train": kb, **{name: ask(kb, triples) for name, triples in asked.items()}}


def trained(kbs, experts="n", **settings):
    """A model of one relation."""
    seed_all(0)
    model = KBLRN.from_data(kbs["train"], experts, num_negatives=None, **settings)
    fit(model, kbs["train"], epochs=15, lr=0.05, batch_size=256)
    return model


def metrics(model, kbs):
    return evaluate(model, kbs["test"], [kbs["val"]]).metrics()


def ranks(kbs, experts="n", **settings):
    """Trains a model of one relation, and measures it."""
    return metrics(trained(kbs, experts, **settings), kbs)


def test_two_peaks_need_a_layer(splits):
    kbs = alone(splits, "taught")
    one, layer = (ranks(kbs, numerical=kind) for kind in ("rbf", "layer"))
    assert layer.mr < 0.5 * one.mr
    assert layer.mrr > 2 * one.mrr


def test_half_known_heights_need_a_low_threshold(splits):
    kbs = alone(splits, "dances_with")
    layer = ranks(kbs, numerical="layer", threshold=0.3)
    high = ranks(kbs, numerical="layer")
    assert layer.mrr > 2 * high.mrr


def test_an_unknown_height_says_something(splits):
    kbs = alone(splits, "dances_with")
    model = trained(kbs, numerical="layer", threshold=0.3)
    whole = metrics(model, kbs)
    with torch.no_grad():  # as if unknown numbers said nothing
        model.experts["numerical"].missing.zero_()
    assert whole.mr < 0.8 * metrics(model, kbs).mr
    assert whole.mr < 0.8 * ranks(kbs, numerical="rbf", threshold=0.3).mr


def test_sizes_need_the_number_of_one_side(splits):
    kbs = alone(splits, "wears")
    no_paths = RuleSet.build(["wears"], [], [])
    given = {"rules": no_paths, "experts": "e"}
    bins, without = (ranks(kbs, evidence_bins=n, **given) for n in (16, 0))
    assert bins.mrr > 0.9 > 2 * without.mrr
    # Sizes have no height that that of a person could be compared with.
    assert not len(layer_features(kbs["train"], threshold=0.01))


def test_a_ring_of_towns_needs_a_derived_distance(splits):
    kbs = alone(splits, "trades_with")
    plain = [one for one in pair_attributes(kbs["train"]) if one.kind != "haversine"]
    expert = LayerExpert(kbs["train"], layer_features(kbs["train"], 0.9, plain))
    derived, without = ranks(kbs, numerical="layer"), ranks(kbs, [expert])
    assert derived.mrr > 1.5 * without.mrr
