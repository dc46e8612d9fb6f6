"""Anyone can add an expert or a scorer, and everything else works with it."""

import random
import signal
import subprocess
import sys
import time
import warnings

import naive
import numpy as np
import pytest
import torch
from scripts import REPOSITORY
from test_mining import as_kb
from torch.nn import Parameter
from torch_geometric.nn.kge import DistMult
from trainable import same

from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, ask, flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.data.store import load_tensors
from kblrn_pyg.datasets import Families, load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn import (
    SCORERS,
    DistMultScorer,
    Expert,
    LatentExpert,
    ReciprocalScorer,
    Scorer,
)
from kblrn_pyg.plotting import plot_explanation
from kblrn_pyg.predict import complete
from kblrn_pyg.report import report_page
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import Run, fit


class Popularity(Expert):
    """One weight for each relation and tail; it has 'forward' and nothing else."""

    def __init__(self, num_nodes, num_relations):
        super().__init__()
        self.weight = Parameter(0.1 * torch.randn(num_relations, num_nodes))

    def forward(self, head_index, rel_type, tail_index):
        return self.weight[rel_type, tail_index]


class Doubled(DistMult):
    """A user's subclass that computes something else."""

    def forward(self, head_index, rel_type, tail_index):
        return 2 * super().forward(head_index, rel_type, tail_index)


class Quiet(DistMult):
    """A user's subclass that computes the same."""

    def reset_parameters(self):
        super().reset_parameters()
        torch.nn.init.normal_(self.node_emb.weight)


@pytest.fixture(scope="module")
def data():
    """Has self-loops, empty relations, unknown numbers and rules of all kinds."""
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    kb = as_kb(triples, num_entities, num_relations)
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(num_entities, 2, generator=rng, dtype=torch.double)
    x[1, 0] = x[2, 1] = torch.nan
    kb["entity"].x, kb.attribute_names = x, ["a", "b"]
    return kb


def make(data, *letters, **kwargs):
    torch.manual_seed(0)
    own = Popularity(data["entity"].num_nodes, len(data.edge_types))
    rules = mine_rules(data, parallel=True) if "r" in letters else None
    kwargs = {"rules": rules, **kwargs}
    if "l" in letters:
        kwargs = {"hidden_channels": 4, **kwargs}
    return KBLRN.from_data(data, [*letters, own], **kwargs)


def asked_of(data):
    """Every query of both sides, and all of its candidates."""
    num_nodes, num_relations = data["entity"].num_nodes, len(data.edge_types)
    entity = torch.arange(num_nodes).repeat(num_relations)
    rel = torch.arange(num_relations).repeat_interleave(num_nodes)
    candidates = torch.arange(num_nodes).expand(len(entity), -1)
    return [(Queries(entity, rel, side), candidates) for side in SIDES]


@pytest.mark.parametrize("letters", [(), ("l",), ("r", "n"), ("l", "r", "n")])
def test_three_ways_of_scoring_agree(data, letters):
    model = make(data, *letters).double().eval()
    for queries, candidates in asked_of(data):
        some = model.score_candidates(queries, candidates)
        torch.testing.assert_close(model.score_all(queries), some)
        single = model(*(ids.flatten() for ids in queries.triples(candidates)))
        torch.testing.assert_close(single.view(some.shape), some)
        for expert in model.experts.values():
            zeros = torch.zeros_like(some)
            torch.testing.assert_close(
                expert.add_to(zeros, queries),
                expert.score_candidates(queries, candidates),
            )


def test_names_and_instances(data):
    model = make(data, "l", "r")
    assert list(model.experts) == ["latent", "relational", "popularity"]
    assert model.instance == "lr+popularity"
    assert "experts='lr+popularity'" in repr(model)
    one, other = (Popularity(data["entity"].num_nodes, 3) for _ in range(2))
    two = KBLRN.from_data(data, [one, other])
    assert list(two.experts) == ["popularity", "popularity_2"]
    assert list(two.without("popularity").experts.values()) == [other]
    for wrong in ("", "ll", "lx", [], ["l", "l"], ["l", 3]):
        with pytest.raises(ValueError, match="'experts' must have letters"):
            KBLRN.from_data(data, wrong)
    with pytest.raises(ValueError, match="'name' must be one of"):
        two.without("latent")


@pytest.mark.parametrize("num_negatives", [7, None])
def test_gradients_of_an_own_expert(data, num_negatives):
    model = make(data, "r", num_negatives=num_negatives).double()
    triples = flat_triples(data)
    weight = model.experts["popularity"].weight

    def loss(values):
        torch.manual_seed(3)
        names = {"experts.popularity.weight": values}
        return torch.func.functional_call(_Loss(model), prefixed(names), triples)

    assert torch.autograd.gradcheck(loss, (weight,), eps=1e-6, atol=1e-6)


