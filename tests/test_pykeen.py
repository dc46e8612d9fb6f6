"""Any interaction of PyKEEN is a scorer."""

import random
import sys

import naive
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import PyKEENModel
from kblrn_pyg.training import fit

# One of quaternions, of complex numbers, with several embeddings, with weights of
# its own, and of scalars.
NAMES = ["QuatE", "ComplEx", "TransD", "ERMLP", "MuRE"]


@pytest.fixture(scope="module")
def data():
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    return as_kb(triples, num_entities, num_relations)


@pytest.fixture(scope="module")
def pykeen():
    return pytest.importorskip("pykeen.nn")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_interactions_are_scorers(data, pykeen, name, reciprocal, tmp_path):
    torch.manual_seed(0)
    settings = {"num_negatives": None, "reciprocal": reciprocal}
    model = KBLRN.from_data(data, "l", 4, scorer=f"pykeen:{name}", **settings)
    assert model.config["scorer"] == [f"pykeen:{name.lower()}"]
    result = fit(model, data, epochs=6, lr=0.05, batch_size=32, validate_every=1)
    assert result.history[-1]["loss"] < 0.99 * result.history[0]["loss"]
    kge = model.experts["latent"].scorers[0].kge
    for side in SIDES:
        entity, rel = torch.tensor([[0, 1, 2, 3], [0, 1, 0, 2]])
        queries = Queries(entity, rel, side)
        candidates = torch.arange(model.num_nodes).expand(4, -1)
        some = model.score_candidates(queries, candidates)
        torch.testing.assert_close(model.score_all(queries), some)
        if not reciprocal:
            triples = [ids.flatten() for ids in queries.triples(candidates)]
            torch.testing.assert_close(kge(*triples).view(some.shape), some)
    assert f"{name} of PyKEEN" in str(model.explain(0, 0, 1))
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    triples = flat_triples(data)
    assert torch.equal(again(*triples), model(*triples))
    assert again.fingerprint() == model.fingerprint()


def test_embeddings_are_cut_as_pykeen_wants_them(pykeen):
    head, rel, tail = torch.tensor([[0, 4], [1, 0], [3, 3]])
    model = PyKEENModel(7, 2, 3, "QuatE").double()
    rows, relations = (e.weight.view(-1, 3, 4) for e in (model.node_emb, model.rel_emb))
    expected = pykeen.QuatEInteraction().double()(
        rows[head], relations[rel], rows[tail]
    )
    torch.testing.assert_close(model(head, rel, tail), expected)
    model = PyKEENModel(7, 2, 3, "complex").double()
    rows, relations = (
        torch.complex(e.weight[:, ::2], e.weight[:, 1::2])
        for e in (model.node_emb, model.rel_emb)
    )
    expected = (rows[head] * relations[rel] * rows[tail].conj()).sum(1).real
    torch.testing.assert_close(model(head, rel, tail), expected)
    model = PyKEENModel(7, 2, 3, "TransD").double()
    vector, projection = (
        e.chunk(2, 1) for e in (model.node_emb.weight, model.rel_emb.weight)
    )
    expected = pykeen.TransDInteraction()(
        tuple(part[head] for part in vector),
        tuple(part[rel] for part in projection),
        tuple(part[tail] for part in vector),
    )
    torch.testing.assert_close(model(head, rel, tail), expected)


def test_options_of_interactions(data, pykeen, tmp_path):
    sizes = data["entity"].num_nodes, len(data.edge_types), 4
    triples, found = flat_triples(data), []
    for options in ({"p": 1}, {"p": 2}, None):
        torch.manual_seed(0)
        kge = PyKEENModel(*sizes, "TransE", options)
        model = KBLRN.from_data(data, "l", 4, scorer=kge)
        model.save(tmp_path / "model.pt")
        again = KBLRN.load(tmp_path / "model.pt")
        assert torch.equal(again(*triples), model(*triples))
        found.append((model(*triples), model.fingerprint()))
    assert found[0][0].ne(found[1][0]).any()
    assert torch.equal(found[1][0], found[2][0])
    assert found[0][1] != found[1][1]


def test_what_pykeen_lacks_is_refused(data, pykeen):
    with pytest.raises(ValueError, match="'interaction' must be one of autosf, "):
        KBLRN.from_data(data, "l", 4, scorer="pykeen:magic")
    with pytest.raises(ValueError, match="'dropout' must be 0 for scorers without"):
        KBLRN.from_data(data, "l", 4, scorer="pykeen:quate", dropout=0.1)


def test_without_pykeen(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "pykeen.nn", None)
    with pytest.raises(ImportError, match=r"pip install 'kblrn_pyg\[pykeen\]'"):
        KBLRN.from_data(data, "l", 4, scorer="pykeen:quate")
