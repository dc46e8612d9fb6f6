"""Rules with constants: mined like the slow twin's, kept, selected, saved, shown."""

import random

import naive
import naive_evidence as twin
import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg.data import DataError
from kblrn_pyg.data.store import load_tensors, save_tensors
from kblrn_pyg.datasets import Families
from kblrn_pyg.rules import (
    ConstantRuleSet,
    EvidenceFeatures,
    MineRules,
    RuleSet,
    mine_constants,
    mine_rules,
)
from kblrn_pyg.rules.constant_columns import COLUMNS, HEAD_AND_BODY

SEEDS = range(12)
RELATIONS = ["likes", "knows"]
ENTITIES = ["Ada", "Ben", "Jam", "Tea"]


@pytest.fixture(scope="module")
def families():
    return Families()[0]


@pytest.fixture(scope="module")
def mined(families):
    return mine_constants(families)


def some_rules(**changes):
    """likes(x, Jam) ⇐ likes(x, Tea), knows(Ada, x) ⇐ likes(x, ·), knows(x, Ben) ⇐"""
    columns = {
        "head_code": [0, 3, 2],
        "head_entity": [2, 0, 1],
        "body_code": [0, 0, -1],
        "body_entity": [3, -1, -1],
        "support": [9, 1, 2],
        "body_size": [20, 3, 4],
        "pca_body_size": [19, 2, 4],
    } | changes
    code, entity, body, body_entity = (columns.pop(name) for name in HEAD_AND_BODY)
    return ConstantRuleSet.build(
        RELATIONS, ENTITIES, (code, entity), (body, body_entity), **columns
    )


def as_dict(rules):
    def feature(code, entity):
        return None if code < 0 else (code, None if entity < 0 else entity)

    rows = zip(*(getattr(rules, name).tolist() for name in COLUMNS))
    found = {
        (feature(c, d), feature(a, b)): (*measures,) for a, b, c, d, *measures in rows
    }
    assert len(found) == len(rules)
    return found


def make(seed):
    triples, num_entities, num_relations = naive.random_kb(random.Random(seed))
    return triples, num_entities, as_kb(triples, num_entities, num_relations)


