"""A part of the attacks by ids, in a process of its own: wrong ids may crash it."""

import numpy as np
import pytest
import torch
from attack.ids import NUM_NODES, small_kb, small_model
from attack.processes import run_apart

from kblrn_pyg.data import make_kb
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.kernels.popularity import add_popularity, popularity_gradient
from kblrn_pyg.rules import evidence_kinds


def test_wrong_ids_are_refused():
    names = ("models", "experts", "features")
    found = run_apart({f"ids.attack_{name}": 150 for name in names})
    assert [one.failure for one in found.values()] == [""] * 3
    for one in found.values():
        assert one.trials >= 150
        assert one.outcomes["answered"] > 10


def column(*ids):
    return torch.tensor(ids)


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        ((column(NUM_NODES), column(0), column(1)), "'head_index' must lie in 0 to 8"),
        ((column(0), column(-1), column(1)), "'rel_type' must lie in 0 to 2"),
        ((column(0), column(1), column(-1)), r"'tail_index' must lie .* \(got -1 to"),
        ((column(0, 1), column(1), column(1)), "'rel_type' must have as many entries"),
        ((column(0), column(1), column(1).int()), "'tail_index' must .* torch.int64"),
        ((column([0]), column(1), column(1)), "'head_index' must have one dimension"),
        (([0], column(1), column(1)), r"'head_index' must be a tensor \(got list\)"),
        ((column(0).to("meta"), column(0), column(0)), "'head_index' must be on the d"),
    ],
)
@pytest.mark.parametrize("experts", ["l", "n", "lrne"])
def test_models_say_which_ids_are_wrong(experts, triple, message):
    model = small_model(experts, "all")
    for method in (model, model.loss, model.own_evidence):
        with pytest.raises(ValueError, match=message):
            method(*triple)
    with pytest.raises(ValueError, match=message):
        model.test(*triple, batch_size=1)


@pytest.mark.parametrize("loss", ["all", "sampled", "shared"])
def test_an_empty_batch_has_no_loss_but_scores(loss):
    model, none = small_model("lrne", loss), torch.empty(0, dtype=torch.long)
    with pytest.raises(ValueError, match=r"'head_index' must have at least one entry"):
        model.loss(none, none, none)
    assert model(none, none, none).shape == (0,)
    assert model.score_tails(none, none).shape == (0, NUM_NODES)


def test_columns_of_scores_must_not_repeat():
    model = small_model("lrne", "all")
    queries = Queries(column(0), column(0), "tail")
    with pytest.raises(ValueError, match=r"entities must not repeat \(got 3 twice\)"):
        model.score_all(queries, column(3, 1, 3))
    whole = model.score_all(queries)
    assert torch.allclose(model.score_all(queries, column(3, 1)), whole[:, [3, 1]])


@pytest.mark.parametrize("name", ["relational", "numerical", "evidence"])
def test_scores_of_another_shape_are_not_added_to(name):
    expert = small_model("lrne", "all").experts[name]
    queries = Queries(column(0, 1), column(0, 1), "tail")
    for shape in ((2, NUM_NODES - 1), (1, NUM_NODES), (2, NUM_NODES + 1)):
        with pytest.raises(ValueError, match="'scores' must have the shape"):
            expert.add_to(torch.zeros(shape), queries)


def test_candidates_beyond_a_table_are_refused():
    expert = small_model("l", "all").experts["latent"]
    queries = Queries(column(0), column(0), "tail")
    candidates = torch.full((1, 100), NUM_NODES)
    with pytest.raises(ValueError, match="ids of candidates must lie in 0 to 8"):
        expert.score_candidates(queries, candidates)


def test_narrow_ids_make_the_same_knowledge_base():
    triples = tuple(torch.tensor([[0, 1], [0, 0], [1, 0]]))
    wide, narrow = (
        make_kb(["a", "b"], ["r"], t) for t in (triples, [i.int() for i in triples])
    )
    edges = [kb["entity", "r", "entity"].edge_index for kb in (wide, narrow)]
    assert torch.equal(*edges)
    assert edges[1].dtype == torch.long
    assert len(small_kb().edge_types) == 3


@pytest.mark.parametrize("experts", ["lrne", "kinds"])
def test_narrow_ids_of_features_are_widened(experts):
    """Kernels are compiled for wide ones; Numba raised an error of its own."""
    features = small_model(experts, "all").experts["evidence"].features
    wide = [np.array(ids) for ids in ([6, 0], [2, 1], [6, 3])]
    for method in (features.own, features.pairs):
        found = method(*(ids.astype(np.int32) for ids in wide[:2]), wide[2])
        assert str(found) == str(method(*wide))


