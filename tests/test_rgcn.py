"""R-GCN: the convolution of PyG, and an encoder in front of any scorer."""

import random

import naive
import pytest
import torch
from test_mining import as_kb
from torch_geometric.nn import RGCNConv

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import RGCNScorer
from kblrn_pyg.nn.relational_conv import BlockSums, RelationalConv, WeightedSums
from kblrn_pyg.nn.scorers import make_named_scorer
from kblrn_pyg.training import fit

DECOMPOSITIONS = [{"num_bases": 3}, {"num_blocks": 2}, {}]


@pytest.fixture(scope="module")
def data():
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    return as_kb(triples, num_entities, num_relations)


def edges_of(data):
    head, rel, tail = flat_triples(data)
    return torch.stack([head, tail]), rel


@pytest.mark.parametrize("decomposition", DECOMPOSITIONS, ids=str)
def test_the_convolution_is_that_of_pyg(data, decomposition):
    torch.manual_seed(0)
    edge_index, edge_type = edges_of(data)
    sizes = 6, 4, len(data.edge_types)
    theirs = RGCNConv(*sizes, **decomposition).double()
    mine = RelationalConv(*sizes, **decomposition).double()
    torch.nn.init.normal_(theirs.bias)
    mine.load_state_dict(theirs.state_dict())
    x = torch.randn(data["entity"].num_nodes, 6, dtype=torch.double)
    weights = torch.randn(len(x), 4, dtype=torch.double)
    found = []
    for conv in (theirs, mine):
        given = x.clone().requires_grad_()
        out = conv(given, edge_index, edge_type)
        (out * weights).sum().backward()
        grads = {name: p.grad for name, p in conv.named_parameters()}
        found.append({"out": out, "x": given.grad, **grads})
    for name, expected in found[0].items():
        torch.testing.assert_close(found[1][name], expected.to(torch.double))


@pytest.mark.parametrize("decomposition", DECOMPOSITIONS[:2], ids=str)
def test_edges_may_lead_to_other_nodes(data, decomposition):
    torch.manual_seed(0)
    edge_index, edge_type = edges_of(data)
    theirs = RGCNConv((6, 6), 4, len(data.edge_types), **decomposition).double()
    mine = RelationalConv(6, 4, len(data.edge_types), **decomposition).double()
    mine.load_state_dict(theirs.state_dict())
    x = torch.randn(data["entity"].num_nodes, 6, dtype=torch.double)
    some = torch.tensor([4, 0, 7])
    is_led_to = torch.isin(edge_index[1], some)
    edge_index, edge_type = edge_index[:, is_led_to], edge_type[is_led_to]
    place = (edge_index[1][:, None] == some).nonzero()[:, 1]
    edges = torch.stack([edge_index[0], place]), edge_type
    expected = theirs((x, x[some]), *edges)
    torch.testing.assert_close(mine((x, x[some]), *edges), expected)


def test_gradients_of_sums():
    torch.manual_seed(0)
    source, target, kind = torch.tensor([[0, 1, 1, 4], [2, 2, 2, 0], [0, 2, 0, 2]])
    x, factor, weight = (
        torch.randn(shape, dtype=torch.double, requires_grad=True)
        for shape in ((5, 4), (4, 3), (3, 2, 2, 3))
    )
    share = torch.rand(4, dtype=torch.double)
    assert torch.autograd.gradcheck(
        lambda *given: WeightedSums.apply(*given, source, target, 3), (x, factor)
    )
    assert torch.autograd.gradcheck(
        lambda *given: BlockSums.apply(*given, share, source, target, 3, kind),
        (x, weight),
    )


def make(data, scorer="rgcn:distmult", **settings):
    torch.manual_seed(0)
    return KBLRN.from_data(data, "l", 6, scorer=scorer, **settings)


def all_neighbors(conv, x, edges, kinds):
    """Neighbours of all relations, divided by the number of all of them."""
    weight = torch.einsum("rb,bio->rio", conv.comp, conv.weight)
    rows = []
    for node in range(len(x)):
        sent = [x[j] @ weight[r] for (j, i), r in zip(edges, kinds) if i == node]
        mean = torch.stack(sent).mean(dim=0) if sent else 0.0
        rows.append(x[node] @ conv.root + conv.bias + mean)
    return torch.stack(rows)


@pytest.mark.parametrize("layers", [1, 2])
def test_scores_are_those_of_convolved_embeddings(data, layers):
    model = make(data, rgcn_layers=layers).double().eval()
    (scorer,) = model.experts["latent"].scorers
    assert isinstance(scorer, RGCNScorer)
    head, rel, tail = flat_triples(data)
    both = torch.stack([torch.cat([head, tail]), torch.cat([tail, head])])
    kinds = torch.cat([rel, rel + len(data.edge_types)])
    x = scorer.kge.node_emb.weight
    for i, conv in enumerate(scorer.convs):
        x = all_neighbors(conv, x.relu() if i else x, both.t().tolist(), kinds.tolist())
    expected = (x[head] * scorer.kge.rel_emb.weight[rel] * x[tail]).sum(1)
    torch.testing.assert_close(model(head, rel, tail), expected)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("inner", ["distmult", "complex", "transe", "transr", "conve"])