@pytest.mark.parametrize("max_degree", [10_000, 6])
@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_mined_rules_are_those_of_the_twin(seed, least, max_degree):
    triples, num_entities, kb = make(seed)
    rules = mine_constants(kb, least, max_degree=max_degree)
    expected = twin.measured_rules(triples, num_entities, least, max_degree)
    assert as_dict(rules) == expected
    rows = list(zip(*(getattr(rules, name).tolist() for name in HEAD_AND_BODY)))
    assert rows == sorted(rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_thresholds_leave_what_a_filter_leaves(seed):
    _, _, kb = make(seed)
    whole = mine_constants(kb, 1)
    for given in (
        {"min_confidence": 0.5},
        {"min_pca_confidence": 0.4, "min_support": 2},
        {"min_confidence": 1.0, "min_pca_confidence": 1.0},
    ):
        assert mine_constants(kb, **{"min_support": 1, **given}) == whole.filter(
            **given
        )
    few = mine_constants(kb, 1, max_rules_per_relation=3)
    assert few == whole.filter(max_rules_per_relation=3)
    assert (np.diff(few.ptr) <= 3).all()


def test_what_confidences_are():
    # Three like tea; two of them like jam, too, and one likes nothing else. One who
    # likes jam, too, likes no tea.
    triples = [(0, 0, 8), (1, 0, 8), (2, 0, 8), (0, 1, 9), (1, 1, 9), (3, 1, 9)]
    rules = mine_constants(as_kb(triples, 10, 2))
    found = as_dict(rules)
    assert found[(0, 8), (2, 9)] == (2, 3, 2)
    assert found[None, (2, 9)] == (3, 10, 3)
    place = list(found).index(((0, 8), (2, 9)))
    assert rules.confidence[place] == pytest.approx(2 / 3)
    assert rules.pca_confidence[place] == 1
    assert rules.shrunk_confidence(2.0)[place] == 0.5


def test_hubs_are_left_out_and_it_is_said(caplog):
    triples = [(0, 0, i) for i in range(1, 30)] + [(1, 0, 2), (3, 0, 2)]
    with caplog.at_level("INFO"):
        rules = mine_constants(as_kb(triples, 30, 1), max_degree=10)
    assert "1 entity with more than 10 features is not used" in caplog.text
    # Entity 0 has 2, too, but does not count; nor does it as one of all entities.
    assert as_dict(rules)[None, (0, 2)] == (2, 29, 2)


def test_too_many_rules_raise_the_support(families, mined, caplog):
    with caplog.at_level("INFO"):
        few = mine_constants(families, max_rules=len(mined) // 3)
    assert "are kept" in caplog.text
    assert 0 < len(few) <= len(mined) // 3
    assert few == mined.filter(min_support=int(few.support.min()))
    # Rules without a body count, too, even if there are no others.
    triples = [(0, 0, 9), (1, 0, 9), (2, 0, 9), (3, 0, 8), (4, 0, 8)]
    assert len(mine_constants(as_kb(triples, 10, 1))) == 2
    assert len(mine_constants(as_kb(triples, 10, 1), max_rules=1)) == 1


@pytest.mark.parametrize("max_rules", [1, 2, 7, 20, 60, 300])
def test_the_least_support_is_raised_no_more_than_needed(max_rules, caplog):
    # Pairs of facts that 2, 3, 4, … entities have in common.
    triples = [(i, f, 50) for f in range(8) for i in range(2 + 4 * f)]
    kb = as_kb(triples, 51, 8)
    everything = mine_constants(kb)
    counts = np.sort(everything.support)[::-1]
    with caplog.at_level("INFO"):
        few = mine_constants(kb, max_rules=max_rules)
        found = EvidenceFeatures(kb, mine_rules(kb), max_rules=max_rules)
    least = int(counts[max_rules]) + 1 if max_rules < len(counts) else 2
    assert few == everything.filter(min_support=least)
    # It is said once, whatever the number of steps.
    said = [one for one in caplog.messages if "more than" in one]
    assert len(said) <= 2
    if least > 2:
        assert f"only those of at least {least} are kept" in said[0]
    has_body = everything.body_code >= 0
    counts = np.sort(everything.support[has_body])[::-1]
    least = int(counts[max_rules]) + 1 if max_rules < len(counts) else 2
    assert found.evidence.choices.least == least
    assert len(found) == (counts >= least).sum()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_support": 0}, r"'min_support' must be at least 1 \(got 0\)"),
        ({"max_rules": 0}, "'max_rules' must be at least 1"),
        ({"min_confidence": 1.5}, "'min_confidence' must lie in 0 to 1"),
        (
            {"min_pca_confidence": float("nan")},
            r"'min_pca_confidence' must be a finite number \(got nan\)",
        ),
    ],
)
def test_wrong_settings_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        mine_constants(as_kb([(0, 0, 1)], 2, 1), **given)


def test_rules_read_as_people_write_them():
    rules = some_rules()
    assert str(rules).splitlines() == [
        "likes(x, Jam) ⇐ likes(x, Tea)   support 9, confidence 0.45, PCA confidence 0.47",
        "knows(x, Ben) ⇐   support 2, confidence 0.50, PCA confidence 0.50",
        "knows(Ada, x) ⇐ likes(x, ·)   support 1, confidence 0.33, PCA confidence 0.50",
    ]
    assert repr(rules) == "ConstantRuleSet(3, relations=2, entities=4)"
    paths = RuleSet.build(RELATIONS, [0], [[2]]).with_constants(rules)
    assert str(paths).splitlines()[0] == "likes(h, t) ⇐ knows(h, t)"
    assert str(paths).splitlines()[1:] == str(rules).splitlines()
    assert repr(paths) == "RuleSet(1, relations=2, constants=3)"


def test_not_everything_is_printed(mined):
    lines = str(mined).splitlines()
    assert len(lines) == 1001
    assert lines[-1] == f"... and {len(mined) - 1000:,} more"


def test_unknown_measures():
    rules = some_rules(support=[9, -1, 2], body_size=[-1, 3, 4])
    assert np.isnan(rules.confidence).tolist() == [True, False, True]
    assert len(rules.filter(min_confidence=0.1)) == 1
    assert "likes(x, Tea)   support 9, PCA confidence 0.47" in str(rules)
    assert "knows(Ada, x) ⇐ likes(x, ·)\n" in f"{rules}\n"