def test_scores_of_no_entities_are_none():
    """No column was taken for all of them: numbers were written behind the scores."""
    features = small_model("kinds", "all").experts["evidence"].features
    every, none = np.arange(NUM_NODES), np.empty(0, np.int64)
    rel = every % 3
    behind, by_weight = np.zeros((NUM_NODES, NUM_NODES)), np.zeros((3, 2))
    given = features.evidence, 0, (every, rel, every)
    add_popularity(*given, np.ones((3, 2)), none, behind[:, :0])
    assert not behind.any()
    popularity_gradient(*given, none, behind[:, :0] + 1, by_weight)
    assert not by_weight.any()


@pytest.mark.parametrize("side", ["tail", "head"])
def test_no_candidates_have_no_kinds(side):
    kinds = small_model("kinds", "all").experts["evidence"].kinds
    every = np.arange(NUM_NODES)
    queries = side, every, every % 3
    asked = kinds.asked(queries, candidates=np.empty((NUM_NODES, 0), np.int64))
    behind = np.zeros((NUM_NODES, NUM_NODES))
    asked.add_to(behind[:, :0], np.ones(len(kinds)), keep=False)
    assert not behind.any()


@pytest.mark.parametrize("experts", ["l", "lrne", "kinds"])
def test_no_candidates_and_no_entities_have_no_scores(experts):
    model = small_model(experts, "all")
    queries, none = Queries(column(0, 1), column(0, 1), "tail"), column(0)[:0]
    assert model.score_all(queries, none).shape == (2, 0)
    assert model.score_candidates(queries, none.view(2, 0)).shape == (2, 0)


def test_columns_that_changed_in_place_are_looked_up_again():
    model = small_model("kinds", "all")
    paths = model.experts["relational"].features
    evidence = model.experts["evidence"].features
    every, rel, columns = np.arange(9), np.arange(9) % 3, np.array([6, 0, 3])

    def found(entities):
        of_evidence = evidence.queries("tail", every, rel, entities)
        return str([paths.reached_columns("tail", every, rel, entities), of_evidence])

    before = found(columns)
    columns[:] = [3, 8, 5]
    assert found(columns) == found(columns.copy()) != before
    columns[0] = NUM_NODES
    with pytest.raises(ValueError, match="ids of entities must lie in 0 to 8"):
        found(columns)


def test_gradients_are_those_of_their_own_columns(monkeypatch):
    """What is not kept is looked for again on the way back, behind other columns."""
    monkeypatch.setattr(evidence_kinds, "_MAX_KEPT_OF_QUERIES", 0)
    model = small_model("kinds", "all")
    weight = model.experts["evidence"].kind_weight
    queries = Queries(torch.arange(9), torch.arange(9) % 3, "tail")
    several = [column(6, 0, 3), column(1, 2, 4, 5, 7, 8)]
    each = [model.score_all(queries, one).sum() for one in several]
    (alone,) = torch.autograd.grad(model.score_all(queries).sum(), weight)
    (together,) = torch.autograd.grad(sum(each), weight)
    assert torch.allclose(alone, together)


@pytest.mark.parametrize("experts", ["n", "r", "e", "kinds", "layers", "signs"])
def test_entities_that_changed_in_place_are_scored_anew(experts):
    """By the same tensor, those before them were scored."""
    model = small_model(experts, "all")
    queries = Queries(torch.arange(9), torch.arange(9) % 3, "tail")
    whole, entities = model.score_all(queries), column(6, 0, 3)
    for given in ([6, 0, 3], [1, 8, 5], [0, 3, 6]):
        entities.copy_(column(*given))
        assert torch.allclose(model.score_all(queries, entities), whole[:, given])


@pytest.mark.parametrize("experts", ["n", "r", "layers"])
def test_each_thread_gets_the_scores_of_its_own_entities(experts, monkeypatch):
    """One that came between two looks at what was kept had its columns taken."""
    model = small_model(experts, "all")
    (expert,) = model.experts.values()
    queries = Queries(torch.arange(9), torch.arange(9) % 3, "tail")
    whole, mine, other = model.score_all(queries), column(6, 0, 3), column(1, 2)

    class Interrupted(type(expert)):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_columns" and len(value[0]) == 3:
                model.score_all(queries, other)  # as another thread may

    monkeypatch.setattr(expert, "__class__", Interrupted)
    assert torch.allclose(model.score_all(queries, mine), whole[:, mine])