def test_an_encoder_of_any_scorer(data, inner, reciprocal, tmp_path):
    if inner == "conve" and not reciprocal:
        with pytest.raises(ValueError, match="'reciprocal' must be True for ConvE"):
            make(data, "rgcn:conve")
        return
    settings = {"reciprocal": reciprocal, "num_negatives": None, "dropout": 0.1}
    model = make(data, f"rgcn:{inner}", **settings)
    assert model.config["scorer"] == [f"rgcn:{inner}"]
    result = fit(model, data, epochs=5, lr=0.03, batch_size=32, validate_every=1)
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    for conv in model.experts["latent"].scorers[0].modules():
        if isinstance(conv, RelationalConv):
            assert conv.weight.grad is None or conv.weight.grad.isfinite().all()
    for side in SIDES:
        queries = Queries(*torch.tensor([[0, 1, 2, 3], [0, 1, 0, 2]]), side)
        candidates = torch.arange(model.num_nodes).expand(4, -1)
        some = model.score_candidates(queries, candidates)
        torch.testing.assert_close(model.score_all(queries), some)
    assert "behind R-GCN" in str(model.explain(0, 0, 1))
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    triples = flat_triples(data)
    assert torch.equal(again(*triples), model(*triples))
    assert again.fingerprint() == model.fingerprint()


@pytest.mark.parametrize(
    "loss",
    [{"num_negatives": 20}, {"num_negatives": 20, "negatives": "shared"}],
    ids=str,
)
def test_beside_a_scorer_without_it(data, loss):
    model = make(data, ["distmult", "rgcn:distmult"], rgcn_blocks=3, **loss)
    _, convolved = model.experts["latent"].scorers
    assert convolved.convs[0].num_blocks == 3
    model.loss(*flat_triples(data)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    parts = model.eval().explain(0, 0, 1).parts["latent"]
    assert sorted(part.text for part in parts) == ["DistMult", "DistMult behind R-GCN"]


def test_facts_are_dropped_in_training_only(data):
    model = make(data, edge_dropout=0.5)
    (scorer,) = model.experts["latent"].scorers
    size = 2 * len(flat_triples(data)[0])
    found = [scorer._edges()[1].numel() for _ in range(20)]
    assert 0.3 * size < sum(found) / 20 < 0.7 * size
    assert len(set(found)) > 1
    scorer.eval()
    assert scorer._edges()[1].numel() == size
    assert scorer.encode().equal(scorer.encode())


def test_what_an_entity_sends_to_itself_is_dropped_in_training_only(data):
    (conv,) = make(data).experts["latent"].scorers[0].convs
    x, no_edges = torch.eye(6).repeat(50, 1), torch.empty(2, 0, dtype=torch.long)
    sent = conv(x, no_edges, no_edges[0]) - conv.bias
    kept = sent != 0
    assert 0.75 < kept.double().mean() < 0.85
    torch.testing.assert_close(sent[kept], ((x @ conv.root) / 0.8)[kept])
    sent = conv.eval()(x, no_edges, no_edges[0])
    torch.testing.assert_close(sent, x @ conv.root + conv.bias)


def test_what_cannot_be_convolved_is_said(data):
    sizes = data["entity"].num_nodes, len(data.edge_types), 6
    inner = make_named_scorer("distmult", sizes)
    for wrong, message in (
        ({"num_layers": 0}, "'num_layers' must be positive"),
        ({"num_blocks": 4}, "'num_blocks' must divide the size of rows, 6"),
        ({"edge_dropout": 1.0}, "'edge_dropout' must be at least 0 and less than 1"),
        ({"num_blocks": 2, "num_bases": 2}, "both basis-decomposition and"),
    ):
        with pytest.raises(ValueError, match=message):
            RGCNScorer(data, inner, **wrong)
    with pytest.raises(ValueError, match="'scorer' must have dense gradients where"):
        make(data, sparse=True)
    with pytest.raises(ValueError, match="'scorer' must be one of distmult, "):
        make(data, "rgcn:magic")
    with pytest.warns(
        UserWarning, match="'rgcn_layers' has no effect without a scorer"
    ):
        make(data, "distmult", rgcn_layers=2)
    with pytest.raises(ValueError, match="'rgcn_blocks' must be positive"):
        make(data, rgcn_blocks=0)
    assert make(data, RGCNScorer(data, inner)).config["scorer"] == ["rgcn:distmult"]
