"""R-GCN that samples neighbours: the graph of a step, its cost, and evaluation."""

import logging
import random

import naive
import numpy as np
import pytest
import torch
from naive_neighbors import naive_edges
from test_exact_resume import KilledError
from test_mining import as_kb
from test_rgcn import all_neighbors, make

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn import RGCNScorer
from kblrn_pyg.nn.neighbors import NeighborIndex, SampledGraph
from kblrn_pyg.nn.scorers import make_named_scorer, rgcn
from kblrn_pyg.training import Run, fit

FACTS = torch.tensor([[0, 1, 0, 5, 2, 0, 3, 0], [0] * 8, [1, 0, 2, 0, 2, 3, 0, 5]])
LOSSES = [
    {"num_negatives": None},
    {"num_negatives": 20},
    {"num_negatives": 20, "negatives": "shared"},
    {"num_negatives": 20, "negatives": "shared", "sparse": True},
]


@pytest.fixture(scope="module")
def data():
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    return as_kb(triples, num_entities, num_relations)


@pytest.mark.parametrize("limit", [None, 1, 3, 100])
@pytest.mark.parametrize("edge_dropout", [0.0, 0.4])
def test_edges_are_those_of_a_plain_search(data, limit, edge_dropout):
    size, num_relations = data["entity"].num_nodes, len(data.edge_types)
    facts = torch.stack(flat_triples(data))
    index = NeighborIndex(facts, size, num_relations)
    for entities in (torch.arange(size), torch.tensor([5, 2]), torch.tensor([]).long()):
        for seeds in ((0, 1), (2**62 - 1, 7)):
            given = limit, edge_dropout, seeds
            found = torch.stack(index.edges(entities, *given), dim=1)
            expected = naive_edges(facts, entities, num_relations, *given)
            assert [tuple(row) for row in found.tolist()] == expected


def test_every_neighbour_is_drawn_equally_often():
    index, entity = NeighborIndex(FACTS, 6, 1), torch.tensor([0])
    counts, kept = np.zeros(2 * FACTS.size(1)), []
    for seed in range(2000):
        edges, _ = index._sample(entity.numpy(), 3, seed)
        assert len(set(edges)) == 3
        counts[edges] += 1
        kept.append(len(index.edges(entity, None, 0.4, (0, seed))[0]))
    assert np.count_nonzero(counts) == 7
    assert counts[counts > 0] / 2000 == pytest.approx(3 / 7, abs=0.05)
    assert np.mean(kept) == pytest.approx(0.6 * 7, abs=0.1)


def test_a_fact_is_left_out_in_both_directions(data):
    facts = torch.stack(flat_triples(data))
    num_relations = len(data.edge_types)
    index = NeighborIndex(facts, data["entity"].num_nodes, num_relations)
    every = torch.arange(data["entity"].num_nodes)
    edges = torch.stack(index.edges(every, None, 0.5, (0, 3)), dim=1).tolist()
    along = {(h, r, t) for h, t, r in edges if r < num_relations}
    against = {(h, r - num_relations, t) for t, h, r in edges if r >= num_relations}
    assert along == against
    assert 0 < len(along) < facts.size(1)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("ask", ["some", "all", "all before some"])
def test_rows_and_gradients_are_those_of_the_graph_of_the_step(data, layers, ask):
    model = make(data, rgcn_layers=layers, rgcn_neighbors=2, edge_dropout=0.3).double()
    (scorer,) = model.experts["latent"].scorers
    for conv in scorer.convs:
        conv.root_dropout = 0.0
    every, some = torch.arange(model.num_nodes), torch.tensor([[3, 0], [0, 7]])
    graph = scorer.encode()
    assert isinstance(graph, SampledGraph)
    edges = naive_edges(
        torch.stack(flat_triples(data)),
        *(every, model.num_relations, 2, 0.3, graph.seeds),
    )
    ends = [(source, target) for source, target, _ in edges]
    expected = scorer.kge.node_emb.weight
    for i, conv in enumerate(scorer.convs):
        kinds = [kind for *_, kind in edges]
        expected = all_neighbors(conv, expected.relu() if i else expected, ends, kinds)
    if ask == "all before some":
        scorer.table(graph)
    found = scorer.table(graph, None if ask == "all" else some)
    expected = expected if ask == "all" else expected[some]
    torch.testing.assert_close(found, expected)
    weights, grads = torch.randn_like(found), []
    for rows in (found, expected):
        model.zero_grad()
        (rows * weights).sum().backward(retain_graph=True)
        given = scorer.named_parameters()
        grads.append({n: p.grad.clone() for n, p in given if p.grad is not None})
    torch.testing.assert_close(grads[0], grads[1])
    assert "scorer.kge.node_emb.weight" in grads[0]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("parts", [{"rgcn_blocks": 3}, {}], ids=str)