def prefixed(values):
    return {f"model.{name}": value for name, value in values.items()}


class _Loss(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *triples):
        return self.model.loss(*triples)


@pytest.mark.parametrize("num_negatives", [20, None])
def test_from_training_to_the_model_file(tmp_path, num_negatives):
    splits = load_dataset("Families")
    train, val, test = splits.values()
    torch.manual_seed(0)
    own = Popularity(train["entity"].num_nodes, len(train.edge_types))
    rules = mine_rules(train, max_rules_per_relation=5, confidences=False)
    model = KBLRN.from_data(train, ["r", own], rules=rules, num_negatives=num_negatives)
    before = own.weight.detach().clone()
    result = fit(
        model,
        train,
        val,
        filter_with=[test],
        epochs=2,
        lr=0.05,
        batch_size=2048,
        validate_every=1,
        run=Run(tmp_path / "run"),
    )
    assert not torch.equal(before, own.weight)
    assert result.history[0]["loss"] > result.history[-1]["loss"]
    mrr = evaluate(model, test, filter_with=[val]).metrics().mrr
    alone = evaluate(model.without("popularity"), test, filter_with=[val])
    assert abs(mrr - alone.metrics().mrr) > 1e-5
    found = model.predict_tails("Ada Crowgarth", "lives_in", k=3, known=[val, test])
    assert len(found) == 3
    assert len(complete(model, 5, ["likes"])) == 5
    reasons = model.explain(0, 0, 1)
    parts = [p.contribution for parts in reasons.parts.values() for p in parts]
    index = torch.tensor([[0], [0], [1]])
    assert sum(parts) == pytest.approx(float(model(*index)), abs=1e-5)
    assert "Popularity" in str(reasons)
    assert reasons.to_json()["parts"]["popularity"][0]["text"] == "Popularity"
    assert reasons.to_pyg().validate()
    assert plot_explanation(reasons)
    settings = {"dataset": "Families", "root": None, "model": model.config}
    page = report_page(tmp_path / "run", model, splits, settings)
    assert "popularity" in page
    model.save(tmp_path / "model.pt", known=[val])
    with pytest.raises(DataError, match="needs the class Popularity, give it"):
        KBLRN.load(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt", experts=[Popularity])
    assert torch.equal(again(*index), model(*index))
    assert again.fingerprint() == model.fingerprint()
    assert str(again.predict_tails(0, 0, k=9)) == str(
        model.predict_tails(0, 0, k=9, known=[val])
    )


def test_weights_of_a_file_are_not_drawn_before(tmp_path):
    model = KBLRN.from_data(Families()[0], "ln", 16)
    model.save(tmp_path / "model.pt")
    before = torch.get_rng_state()
    again = KBLRN.load(tmp_path / "model.pt")
    assert torch.equal(torch.get_rng_state(), before)
    assert all(parameter.requires_grad for parameter in again.parameters())
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)


class Tied(Expert):
    name = "tied"

    def __init__(self, number):
        super().__init__()
        self.one = torch.nn.Linear(number, 1, bias=False)
        self.other = torch.nn.Linear(number, 1, bias=False)
        self.other.weight = self.one.weight

    def score_candidates(self, queries, candidates):
        weight = self.one.weight[0] + self.other.weight[0]
        return weight[candidates]


def test_shared_weights_stay_shared(tmp_path):
    data = Families()[0]
    model = KBLRN.from_data(data, ["l", Tied(data["entity"].num_nodes)], 4)
    model.double().save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt", experts=[Tied])
    assert again.experts["tied"].one.weight is again.experts["tied"].other.weight
    for name, weight in model.state_dict().items():
        assert torch.equal(again.state_dict()[name], weight)


def test_known_facts_of_a_file_are_those_that_are_new(tmp_path):
    splits = load_dataset("Families")
    train, val, test = splits.values()
    model = KBLRN.from_data(train, "l", 4)
    model.save(tmp_path / "model.pt", known=[train, val, val, test])
    (known,) = KBLRN.load(tmp_path / "model.pt").known
    found = [flat_triples(one, "edge_label_index") for one in (known, val, test, train)]
    found, *others, own = [set(zip(*(i.tolist() for i in one))) for one in found]
    assert found == set.union(*others) - own
    model.save(tmp_path / "model.pt", known=[train])
    assert KBLRN.load(tmp_path / "model.pt").known == ()


