"""Scorers of other papers: their formulas, their gradients, and those of PyKEEN."""

import random

import naive
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import ConvE, TransH, TransR, TuckER, products
from kblrn_pyg.nn.scorers import make_scorer
from kblrn_pyg.training import fit

HEAD = torch.tensor([0, 4, 5, 2, 2, 6])
REL = torch.tensor([1, 0, 1, 2, 0, 2])
TAIL = torch.tensor([3, 3, 0, 2, 1, 6])
PROJECTING = [(kind, p) for kind in (TransH, TransR) for p in (1.0, 2.0, 3.0)]


def drawn(kind, *args, **kwargs):
    """A model of 7 entities and 3 relations, all of whose weights are drawn."""
    torch.manual_seed(1)
    model = kind(7, 3, *args, **kwargs).double().eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.3, 0.3)
    for name, buffer in model.named_buffers():
        if "running" in name:
            torch.nn.init.uniform_(buffer, 0.2, 0.9)
    return model


def each_triple(model, score):
    """Compares the scores of a model with those of one triple after the other."""
    found = model(HEAD, REL, TAIL).tolist()
    for i, (head, rel, tail) in enumerate(zip(HEAD, REL, TAIL)):
        rows = model.node_emb.weight[head], model.node_emb.weight[tail]
        with torch.no_grad():
            expected = float(score(rows[0], int(rel), rows[1]))
        assert found[i] == pytest.approx(expected)
    model.loss(HEAD, REL, TAIL).backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_transh_translates_on_hyperplanes(p):
    model = drawn(TransH, 4, p_norm=p)

    def score(head, rel, tail):
        normal = model.rel_normal.weight[rel]
        normal = normal / normal.norm()
        head, tail = (e - float(e @ normal) * normal for e in (head, tail))
        apart = head + model.rel_emb.weight[rel] - tail
        return -sum(abs(float(x)) ** p for x in apart)

    each_triple(model, score)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_transr_translates_in_spaces_of_relations(p):
    model = drawn(TransR, 4, rel_channels=3, p_norm=p)

    def score(head, rel, tail):
        matrix = model.rel_matrix.weight[rel].view(4, 3)
        apart = head @ matrix + model.rel_emb.weight[rel] - tail @ matrix
        return -sum(abs(float(x)) ** p for x in apart)

    each_triple(model, score)
    begin = TransR(7, 3, 4)
    rows, moves = begin.node_emb.weight, begin.rel_emb.weight
    apart = rows[HEAD] + moves[REL] - rows[TAIL]
    torch.testing.assert_close(begin(HEAD, REL, TAIL), -apart.square().sum(1))


def test_tucker_has_a_core():
    model = drawn(TuckER, 4, rel_channels=3)

    def score(head, rel, tail):
        relation = model.rel_emb.weight[rel]
        return sum(
            float(model.core[i, j, k] * relation[i] * head[j] * tail[k])
            for i in range(3)
            for j in range(4)
            for k in range(4)
        )

    each_triple(model, score)


def naive_conve(model, head, rel, tail):
    """ConvE in evaluation mode, number by number."""
    d, height = model.hidden_channels, model.height
    width = d // height
    numbers = [*head[:d].tolist(), *model.rel_emb.weight[rel].tolist()]

    def normalised(value, layer, i):
        mean, var = float(layer.running_mean[i]), float(layer.running_var[i])
        value = (value - mean) / (var + layer.eps) ** 0.5
        return value * float(layer.weight[i]) + float(layer.bias[i])

    image = [normalised(x, model.image_norm, 0) for x in numbers]
    rows, columns = model.conv.kernel_size
    features = []
    for channel in range(model.conv_channels):
        kernel = model.conv.weight[channel, 0].tolist()
        for y in range(2 * height - rows + 1):
            for x in range(width - columns + 1):
                total = float(model.conv.bias[channel]) + sum(
                    kernel[i][j] * image[(y + i) * width + x + j]
                    for i in range(rows)
                    for j in range(columns)
                )
                features.append(max(0.0, normalised(total, model.conv_norm, channel)))
    score = float(tail[d])
    for i, weights in enumerate(model.hidden.weight.tolist()):
        total = sum(w * x for w, x in zip(weights, features))
        total += float(model.hidden.bias[i])
        score += max(0.0, normalised(total, model.hidden_norm, i)) * float(tail[i])
    return score


@pytest.mark.parametrize(
    ("size", "height"), [(12, None), (12, 2), (4, None), (5, None)]
)
def test_conve_convolves_images(size, height):
    model = drawn(ConvE, size, height=height, conv_channels=3)
    each_triple(model, lambda *triple: naive_conve(model, *triple))
    assert ConvE(7, 3, 200).height == 10
    with pytest.raises(ValueError, match=r"'height' must divide 'hidden_channels', 12"):
        ConvE(7, 3, 12, height=5)


