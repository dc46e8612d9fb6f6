"""What the benchmark of checks leaves out."""

import checks
import pytest
import torch
from attack.ids import NUM_NODES, small_kb, small_model

from kblrn_pyg.data.ids import check_ids
from kblrn_pyg.evaluation import evaluate


def test_no_checks_until_the_end():
    model, first = small_model("l", "all"), torch.zeros(1, dtype=torch.long)
    wrong = torch.tensor([NUM_NODES])
    for _ in range(2):
        with pytest.raises(ValueError, match="'head_index' must"):
            model.score_tails(wrong, first)
        with checks.no_checks():
            checks.ids.check_ids({"entities": (wrong, 0)})
            with pytest.raises(IndexError):  # of torch
                model.score_tails(wrong, first)
        with pytest.raises(ValueError, match="ids of entities must"):
            checks.ids.check_ids({"entities": (wrong, 0)})
        assert model.score_tails(first, first).shape == (1, NUM_NODES)


def test_results_are_the_same_without_checks():
    model = small_model("lrne", "all")
    with checks.no_checks():
        found = evaluate(model, small_kb())
    assert found.rank.tolist() == evaluate(model, small_kb()).rank.tolist()
    assert len(checks.measure(lambda: evaluate(model, small_kb()), 2)) == 2
    assert check_ids is checks.ids.check_ids
