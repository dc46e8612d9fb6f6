"""A part of the attacks by ids on what is not a model, and a list of what takes ids."""

import numpy as np
import pytest
import torch
from attack.ids import METHODS, small_kb, small_model
from attack.processes import run_apart
from attack.tables import calls, takers_of_ids

from kblrn_pyg.app import Engine
from kblrn_pyg.app.engine import Query
from kblrn_pyg.data import (
    KnownFacts,
    NamedTriples,
    NamedValues,
    Names,
    Queries,
    as_kb,
    make_kb,
)
from kblrn_pyg.evaluation import (
    Metrics,
    RankTable,
    Reliability,
    auc_pr,
    rank_one_query,
    triple_scores,
)
from kblrn_pyg.explain import heaviest_rules
from kblrn_pyg.loader import QueryLoader, TripleLoader
from kblrn_pyg.nn.calibration import Calibration


def test_wrong_ids_are_refused():
    names = ("tables", "columns")
    found = run_apart({f"tables.attack_{name}": 300 for name in names})
    assert [one.failure for one in found.values()] == ["", ""]
    for one in found.values():
        assert one.outcomes["answered"] > 10
        assert one.outcomes["refused"] > 10


# Parts of a model or of a loss, called by it with ids that are checked; torch and the
# checks of features keep wrong ones from reading elsewhere (ids: experts, features).
INNER = ("Scorer.", "Expert.", "Features.", "KGE.", "RESCAL.", "ConvE.", "TuckER.")
INNER += ("FreeTransE.", "TransH.", "TransR.", "PyKEENModel.", "RulePaths.")
BY_NAME = {
    *("heaviest_rules", "plot_fragment", "layer_panels", "plot_layers"),
    *("plot_differences", "score_triples"),
}
PLAIN = {
    *("Queries.of_triples", "Queries.triples", "ScoringModel.score_heads"),
    *("ScoringModel.score_tails", "ConstantRuleSet.build", "RuleSet.build"),
}


def test_all_that_takes_ids_is_attacked():
    """A new public method with ids needs a place among the attacks."""
    attacked = {name.split(" ")[0] for name in calls()} | BY_NAME | PLAIN
    attacked |= {f"KBLRN.{name}" for name in METHODS}
    # What a model has of the class below it is attacked as the model's.
    attacked |= {name.replace("KBLRN.", "ProductOfExperts.") for name in attacked}
    left = {
        name
        for name in takers_of_ids()
        if name not in attacked and not any(part in name for part in INNER)
    }
    assert left == set()


def test_an_entity_that_there_is_not_has_no_known_answers():
    """It had those of the first entity in the next relation."""
    triples = tuple(torch.tensor([[0, 1], [0, 1], [1, 0]]))
    facts = KnownFacts(make_kb(["a", "b"], ["r", "s"], triples))
    for entity in (-1, 2):
        queries = Queries(torch.tensor([entity]), torch.tensor([0]), "tail")
        with pytest.raises(ValueError, match="'head_index' must lie in 0 to 1"):
            facts.answers(queries)
    with pytest.raises(ValueError, match="must be equally many"):
        facts.contains(np.array([0, 1]), np.array([0]), np.array([1]))


def test_triples_and_values_fit_to_their_names():
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="ids of heads must lie in 0 to 0"):
        NamedTriples(["a"], ["r"], one - 1, one, one)
    with pytest.raises(ValueError, match="must be equally many"):
        NamedTriples(["a"], ["r"], one, one, np.zeros(2, np.int64))
    with pytest.raises(ValueError, match="'value' must have the shape"):
        NamedValues(["a"], ["r"], one, one, np.ones(2))


@pytest.mark.parametrize("loader", [TripleLoader, QueryLoader])
def test_batches_of_columns_of_different_lengths(loader):
    two, one = torch.tensor([0, 1]), torch.tensor([0])
    with pytest.raises(ValueError, match=r"'rel_type' must have the shape \[2\]"):
        loader(two, one, two, batch_size=2)
    with pytest.raises(ValueError, match="'tail_index' must hold integers"):
        loader(two, two, two.double(), batch_size=2)


def test_ranks_are_at_least_one():
    for rank in (0.0, -3.0, float("nan")):
        with pytest.raises(ValueError, match="'rank' must be at least 1"):
            Metrics.of([rank], [5])
    column = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="'num_answers' must be at least 1"):
        RankTable(["a"], *[column] * 4, column + 1.0, column + 1, column)