def test_select_filter_sort_and_best(mined):
    least = float(np.median(mined.confidence))
    sure = mined.filter(min_confidence=least)
    assert 0 < len(sure) < len(mined)
    assert (sure.confidence >= least).all()
    rest = mined.select(mined.confidence < least)
    assert rest.merge(sure) == mined == sure.merge(rest) == mined.merge(mined)
    for key, shrinkage in (
        ("support", 0.0),
        ("confidence", 0.0),
        ("pca_confidence", 5),
    ):
        ordered = mined.sort(key, shrinkage)
        assert as_dict(ordered) == as_dict(mined)
        values = getattr(ordered, key)
        values = ordered.shrunk_confidence(shrinkage) if shrinkage else values
        for relation in range(len(mined.relations)):
            assert (np.diff(values[ordered.of(relation)]) <= 0).all()
    best = mined.best(10)
    worth = mined.shrunk_confidence()
    np.testing.assert_array_equal(worth[best], np.sort(worth)[::-1][:10])
    assert len(mined.best(0)) == 0
    assert len(mined.best(len(mined) + 1)) == len(mined)
    likes = mined.filter(relations=["likes"])
    assert len(likes) == np.diff(mined.ptr)[mined.relations.index("likes")] > 0
    with pytest.raises(ValueError, match="'key' must be one of"):
        mined.sort("head_coverage")
    with pytest.raises(ValueError, match="'shrinkage' must be 0"):
        mined.sort("support", 5.0)
    with pytest.raises(DataError, match="other entities than the rules to merge"):
        some_rules().merge(ConstantRuleSet.build(RELATIONS, ["x"], ([], []), ([], [])))


def test_equal_rules_are_equal():
    assert some_rules() == some_rules()
    assert some_rules() != some_rules(support=[9, 1, 1])
    assert some_rules() != some_rules(body_entity=[1, -1, -1])
    paths = RuleSet.build(RELATIONS, [0], [[2]])
    assert paths == RuleSet.build(RELATIONS, [0], [[2]])
    assert paths != RuleSet.build(RELATIONS, [0], [[3]])
    assert paths != paths.with_constants(some_rules())
    assert paths.with_constants(some_rules()) == paths.with_constants(some_rules())


def test_repeated_rules_count_once():
    rules = some_rules()
    again = [np.tile(getattr(rules, name), 2) for name in HEAD_AND_BODY]
    built = ConstantRuleSet.build(
        RELATIONS, ENTITIES, again[:2], again[2:], support=[7, 2, 1, 0, 0, 0]
    )
    assert built.support.tolist() == [7, 2, 1]


def test_path_rules_and_rules_with_constants_are_one_set(families, mined):
    rules = mine_rules(families).with_constants(mined)
    few = rules.filter(min_support=5, min_head_coverage=0.1, relations=["likes", 0])
    assert few.constants == mined.filter(min_support=5, relations=["likes", 0])
    once = iter(["likes", 0])
    again = rules.filter(min_support=5, min_head_coverage=0.1, relations=once)
    assert again.constants == few.constants
    assert few.with_constants(None) == mine_rules(families).filter(
        min_support=5, min_head_coverage=0.1, relations=["likes", 0]
    )
    best = rules.filter(max_rules_per_relation=2)
    assert (np.diff(best.ptr) <= 2).all()
    assert (np.diff(best.constants.ptr) <= 2).all()
    assert rules.sort("confidence").constants == mined.sort("confidence")
    assert rules.sort("head_coverage").constants is mined
    assert rules.select([1, 0]).constants is mined
    half, other = (mined.select(np.arange(i, len(mined), 2)) for i in (0, 1))
    paths = mine_rules(families)
    merged = paths.with_constants(half).merge(paths.with_constants(other))
    assert merged == rules
    assert paths.merge(rules) == rules == rules.merge(paths)
    with pytest.raises(DataError, match="other relations than the rules with const"):
        RuleSet.build(["a"], [], []).with_constants(mined)


def test_save_and_load(families, mined, tmp_path):
    path = tmp_path / "rules.pt"
    rules = mine_rules(families).with_constants(mined)
    rules.save(path)
    assert RuleSet.load(path) == rules
    assert ConstantRuleSet.load(path) == mined
    assert path.read_bytes().startswith(b"kblrn_pyg rules 3 ")
    shuffled = mined.sort("support")
    shuffled.save(path)
    assert ConstantRuleSet.load(path) == shuffled
    assert len(RuleSet.load(path)) == 0
    assert RuleSet.from_dict(rules.to_dict()) == rules
    # A transform leaves them with the data.
    assert MineRules(max_hops=1)(families.clone()).rules.keys() == (
        rules.with_constants(None).to_dict().keys()
    )