TRAINING = """
import sys, torch
sys.path.insert(0, "tests")
from test_experts import Popularity
from kblrn_pyg import KBLRN
from kblrn_pyg.datasets import Families, load_dataset
from kblrn_pyg.training import Run, fit, set_threads
set_threads(1)
train, val, test = load_dataset("Families").values()
torch.manual_seed(0)
own = Popularity(train["entity"].num_nodes, len(train.edge_types))
model = KBLRN.from_data(train, ["l", own], 4, num_negatives=20, dropout=0.2)
print("ready", flush=True)
fit(model, train, val, epochs=3, batch_size=1024, validate_every=1, patience=9,
    run=Run(sys.argv[1]))
"""


def test_resume_after_a_kill(tmp_path):
    def start(folder):
        command = [sys.executable, "-c", TRAINING, str(folder)]
        return subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
        )

    whole = start(tmp_path / "whole")
    assert whole.wait() == 0
    killed = start(tmp_path / "killed")
    log = tmp_path / "killed" / "log.jsonl"
    while not (log.exists() and log.read_text()):  # after the first epoch
        assert killed.poll() is None
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    again = start(tmp_path / "killed")
    assert again.wait() == 0
    weights = [
        KBLRN.load(tmp_path / name / "model.pt", experts=[Popularity]).state_dict()
        for name in ("whole", "killed")
    ]
    for key in weights[0]:
        assert torch.equal(weights[0][key], weights[1][key]), key


@pytest.mark.parametrize("kind", [Doubled, Quiet])
@pytest.mark.parametrize("num_negatives", [20, None])
def test_models_of_users_are_scorers(data, kind, num_negatives, tmp_path):
    torch.manual_seed(0)
    sizes = data["entity"].num_nodes, len(data.edge_types)
    kge = kind(*sizes, 5)
    model = KBLRN.from_data(data, "l", 5, scorer=kge, num_negatives=num_negatives)
    (scorer,) = model.experts["latent"].scorers
    assert (type(scorer) is DistMultScorer) == (kind is Quiet)
    for queries, candidates in asked_of(data):
        triples = [ids.flatten() for ids in queries.triples(candidates)]
        expected = kge(*triples).view(candidates.shape)
        torch.testing.assert_close(model.score_all(queries), expected)
        some = model.score_candidates(queries, candidates)
        torch.testing.assert_close(some, expected)
    model.loss(*flat_triples(data)).backward()
    assert kge.node_emb.weight.grad.any()
    model.save(tmp_path / "model.pt")
    with pytest.raises(DataError, match=f"needs the class {kind.__name__}"):
        KBLRN.load(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt", experts=[kind])
    torch.testing.assert_close(again(*flat_triples(data)), model(*flat_triples(data)))
    if kind is Doubled:
        with pytest.raises(ValueError, match="'dropout' must be 0 for scorers without"):
            KBLRN.from_data(data, "l", 5, scorer=kge, dropout=0.1)


def test_what_is_no_scorer_is_refused(data):
    with pytest.raises(ValueError, match="'scorer' must be a name, a KGEModel or"):
        LatentExpert(3, 2, 4, scorer=[torch.nn.Linear(2, 2)])


class Counting(DistMultScorer):
    """Doubles all embeddings, and counts how often it does."""

    def __init__(self, num_nodes, num_relations):
        super().__init__(DistMult(num_nodes, num_relations, 4))
        self.count = 0

    def encode(self):
        self.count += 1
        return 2 * self.kge.node_emb.weight


@pytest.mark.parametrize("num_negatives", [20, None])
def test_entities_are_encoded_once_a_step(data, num_negatives):
    sizes = data["entity"].num_nodes, len(data.edge_types)
    scorer = Counting(*sizes)
    model = KBLRN.from_data(data, "l", 4, scorer=scorer, num_negatives=num_negatives)
    triples = flat_triples(data)
    torch.testing.assert_close(model(*triples), 4 * scorer.kge(*triples))
    scorer.count = 0
    model.loss(*triples).backward()
    assert scorer.count == 1
    evaluate(model, data, batch_size=1)
    assert scorer.count == 2


@pytest.mark.parametrize("scorer", SCORERS)
def test_reciprocal_relations_are_those_of_twice_as_many(data, scorer):
    torch.manual_seed(0)
    size = len(data.edge_types)
    model = KBLRN.from_data(data, "lr", 4, scorer=scorer, reciprocal=True)
    model.double().eval()
    expert = model.experts["latent"]
    (one,) = expert.scorers
    assert isinstance(one, ReciprocalScorer)
    assert (one.num_relations, one.kge.num_relations) == (size, 2 * size)
    for queries, candidates in asked_of(data):
        head, rel, tail = (ids.flatten() for ids in queries.triples(candidates))
        if queries.side == "head":  # (?, r, t) is asked as (t, r + size, ?)
            expected = one.kge(tail, rel + size, head).view(candidates.shape)
        else:
            expected = one.kge(head, rel, tail).view(candidates.shape)
        torch.testing.assert_close(expert.score_all(queries, model.num_nodes), expected)
        torch.testing.assert_close(
            expert.score_candidates(queries, candidates), expected
        )
        for i in range(0, len(queries), 7):
            answer = i % model.num_nodes
            triple = queries[i : i + 1].triples(torch.tensor([answer]))
            ids = (int(index) for index in triple)
            parts = model.experts["latent"].parts(*ids, side=queries.side)
            total = sum(part.contribution for part in parts)
            assert total == pytest.approx(float(expected[i, answer]))
    # Both relations learn, and both are penalised.
    model = KBLRN.from_data(data, "l", 4, scorer=scorer, reciprocal=True, n3=0.1)
    model.loss(*flat_triples(data)).backward()
    grad = model.experts["latent"].scorers[0].kge.rel_emb.weight.grad
    assert grad[:size].any()
    assert grad[size:].any()


def test_a_reciprocal_scorer_needs_two_of_each_relation():
    with pytest.raises(ValueError, match="two relations for each relation"):
        ReciprocalScorer(Scorer(DistMult(4, 3, 2)))


@pytest.mark.parametrize("letters", [("l",), ("r",), ("n",), ("l", "r", "n")])
@pytest.mark.parametrize("dtype", [torch.float, torch.double])
def test_model_files_are_whole(data, letters, dtype, tmp_path):
    model = make(data, *letters).to(dtype)
    held_out = ask(data, tuple(torch.tensor([[0, 1], [0, 0], [2, 2]])))
    path = tmp_path / "new" / "model.pt"
    model.save(path, known=[held_out])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = KBLRN.load(path, experts=[Popularity])
    assert not again.training
    model.eval()
    for (queries, _), side in zip(asked_of(data), SIDES):
        assert queries.side == side
        assert torch.equal(again.score_all(queries), model.score_all(queries))
    assert again.settings == model.settings
    assert again.fingerprint() == model.fingerprint()
    assert str(again.explain(0, 0, 1)) == str(model.explain(0, 0, 1, known=[held_out]))
    assert again.kb["entity"].name == data["entity"].name
    # A model file made of a loaded model holds the same.
    again.save(tmp_path / "twice.pt")
    contents = [load_tensors(p, "model") for p in (path, tmp_path / "twice.pt")]
    for content in contents:  # unknown numbers differ from themselves
        content["kb"]["entity"]["x"].nan_to_num_(-99.0)
    assert same(*contents)


def test_a_flipped_bit_is_one_clear_error(data, tmp_path):
    path = tmp_path / "model.pt"
    make(data, "r").save(path)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(whole), 200).tolist():
        damaged = whole.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged.tobytes())
        with pytest.raises(DataError, match=r"model\.pt"):
            KBLRN.load(path, experts=[Popularity])