def test_a_probability_for_each_score():
    calibration = Calibration(torch.ones(2), torch.zeros(2), torch.ones(2))
    with pytest.raises(ValueError, match="'rel_type' must have a relation for each"):
        calibration.probability(torch.zeros(3), torch.tensor([0]))


def test_scores_of_columns_of_different_lengths():
    """The longer ones were cut to the first."""
    model, two, one = small_model("lrne", "all"), np.array([0, 1]), np.array([0])
    for columns in ((one, two, two), (two, two, np.r_[two, two])):
        with pytest.raises(ValueError, match="must be equally many"):
            triple_scores(model, *columns)
    with pytest.raises(ValueError, match="ids of heads must have one dimension"):
        triple_scores(model, {}, two, two)


def test_known_answers_do_not_compete_and_scores_are_numbers():
    """NaN was better than all; a known answer that was named twice left two out."""
    scores = np.array([[0.5, 0.9, 0.7]])
    for known in ([1], [1, 1, 1]):
        found = rank_one_query(scores, [0], known)
        assert (found.rank.tolist(), found.num_candidates.tolist()) == ([2.0], [2])
    assert rank_one_query([[1, 3, 2]], [0], [1]).rank.tolist() == [2.0]
    for wrong in (scores * np.nan, scores.astype(object), scores.astype(complex)):
        with pytest.raises(ValueError, match="'scores' must be numbers"):
            rank_one_query(wrong, [0], [1])


def test_truth_is_no_number_between():
    for wrong in ([0.5, 1], [2, 1], [np.nan, 1]):
        with pytest.raises(ValueError, match="must be true or false"):
            auc_pr([0.1, 0.2], wrong)
        with pytest.raises(ValueError, match="must be true or false"):
            Reliability.of([0.1, 0.2], wrong)
    assert auc_pr([0.1, 0.2], [0, 1]) == auc_pr([0.1, 0.2], [False, True]) == 1
    with pytest.raises(ValueError, match="'num_candidates' must be at least 1"):
        Metrics.of([1.0], [-5])


@pytest.mark.parametrize("wrong", [True, np.True_, None, 1.5, torch.ones(1).bool()])
def test_ids_are_no_truths(wrong):
    """True was the second entity."""
    with pytest.raises(ValueError, match=r"must be (an integer|a name or an id)"):
        Names("entity", ["a", "b"]).find(wrong)
    meta = torch.tensor(1, device="meta")
    with pytest.raises(ValueError, match="must be an integer"):
        Names("entity", ["a", "b"]).find(meta)


def test_other_types_are_named():
    """Errors were those of whatever used them first, and of any length."""
    with pytest.raises(ValueError, match="the name of the entity must be text"):
        Names("entity", ["a"]).resolve(1)
    with pytest.raises(ValueError, match="must be an integer") as caught:
        Names("entity", ["a"]).unique("x" * 20_000)
    assert len(str(caught.value)) < 1000
    for wrong in (None, 1, [small_kb()]):
        with pytest.raises(ValueError, match="'data' must be a HeteroData or a Data"):
            as_kb(wrong)
    one = torch.tensor([0])
    for wrong in (one.bool(), one.to("meta"), one.to_sparse()):
        with pytest.raises(ValueError, match="'head_index' must h"):
            TripleLoader(wrong, one, one)
    facts = KnownFacts(small_kb())
    for wrong in (one.to("meta"), one.to_sparse(), one.double().requires_grad_()):
        with pytest.raises(ValueError, match="ids of heads must be"):
            facts.contains(wrong, one, one)
    with pytest.raises(ValueError, match="'head_index' must have values"):
        facts.answers(Queries(one.to("meta"), one, "tail"))


def test_queries_that_there_are_not():
    queries = Queries(torch.tensor([0, 5]), torch.tensor([0, 2]), "tail")
    for i in (-1, 2, True):
        with pytest.raises(ValueError, match="the id of the query must"):
            queries.text(i, ["a", "b", "c"])
    with pytest.raises(ValueError, match="the id of the relation must"):
        queries.text(1, ["a"])
    with pytest.raises(ValueError, match="'head_index' must lie in 0 to 4"):
        queries.distinct(5)


def test_numbers_of_answers_and_of_rules():
    """-1 was all but one."""
    model = small_model("lrne", "all")
    with pytest.raises(ValueError, match="'k' must not be negative"):
        Engine(model).answers(Query(0, 0, "tail"), -1)
    with pytest.raises(ValueError, match="'number' must not be negative"):
        heaviest_rules(model, small_kb(), "a", -1)
