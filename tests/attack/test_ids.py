"""A part of the attacks by ids, in a process of its own: wrong ids may crash it."""

import pytest
import torch
from attack.ids import NUM_NODES, small_kb, small_model
from attack.processes import run_apart

from kblrn_pyg.data import make_kb
from kblrn_pyg.data.queries import Queries


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