def test_evaluation_covers_all_facts(data, layers, parts, monkeypatch):
    settings = {"rgcn_layers": layers, **parts}
    whole = make(data, rgcn_neighbors=-1, **settings).double().eval()
    monkeypatch.setattr(rgcn, "_ENTITIES_AT_ONCE", 3)
    sampled = make(data, rgcn_neighbors=1, **settings).double().eval()
    triples = flat_triples(data)
    torch.testing.assert_close(sampled(*triples), whole(*triples))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_it_learns_and_is_a_file(data, loss, tmp_path):
    settings = {"rgcn_layers": 2, "rgcn_neighbors": 2, **loss}
    model = make(data, ["distmult", "rgcn:complex"], **settings)
    model.loss(*flat_triples(data)).backward()
    for name, parameter in model.named_parameters():
        grad = parameter.grad.to_dense()
        assert grad.isfinite().all(), name
        assert grad.any(), name
    model.zero_grad()
    optimizer = "adagrad" if loss.get("sparse") else "adam"
    given = {"optimizer": optimizer, "lr": 0.05, "batch_size": 32}
    result = fit(model, data, epochs=6, validate_every=1, **given)
    assert result.history[-1]["loss"] < 0.99 * result.history[0]["loss"]
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert again.config["rgcn_neighbors"] == 2
    assert again.experts["latent"].scorers[1].num_neighbors == 2
    triples = flat_triples(data)
    assert torch.equal(again(*triples), model(*triples))


def test_the_cost_of_a_step_follows_its_entities(data, monkeypatch):
    settings = {"num_negatives": 2, "negatives": "shared", "rgcn_neighbors": 1}
    model, sizes = make(data, edge_dropout=0.0, **settings), []
    edges = SampledGraph.edges

    def counted(graph, entities):
        found = edges(graph, entities)
        sizes.append((len(entities), len(found[0])))
        return found

    monkeypatch.setattr(SampledGraph, "edges", counted)
    model.loss(*(column[:1] for column in flat_triples(data)))
    # Both ends of the triple, and two other entities for each side.
    assert [number <= 6 and edges <= number for number, edges in sizes] == [True]


def test_the_size_decides(data, monkeypatch, caplog):
    models = [make(data, rgcn_neighbors=number) for number in (None, 3, -1)]
    found = [one.experts["latent"].scorers[0].num_neighbors for one in models]
    assert found == [-1, 3, -1]
    monkeypatch.setattr(rgcn, "MANY_FACTS", len(flat_triples(data)[0]))
    with caplog.at_level(logging.INFO):
        model = make(data)
        for _ in range(2):
            model.loss(*flat_triples(data))
    assert model.experts["latent"].scorers[0].num_neighbors == rgcn.SAMPLED_NEIGHBORS
    assert caplog.text.count("a training step samples 20 neighbours") == 1
    (everything,) = make(data, rgcn_neighbors=-1).experts["latent"].scorers
    assert everything.num_neighbors == -1


def test_large_knowledge_bases_have_row_sparse_gradients(data, monkeypatch):
    monkeypatch.setattr("kblrn_pyg.sizes.LARGE", data["entity"].num_nodes)
    assert not make(data).config["sparse"]
    assert make(data, rgcn_neighbors=3).config["sparse"]
    assert not make(data, rgcn_neighbors=-1).config["sparse"]
    both = ["rgcn:distmult", "complex"]
    assert make(data, both, rgcn_neighbors=3).config["sparse"]
    monkeypatch.setattr(rgcn, "MANY_FACTS", 1)
    assert make(data).config["sparse"]


def learn(data, folder, dies_at=None):
    model = make(data, rgcn_neighbors=2, num_negatives=20)
    loss, calls = model.loss, []

    def dying_loss(*batch):
        calls.append(batch)
        if len(calls) == dies_at:
            raise KilledError
        return loss(*batch)

    model.loss = dying_loss
    fit(model, data, epochs=3, batch_size=16, lr=0.01, seed=5, run=Run(folder))
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_training_resumes_bit_for_bit(data, tmp_path):
    undisturbed = learn(data, tmp_path / "one")
    with pytest.raises(KilledError):
        learn(data, tmp_path / "two", dies_at=6)
    resumed = learn(data, tmp_path / "two")
    for name, value in undisturbed.items():
        assert torch.equal(value, resumed[name]), name


def test_what_cannot_be_sampled_is_said(data):
    sizes = data["entity"].num_nodes, len(data.edge_types), 6
    for wrong in (0, -2):
        with pytest.raises(ValueError, match="'num_neighbors' must be positive, or -1"):
            RGCNScorer(data, make_named_scorer("distmult", sizes), num_neighbors=wrong)
        with pytest.raises(ValueError, match="'rgcn_neighbors' must be positive, or"):
            make(data, rgcn_neighbors=wrong)
    with pytest.warns(UserWarning, match="'rgcn_neighbors' has no effect without a"):
        make(data, "distmult", rgcn_neighbors=2)