def test_conve_drops_and_normalises_in_training():
    model = drawn(ConvE, 12, conv_channels=3)
    before = model.conv_norm.running_mean.clone()
    same = model(HEAD, REL, TAIL)
    model.train()
    first, second = model(HEAD, REL, TAIL), model(HEAD, REL, TAIL)
    assert first.ne(second).any()
    assert model.conv_norm.running_mean.ne(before).any()
    # One query has no deviation of its own, and no query is none.
    without = ConvE(7, 3, 12, conv_channels=3, dropouts=(0.0, 0.0, 0.0)).double()
    without.load_state_dict(drawn(ConvE, 12, conv_channels=3).state_dict())
    single = without(HEAD[:1], REL[:1], TAIL[:1])
    torch.testing.assert_close(single, same[:1])
    assert without(HEAD[:0], REL[:0], TAIL[:0]).shape == (0,)


def test_conve_needs_reciprocal_relations():
    with pytest.raises(ValueError, match="'reciprocal' must be True for ConvE, which"):
        make_scorer("conve", 7, 3, 4)


def scores_of(scorer, index):
    """The scores of all candidates, shared and looked up, of both sides."""
    table = scorer.table(scorer.encode())
    for query in (
        scorer.tail_query(scorer.table(scorer.encode(), index), REL),
        scorer.head_query(REL, scorer.table(scorer.encode(), index)),
    ):
        yield scorer.compare(query, table)
        yield scorer.compare(query, table.expand(len(REL), -1, -1))


@pytest.mark.parametrize(("kind", "p"), PROJECTING)
def test_shared_candidates_have_the_gradients_of_single_ones(kind, p):
    model = drawn(kind, 4, p_norm=p)
    scorer = make_scorer(model, 7, 3, 4)
    every = torch.arange(7).expand(len(REL), -1)
    rel = REL[:, None].expand_as(every)
    known = HEAD[:, None].expand_as(every)
    expected = [model(known, rel, every), model(every, rel, known)]
    expected = [one for one in expected for _ in range(2)]
    weights = torch.randn(len(REL), 7, dtype=torch.double)
    for found, wanted in zip(scores_of(scorer, HEAD), expected):
        torch.testing.assert_close(found, wanted)
        grads = [
            torch.autograd.grad(
                (one * weights).sum(), list(model.parameters()), retain_graph=True
            )
            for one in (found, wanted)
        ]
        for mine, theirs in zip(*grads):
            torch.testing.assert_close(mine, theirs)
    assert [one.shape for one in scores_of(scorer, HEAD)] == [(6, 7)] * 4
    nothing = scorer.compare(torch.empty(0, 5).double(), model.node_emb.weight)
    assert nothing.shape == (0, 7)


def test_relations_that_a_type_cannot_count_are_refused():
    scorer = make_scorer(TransH(7, 2049, 4).half(), 7, 2049, 4)
    with pytest.raises(ValueError, match="'num_relations' must be numbers that torch"):
        scorer.tail_query(scorer.table(None, HEAD), REL)


class Mirrored(TransH):
    """A user's subclass that projects differently."""

    def project(self, embedding, rel_type):
        return 2 * super().project(embedding, rel_type) - embedding


def test_subclasses_that_change_the_projection_are_not_mistaken():
    model = drawn(Mirrored, 4)
    scorer = make_scorer(model, 7, 3, 4)
    query = scorer.tail_query(scorer.table(None, HEAD), REL)
    every = torch.arange(7).expand(len(REL), -1)
    expected = model(
        HEAD[:, None].expand_as(every), REL[:, None].expand_as(every), every
    )
    torch.testing.assert_close(scorer.compare(query, scorer.table(None)), expected)


def test_gradients_of_squared_lengths():
    torch.manual_seed(0)
    rows, matrix = (
        torch.randn(shape, dtype=torch.double, requires_grad=True)
        for shape in ((5, 4), (3, 4, 2))
    )
    lengths = products.SquaredLengths.apply
    expected = torch.einsum("ni,rij->rnj", rows, matrix).square().sum(-1)
    torch.testing.assert_close(lengths(rows, matrix), expected)
    assert torch.autograd.gradcheck(lengths, (rows, matrix))


@pytest.fixture(scope="module")
def data():
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    return as_kb(triples, num_entities, num_relations)