def test_experts_that_cannot_be_saved_say_so(data, tmp_path):
    class Odd(Popularity):
        def __init__(self, num_nodes, num_relations, function):
            super().__init__(num_nodes, num_relations)

    odd = Odd(data["entity"].num_nodes, len(data.edge_types), len)
    model = KBLRN.from_data(data, [odd])
    with pytest.raises(ValueError, match="arguments of experts must be plain values"):
        model.save(tmp_path / "model.pt")
    assert not list(tmp_path.iterdir())


def test_options_without_effect_are_said(data):
    for experts, settings, message in (
        ("r", {"dropout": 0.1}, "'dropout' has no effect without the expert l"),
        ("l", {"threshold": 0.5}, "'threshold' has no effect without the expert n"),
        ("l", {"latent_dropout": 0.5}, "'latent_dropout' has no effect without fur"),
        ("l", {"rules": mine_rules(data)}, "'rules' has no effect without the exp"),
        (
            "l",
            {"num_negatives": None, "negatives": "shared"},
            "'negatives' has no effect where the loss is over all",
        ),
    ):
        with pytest.warns(UserWarning, match=message):
            KBLRN.from_data(data, experts, **settings)
    with pytest.raises(ValueError, match=r"settings must be among .* \(got drop\)"):
        KBLRN.from_data(data, "l", drop=0.1)


def test_experts_without_a_feature_are_said():
    kb = as_kb([(0, 0, 1), (2, 0, 1)], 3, 1)
    with pytest.warns(UserWarning, match="numerical expert adds nothing to any score"):
        KBLRN.from_data(kb, "n")
    with pytest.warns(UserWarning, match="relational expert adds nothing to any score"):
        KBLRN.from_data(kb, "lr", rules=mine_rules(kb, min_support=99))


def test_an_expert_takes_the_weights_of_its_like(data):
    model, other = make(data, "l"), make(data)
    torch.nn.init.ones_(other.experts["popularity"].weight)
    model.take_experts(other)
    assert (model.experts["popularity"].weight == 1).all()
