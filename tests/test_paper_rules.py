"""Mining the paper's data sets, beside AMIE and the rules that others provide."""

import os
from pathlib import Path

import numpy as np
import pytest
from reproduction.amie import lost_by_amie

from kblrn_pyg.rules import (
    PAPER,
    PathFeatures,
    mine_rules,
    provided_rules,
    read_rules,
)

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def mined(paper_data):
    return mine_rules(paper_data("FB15k-237")["train"], parallel=True, skyline=True)


def test_counts_of_fb15k_237(mined):
    def counts(rules):
        is_path = ~rules.parallel
        steps = rules.num_steps
        return (
            (is_path & (steps == 1)).sum(),
            (is_path & (steps == 2)).sum(),
            rules.parallel.sum(),
        )

    assert counts(mined) == (758, 13359, 730)
    assert counts(mined.filter(min_pca_confidence=0.1)) == (554, 6646, 660)
    paths = mined.steps[~mined.parallel & (mined.num_steps == 2)] & 1
    orientations = np.bincount(2 * paths[:, 0] + paths[:, 1]).tolist()
    assert orientations == [3845, 3920, 3672, 1922]


def test_every_rule_of_amie_is_found_with_equal_measures(mined, paper_data):
    path = Path(os.environ["KBLRN_DATA"], "amie", "FB15k-237.tsv")
    if not path.exists():
        pytest.skip("no output of AMIE")
    theirs, _ = read_rules(path, mined.relations)
    assert len(theirs) == 14801

    def by_rule(rules):
        keys = zip(rules.head.tolist(), rules.bodies())
        columns = (rules.support, rules.head_size, rules.body_size, rules.pca_body_size)
        return dict(zip(keys, zip(*(column.tolist() for column in columns))))

    ours, theirs = by_rule(mined), by_rule(theirs)
    missing = ours.keys() - theirs.keys()
    assert len(missing) == 46
    lost = lost_by_amie(paper_data("FB15k-237")["train"], mined)
    keys = list(zip(mined.head.tolist(), mined.bodies()))
    assert missing == {key for key, is_lost in zip(keys, lost) if is_lost}
    assert {key: ours[key] for key in theirs} == theirs


def test_confidences_are_those_that_amie_prints(mined):
    path = Path(os.environ["KBLRN_DATA"], "amie", "FB15k-237.tsv")
    if not path.exists():
        pytest.skip("no output of AMIE")
    theirs, _ = read_rules(path, mined.relations)
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    printed = sorted((float(row[1]), float(row[2]), float(row[3])) for row in rows)
    found = sorted(
        zip(
            theirs.head_coverage.round(9).tolist(),
            theirs.confidence.round(9).tolist(),
            theirs.pca_confidence.round(9).tolist(),
        )
    )
    np.testing.assert_allclose(found, printed, atol=2e-9)


@pytest.mark.parametrize(("name", "number"), [("FB15k-237", 7860), ("FB15k", 90562)])
def test_preset_of_the_paper(paper_data, name, number):
    """The paper has 7,834 and 90,318 features."""
    assert len(mine_rules(paper_data(name)["train"], **PAPER)) == number


@pytest.mark.parametrize(("name", "number"), [("WN18", 14), ("FB122", 47)])
def test_provided_rules_are_features(paper_data, name, number):
    data = paper_data(name)["train"]
    rules = provided_rules(data)
    assert len(rules) == number
    path = Path(os.environ["KBLRN_DATA"], name, "rules.txt")
    assert str(read_rules(path, rules.relations)[0]) == str(rules)
    assert PathFeatures(data, rules).rules is rules
