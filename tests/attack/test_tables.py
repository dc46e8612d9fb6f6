"""A part of the attacks by ids on what is not a model, and a list of what takes ids."""

import numpy as np
import pytest
import torch
from attack.ids import METHODS
from attack.processes import run_apart
from attack.tables import calls, takers_of_ids

from kblrn_pyg.data import KnownFacts, NamedTriples, NamedValues, Queries, make_kb
from kblrn_pyg.evaluation import Metrics, RankTable
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