@pytest.mark.parametrize("version", ["1", "2"])
def test_files_without_constants_are_what_they_were(families, tmp_path, version):
    path = tmp_path / "rules.pt"
    rules = mine_rules(families)
    rules.save(path)
    assert path.read_bytes().startswith(b"kblrn_pyg rules 2 ")
    save_tensors(rules.to_dict(), path, "rules", version)
    assert RuleSet.load(path) == rules
    with pytest.raises(DataError, match=r"rules\.pt: has no rules with constants"):
        ConstantRuleSet.load(path)
    with pytest.raises(ValueError, match="'version' must be one of"):
        save_tensors(rules.to_dict(), path, "model", "3")


def set_at(column, place, value):
    column = column.clone()
    column[place] = value
    return column


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("head_code", lambda c: set_at(c, 0, -1), "'head_code' must lie in 0 to 3"),
        ("head_code", lambda c: set_at(c, 2, 4), "'head_code' must lie in 0 to 3"),
        ("head_code", lambda c: c.flip(0), "'head_code' must be ordered"),
        ("head_code", lambda c: c.long(), "'head_code' must be a tensor of type int32"),
        (
            "head_code",
            lambda c: c[None],
            "'head_entity' must have 1 entries|'head_code",
        ),
        ("head_entity", lambda c: set_at(c, 0, 4), "'head_entity' must lie in 0 to 3"),
        ("body_code", lambda c: set_at(c, 0, 4), "'body_code' must lie in -1 to 3"),
        ("body_code", lambda c: set_at(c, 0, -2), "'body_code' must lie in -1 to 3"),
        ("body_code", lambda c: set_at(c, 0, -1), "must be -1 where there is no body"),
        ("body_entity", lambda c: set_at(c, 0, 4), "'body_entity' must lie in -1 to"),
        ("body_entity", lambda c: set_at(c, 0, 2), "must not be part of what its head"),
        ("body_entity", lambda c: set_at(c, 0, -1), "must not be part of what its"),
        ("body_entity", lambda c: c[:2], "'body_entity' must have 3 entries"),
        ("support", lambda c: set_at(c, 0, -2), "'support' must lie in -1 to"),
        ("support", lambda c: set_at(c, 0, 20), "'support' must be at most 'pca_body"),
        ("pca_body_size", lambda c: set_at(c, 0, 21), "must be at most 'body_size'"),
        ("body_size", lambda c: [20, 3, 4], "'body_size' must be a tensor"),
        ("body_size", None, r"lack \['body_size'\]"),
        ("entities", None, r"lack \['entities'\]"),
    ],
)
def test_every_column_of_a_file_is_checked(tmp_path, name, change, message):
    path = tmp_path / "rules.pt"
    some_rules().save(path)
    content = load_tensors(path, "rules")
    column = content["constants"].pop(name)
    if change is not None:
        content["constants"][name] = change(column)
    save_tensors(content, path, "rules", "3")
    with pytest.raises(DataError, match=rf"rules\.pt: .*({message})"):
        RuleSet.load(path)


def test_rules_that_are_there_twice_are_refused_in_files(tmp_path):
    path = tmp_path / "rules.pt"
    some_rules().select([0, 0, 1, 2]).save(path)
    with pytest.raises(DataError, match="a rule with constants is there twice"):
        RuleSet.load(path)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "head",
            lambda c: c.flip(0),
            "'head' must hold ids of 'relations' in their order",
        ),
        ("support", lambda c: c[:1], "'support' must have 2 entries"),
        ("steps", lambda c: c - 7, "'steps' must hold codes"),
        ("steps", lambda c: c[:, 0], "'steps' must be a tensor of 2 dimensions"),
        ("steps", None, "'steps' must be a tensor of 2 dimensions"),
    ],
)
def test_columns_of_path_rules_are_checked(tmp_path, name, change, message):
    path = tmp_path / "rules.pt"
    content = RuleSet.build(RELATIONS, [0, 1], [[2, 3], [0]]).to_dict()
    column = content.pop(name)
    if change is not None:
        content[name] = change(column)
    save_tensors(content, path, "rules")
    with pytest.raises(DataError, match=rf"rules\.pt: .*{message}"):
        RuleSet.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"support": [1]}, "'support' must have 3 entries"),
        ({"weight": [1, 2, 3]}, "'measures' must be among"),
        ({"support": [1.0, 2.0, 3.0]}, "'support' must be one row of integers"),
        ({"support": [2**40, 1, 1]}, "'support' must be one row of integers"),
        ({"head_entity": [9, 0, 0]}, "'head_entity' must lie in 0 to 3"),
        ({"body_code": [-7, 0, -1]}, "'body_code' must lie in -1 to 3"),
    ],
)
def test_columns_that_are_no_rules_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        some_rules(**changes)


