"""What every scorer, encoder and rule penalty must do: new ones are tested, too."""

import random

import naive
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import SCORERS
from kblrn_pyg.nn.penalties import PENALTIES
from kblrn_pyg.nn.settings import SCORER_PATTERNS
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.training import fit

# Of PyKEEN, one with several embeddings of an entity, and one with weights of its own.
OUTSIDE = ["pykeen:quate", "pykeen:ermlp"]
NAMES = [*SCORERS, *(f"rgcn:{name}" for name in SCORERS), *OUTSIDE]
# Which scorers a rule penalty is for.
PENALISED = {"kale": ["transe", "unit-transe"], "asr": ["distmult", "complex"]}
LOSSES = {
    "exact": {"num_negatives": None},
    "sampled": {"num_negatives": 20},
    "shared": {"num_negatives": 20, "negatives": "shared"},
}


def is_one_sided(name):
    """Whether a scorer asks for tails only, so that relations must be reciprocal."""
    return name.endswith("conve")


CASES = [
    *((name, False, None) for name in NAMES if not is_one_sided(name)),
    *((name, True, None) for name in NAMES),
    *(
        (name, reciprocal, penalty)
        for penalty, names in PENALISED.items()
        for name in names
        for reciprocal in (False, True)
    ),
]
# Of encoders, one is enough for relations that are not reciprocal.
LEARNED = [
    (name, reciprocal, penalty)
    for name, reciprocal, penalty in CASES
    if reciprocal or not name.startswith("rgcn:") or name == "rgcn:distmult"
]


def test_nothing_is_left_out():
    assert PENALISED.keys() == PENALTIES.keys()
    patterns = {f"{name.partition(':')[0]}:*" for name in NAMES if ":" in name}
    assert patterns == set(SCORER_PATTERNS)


@pytest.fixture(scope="module")
def data():
    """Has self-loops and relations without facts."""
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    return as_kb(triples, num_entities, num_relations)


def make(data, case, **settings):
    name, reciprocal, penalty = case
    if name.startswith("pykeen:"):
        pytest.importorskip("pykeen.nn")
    if penalty is not None:
        rules = mine_rules(data, max_hops=1)
        settings |= {"penalty": penalty, "penalty_weight": 0.5, "rules": rules}
    torch.manual_seed(0)
    given = {"scorer": name, "reciprocal": reciprocal, **settings}
    return KBLRN.from_data(data, "l", 4, **given)


def every_query(model):
    """Every query of both sides."""
    entity = torch.arange(model.num_nodes).repeat(model.num_relations)
    rel = torch.arange(model.num_relations).repeat_interleave(model.num_nodes)
    return [Queries(entity, rel, side) for side in SIDES]


def assert_scores_agree(model):
    for queries in every_query(model):
        candidates = torch.arange(model.num_nodes).expand(len(queries), -1)
        scores = model.score_all(queries)
        assert scores.unique().numel() > model.num_nodes
        torch.testing.assert_close(model.score_candidates(queries, candidates), scores)
        some = torch.tensor([3, 0])
        torch.testing.assert_close(model.score_all(queries, some), scores[:, some])
        answer = torch.arange(len(queries)) % model.num_nodes
        answered = scores.gather(1, answer[:, None]).squeeze(1)
        torch.testing.assert_close(model.score_answers(queries, answer), answered)
        # With reciprocal relations, the score of a triple is that of its tail.
        if queries.side == "tail" or not model.config["reciprocal"]:
            triples = [ids.flatten() for ids in queries.triples(candidates)]
            torch.testing.assert_close(model(*triples).view(scores.shape), scores)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_all_ways_of_scoring_agree(data, case):
    assert_scores_agree(make(data, case).double().eval())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", LEARNED, ids=str)
def test_they_learn_explain_and_are_files(data, case, loss, tmp_path):
    model = make(data, case, **LOSSES[loss])
    model.loss(*flat_triples(data)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    model.zero_grad()
    result = fit(model, data, epochs=6, lr=0.03, batch_size=32, validate_every=1)
    losses = [line["loss"] for line in result.history]
    assert losses[-1] < 0.99 * losses[0]
    assert not model.training
    assert_explained(model)
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert again.config == model.config
    assert again.fingerprint() == model.fingerprint()
    for queries in every_query(model):
        assert torch.equal(again.score_all(queries), model.score_all(queries))
    torch.manual_seed(1)
    expected = model.train().loss(*flat_triples(data))
    torch.manual_seed(1)
    assert torch.equal(again.train().loss(*flat_triples(data)), expected)


@torch.no_grad()
def assert_explained(model):
    """The reasons of a score add up to it, whichever side is asked for."""
    triple = 0, 0, 1
    for side in SIDES:
        index = Queries.of_triples(*(torch.tensor([i]) for i in triple), side)
        answer = torch.tensor([triple[2 if side == "tail" else 0]])
        score = float(model.score_answers(index, answer))
        parts = model.experts["latent"].parts(*triple, side=side)
        assert sum(one.contribution for one in parts) == pytest.approx(score, abs=1e-4)
    assert model.experts["latent"].scorers[0].title in str(model.explain(*triple))