SETTINGS = [
    *({"scorer": name} for name in ("transh", "transr", "tucker")),
    *({"scorer": name, "reciprocal": True} for name in ("transh", "transr")),
    *({"scorer": name, "reciprocal": True} for name in ("tucker", "conve")),
]
LOSSES = [
    {"num_negatives": None},
    {"num_negatives": 20},
    {"num_negatives": 20, "negatives": "shared"},
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_they_learn_explain_and_are_files(data, settings, loss, tmp_path):
    torch.manual_seed(0)
    dropout = {"dropout": 0.1, "entity_dropout": 0.1, "l2": 1e-3}
    model = KBLRN.from_data(data, "l", 12, **settings, **loss, **dropout)
    result = fit(model, data, epochs=8, lr=0.05, batch_size=16, validate_every=1)
    assert result.history[-1]["loss"] < 0.97 * result.history[0]["loss"]
    for parameter in model.parameters():
        assert parameter.isfinite().all()
    reasons = model.explain(0, 0, 1)
    parts = [part.contribution for part in reasons.parts["latent"]]
    index = torch.tensor([[0], [0], [1]])
    assert sum(parts) == pytest.approx(float(model(*index)), abs=1e-4)
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    for side in SIDES:
        queries = Queries(*torch.tensor([[0, 1, 2], [0, 1, 0]]), side)
        assert torch.equal(again.score_all(queries), model.score_all(queries))
        candidates = torch.arange(model.num_nodes).expand(3, -1)
        torch.testing.assert_close(
            model.score_candidates(queries, candidates), model.score_all(queries)
        )


@pytest.mark.parametrize("name", ["transh", "transr", "tucker", "conve"])
def test_row_sparse_gradients_are_those_of_tables(data, name):
    settings = {"scorer": name, "reciprocal": name == "conve", "negatives": "shared"}
    grads = []
    for sparse in (False, True):
        torch.manual_seed(0)
        model = KBLRN.from_data(
            data, "l", 6, num_negatives=9, sparse=sparse, **settings
        )
        model.loss(*flat_triples(data)).backward()
        grads.append({n: p.grad for n, p in model.named_parameters()})
    for one, grad in grads[0].items():
        other = grads[1][one]
        assert other.is_sparse == one.endswith("node_emb.weight")
        torch.testing.assert_close(grad, other.to_dense() if other.is_sparse else other)


def test_a_model_of_ones_own_keeps_its_arguments(data, tmp_path):
    sizes = data["entity"].num_nodes, len(data.edge_types)
    made = [
        TransR(*sizes, 6, rel_channels=2, p_norm=1.0),
        TuckER(*sizes, 6, rel_channels=3),
    ]
    model = KBLRN.from_data(data, "l", 6, scorer=made)
    assert model.config["scorer"] == ["transr of norm 1.0", "tucker"]
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    triples = flat_triples(data)
    assert torch.equal(again(*triples), model(*triples))
    assert again.fingerprint() == model.fingerprint()
    conve = ConvE(sizes[0], 2 * sizes[1], 6, height=1, dropouts=(0.0, 0.1, 0.0))
    model = KBLRN.from_data(data, "l", 6, scorer=conve, reciprocal=True)
    model.save(tmp_path / "model.pt")
    (scorer,) = KBLRN.load(tmp_path / "model.pt").experts["latent"].scorers
    assert (scorer.kge.height, scorer.kge.dropouts) == (1, (0.0, 0.1, 0.0))


@pytest.mark.parametrize("name", ["transh", "transr", "tucker"])
def test_they_complete_families(name):
    train, val, test = load_dataset("Families").values()
    torch.manual_seed(0)
    settings = {"num_negatives": 200, "negatives": "shared"}
    model = KBLRN.from_data(train, "l", 24, scorer=name, **settings)
    fit(model, train, epochs=4, lr=0.02, batch_size=512)
    mrr = evaluate(model, test, filter_with=[val]).metrics().mrr
    assert mrr > 0.1


def test_tucker_multiplies_pairs_by_relations():
    model = drawn(TuckER, 4, rel_channels=3)
    scorer = make_scorer(model, 7, 3, 4)
    rows = model.node_emb(HEAD), model.node_emb(TAIL)
    factors = scorer.relation_factors(*rows)
    found = factors.query @ factors.tables[0].t()
    for rel in range(3):
        expected = model(HEAD, torch.full_like(HEAD, rel), TAIL)
        torch.testing.assert_close(found[:, rel], expected)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_further_penalties_of_the_latent_expert(data, settings):
    torch.manual_seed(0)
    names = ["relation_prediction"]
    if settings["scorer"] in ("tucker", "conve"):
        names.append("dura")
    for name in names:
        given = {**settings, name: 0.1, "num_negatives": None}
        model = KBLRN.from_data(data, "l", 6, **given)
        penalty = model.experts["latent"].penalty(*flat_triples(data))
        assert float(penalty) > 0
        penalty.backward()
        assert model.experts["latent"].scorers[0].kge.rel_emb.weight.grad.any()


# What follows needs PyKEEN.


def pykeen_interaction(name, *args, **kwargs):
    modules = pytest.importorskip("pykeen.nn.modules")
    interaction = getattr(modules, f"{name}Interaction")(*args, **kwargs)
    return interaction.double().eval()


@pytest.mark.parametrize("p", [1, 2])
def test_transh_is_that_of_pykeen(p):
    theirs = pykeen_interaction("TransH", p=p, power_norm=True)
    model = drawn(TransH, 6, p_norm=float(p))
    rows = model.node_emb(HEAD), model.node_emb(TAIL)
    relation = model.normal(REL), model.rel_emb(REL)
    torch.testing.assert_close(
        model(HEAD, REL, TAIL), theirs(rows[0], relation, rows[1])
    )


@pytest.mark.parametrize("p", [1, 2])
def test_transr_is_that_of_pykeen(p):
    # PyKEEN bounds the lengths of projections, to nothing here.
    theirs = pykeen_interaction(
        "TransR", p=p, power_norm=True, max_projection_norm=99.0
    )
    model = drawn(TransR, 6, rel_channels=4, p_norm=float(p))
    rows = model.node_emb(HEAD), model.node_emb(TAIL)
    relation = model.rel_emb(REL), model.matrix[REL]
    torch.testing.assert_close(
        model(HEAD, REL, TAIL), theirs(rows[0], relation, rows[1])
    )


def test_tucker_is_that_of_pykeen():
    theirs = pykeen_interaction("TuckER", 6, 4, apply_batch_normalization=False)
    model = drawn(TuckER, 6, rel_channels=4)
    with torch.no_grad():
        theirs.core_tensor.copy_(model.core.transpose(0, 1))
    rows = model.node_emb(HEAD), model.node_emb(TAIL)
    expected = theirs(rows[0], model.rel_emb(REL), rows[1])
    torch.testing.assert_close(model(HEAD, REL, TAIL), expected)


def test_conve_is_that_of_pykeen():
    theirs = pykeen_interaction(
        "ConvE", embedding_dim=24, embedding_height=4, embedding_width=6
    )
    model = drawn(ConvE, 24)
    layers = model.image_norm, model.conv, model.conv_norm
    theirs.hr2d[0], theirs.hr2d[2], theirs.hr2d[3] = layers
    theirs.hr1d[0], theirs.hr1d[2] = model.hidden, model.hidden_norm
    head, tail = model.node_emb(HEAD)[:, :-1], model.node_emb(TAIL)
    expected = theirs(head, model.rel_emb(REL), (tail[:, :-1], tail[:, -1]))
    torch.testing.assert_close(model(HEAD, REL, TAIL), expected)


SIMPLE = {
    "distmult": ("DistMult", {}),
    "complex": ("ComplEx", {}),
    "rescal": ("RESCAL", {}),
    "transe": ("TransE", {"p": 1}),
    "rotate": ("RotatE", {}),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_candidates_score_as_in_pykeen(name):
    theirs, options = SIMPLE[name]
    interaction = pykeen_interaction(theirs, **options)
    scorer = make_scorer(name, 7, 3, 6).double().eval()
    kge, every = scorer.kge, torch.arange(7)
    rows, relation = kge.node_emb(every), kge.rel_emb(REL)
    margin = 0.0
    if name == "rescal":
        relation = kge.matrices(torch.arange(3))[0][REL]
    elif name == "complex":
        rows = torch.complex(rows, kge.node_emb_im(every))
        relation = torch.complex(relation, kge.rel_emb_im(REL))
    elif name == "rotate":
        rows = torch.complex(rows, kge.node_emb_im(every))
        relation = torch.polar(torch.ones_like(relation), relation)
        margin = kge.margin
    encoded, each = scorer.encode(), rows.expand(len(REL), *rows.shape)
    table, relation = scorer.table(encoded), relation.unsqueeze(1)
    tails = interaction(rows[HEAD].unsqueeze(1), relation, each)
    heads = interaction(each, relation, rows[TAIL].unsqueeze(1))
    query = scorer.tail_query(scorer.table(encoded, HEAD), REL)
    torch.testing.assert_close(scorer.compare(query, table), margin + tails)
    query = scorer.head_query(REL, scorer.table(encoded, TAIL))
    torch.testing.assert_close(scorer.compare(query, table), margin + heads)