@pytest.mark.parametrize("max_degree", [10_000, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_given_rules_are_counted_anew(seed, max_degree):
    _, _, kb = make(seed)
    paths = mine_rules(kb)
    rules = mine_constants(kb, 1)
    # Measures that are wrong, and an order that is none: neither matters.
    rng = np.random.default_rng(seed)
    wrong = {name: np.zeros(len(rules), int) for name in COLUMNS[4:]}
    order = rng.permutation(len(rules))
    columns = [getattr(rules, name)[order] for name in HEAD_AND_BODY]
    names = rules.relations, rules.entities
    given = ConstantRuleSet.build(*names, columns[:2], columns[2:], **wrong)
    given = given.sort("support").select(rng.permutation(len(rules)))
    for least in (1, 2):
        own = EvidenceFeatures(kb, paths, least, max_degree=max_degree)
        again = EvidenceFeatures(
            kb, paths.with_constants(given), least, max_degree=max_degree
        )
        assert again.evidence.choices == own.evidence.choices
        for one, other in zip(own.evidence.rules, again.evidence.rules):
            np.testing.assert_array_equal(one, other)


def test_only_given_rules_are_used(families, mined, caplog):
    paths = mine_rules(families)
    few = mined.filter(min_pca_confidence=0.5, min_support=3)
    with caplog.at_level("INFO"):
        found = EvidenceFeatures(families, paths.with_constants(few), min_support=4)
    with_body = few.select(few.body_code >= 0)
    assert len(found) == (with_body.support >= 4).sum() > 0
    assert f"of {len(with_body):,} given rules with constants" in caplog.text
    names = [f"{name}?" for name in mined.entities]
    other = ConstantRuleSet.build(mined.relations, names, ([], []), ([], []))
    with pytest.raises(DataError, match="other entities than the data"):
        EvidenceFeatures(families, paths.with_constants(other))


def test_a_given_rule_about_what_nobody_has_is_left_out():
    kb = as_kb([(0, 0, 2), (1, 0, 2), (0, 0, 3), (1, 0, 3)], 5, 1)
    rules = ConstantRuleSet.build(
        ["r0"], list(kb["entity"].name), ([0, 0, 0], [2, 2, 4]), ([0, 1, 0], [3, 4, 3])
    )
    found = EvidenceFeatures(kb, mine_rules(kb).with_constants(rules))
    assert found.evidence.rules.support.tolist() == [2]
    assert found.evidence.rules.body.tolist() == [2]


def test_a_model_of_given_rules_is_whole(families, mined, tmp_path):
    from kblrn_pyg import KBLRN

    rules = mine_rules(families).with_constants(mined.filter(min_pca_confidence=0.3))
    model = KBLRN.from_data(families, "re", rules=rules, num_negatives=None)
    used = int((rules.constants.body_code >= 0).sum())
    assert len(model.experts["evidence"].features) == used
    assert model.experts["relational"].features.rules.constants is None
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert len(again.experts["evidence"].features) == used
    head, rel, tail = torch.tensor([0, 1]), torch.tensor([0, 1]), torch.tensor([5, 6])
    torch.testing.assert_close(again(head, rel, tail), model(head, rel, tail))


def test_constants_without_effect_are_said(families, mined, caplog):
    from kblrn_pyg import KBLRN

    few = mined.filter(min_support=5)
    with pytest.warns(UserWarning, match="with constants have no effect without the e"):
        KBLRN.from_data(families, "r", rules=mine_rules(families).with_constants(few))
    with caplog.at_level("INFO"):
        KBLRN.from_data(families, "e", rules=few.as_rules())
    assert "the rules have no paths" in caplog.text


def test_constants_stay_where_paths_have_no_confidences(families, mined, caplog):
    from kblrn_pyg import KBLRN

    few = mined.filter(min_support=4)
    rules = mine_rules(families, confidences=False).with_constants(few)
    model = KBLRN.from_data(families, "e", rules=rules, num_negatives=None)
    assert len(model.experts["evidence"].features) == (few.body_code >= 0).sum()
