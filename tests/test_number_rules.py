"""Rules about numbers: intervals, mined and weighed like those about facts."""

import math
import random

import naive
import naive_evidence as twin
import numpy as np
import pytest
import torch
from test_evidence import every_triple, path_rules
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, Intervals, intervals, quantile_intervals
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import EvidenceExpert
from kblrn_pyg.rules import (
    ConstantRuleSet,
    EvidenceFeatures,
    RuleSet,
    mine_constants,
    mine_rules,
    write_rules,
)
from kblrn_pyg.rules.evidence_kinds import KindFeatures

SEEDS = range(10)
BINS = 8


@pytest.fixture
def tiny_bins(monkeypatch):
    """Random knowledge bases are too small for bins of five entities."""
    monkeypatch.setattr(intervals, "_LEAST_IN_BIN", 1)


def random_values(rng, num_entities):
    """Some unknown, many equal, some attributes constant or unknown to all."""
    columns = []
    for _ in range(rng.randint(1, 3)):
        among = rng.choice(
            [[1.5], [0, 1, 2, 3], [rng.uniform(-1e3, 1) for _ in "12345"]]
        )
        known = rng.choice([0.0, 0.6, 1.0])
        columns.append(
            [
                float(rng.choice(among)) if rng.random() < known else math.nan
                for _ in range(num_entities)
            ]
        )
    return [list(row) for row in zip(*columns)]


def make(seed):
    rng = random.Random(seed)
    triples, num_entities, num_relations = naive.random_kb(rng)
    kb = as_kb(triples, num_entities, num_relations)
    values = random_values(rng, num_entities)
    kb["entity"].x = torch.tensor(values, dtype=torch.double)
    kb.attribute_names = [f"a{i}" for i in range(len(values[0]))]
    found = quantile_intervals(kb, BINS)
    pairs = [
        list(zip(found.low[a:b].tolist(), found.high[a:b].tolist()))
        for a, b in zip(found.ptr[:-1], found.ptr[1:])
    ]
    return twin.Numbered.of(triples, values, pairs), kb


def slow_bins(values, num_bins, least):
    """The sets of values that are bins or sides of cuts, from counting alone."""
    values = sorted(value for value in values if not math.isnan(value))
    sets, number = set(), 2
    while number <= num_bins and number * least <= len(values):
        cuts = []
        for i in range(1, number):
            places = [v for v in dict.fromkeys(values) if v != values[0]]
            wanted = i / number * len(values)
            if places:
                cuts.append(min(places, key=lambda v: abs(values.index(v) - wanted)))
        cuts = sorted(set(cuts))
        for low, high in [*zip(cuts, cuts[1:])]:
            sets.add(tuple(v for v in values if low <= v < high))
        for cut in cuts:
            sets.add(tuple(v for v in values if v < cut))
            sets.add(tuple(v for v in values if v >= cut))
        number *= 2
    return sets


@pytest.mark.parametrize("least", [1, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_bins_are_those_of_counting(seed, least, monkeypatch):
    monkeypatch.setattr(intervals, "_LEAST_IN_BIN", least)
    rng = random.Random(seed)
    kb = as_kb([], 60, 1)
    values = random_values(rng, 60)
    kb["entity"].x = torch.tensor(values, dtype=torch.double)
    kb.attribute_names = [f"a{i}" for i in range(len(values[0]))]
    found = quantile_intervals(kb, BINS)
    for a, column in enumerate(zip(*values)):
        own = range(found.ptr[a], found.ptr[a + 1])
        sets = [
            tuple(sorted(v for v in column if found.low[i] <= v < found.high[i]))
            for i in own
        ]
        assert len(set(sets)) == len(sets)
        assert set(sets) == slow_bins(column, BINS, least)
    # Entities are where their values are, in order.
    x = kb["entity"].x.numpy()
    ptr, holder = found.holders(x)
    rows = [holder[a:b].tolist() for a, b in zip(ptr[:-1], ptr[1:])]
    for a in range(x.shape[1]):
        assert rows[a] == np.flatnonzero(~np.isnan(x[:, a])).tolist()
        for i in range(found.ptr[a], found.ptr[a + 1]):
            inside = (x[:, a] >= found.low[i]) & (x[:, a] < found.high[i])
            assert rows[x.shape[1] + i] == np.flatnonzero(inside).tolist()


def test_cuts_are_round_numbers_between_values():
    kb = as_kb([], 40, 1)
    kb["entity"].x = torch.linspace(0.0113, 1.0, 40).double()[:, None]
    kb.attribute_names = ["value"]
    found = quantile_intervals(kb, 2)
    assert found.low.tolist() == [-math.inf, 0.5]
    assert found.high.tolist() == [0.5, math.inf]
    assert "value".join(found.around(0, 1)) == "value ≥ 0.5"


def feature(features, i):
    code, entity = int(features.code[i]), int(features.entity[i])
    num_codes, entity = len(features.code_ptr) - 1, None if entity < 0 else entity
    if code >= num_codes:
        return twin.OfNumber(code - num_codes, entity)
    return code, entity


@pytest.mark.usefixtures("tiny_bins")
@pytest.mark.parametrize("max_degree", [10_000, 12])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_mined_rules_are_those_of_the_twin(seed, least, max_degree):
    facts, kb = make(seed)
    rules = mine_constants(kb, least, max_degree=max_degree, bins=BINS)
    num_codes = 2 * len(kb.edge_types)

    def atom(code, entity):
        entity = None if entity < 0 else entity
        if code >= num_codes:
            return twin.OfNumber(code - num_codes, entity)
        return None if code < 0 else (code, entity)

    columns = ("body_code", "body_entity", "head_code", "head_entity")
    measures = ("support", "body_size", "pca_body_size")
    rows = zip(*(getattr(rules, one).tolist() for one in (*columns, *measures)))
    mined = {(atom(a, b), atom(c, d)): (*sizes,) for a, b, c, d, *sizes in rows}
    size = kb["entity"].num_nodes
    assert mined == twin.measured_rules(facts, size, least, max_degree)
    assert len(mined) == len(rules)
    # Those of the evidence expert are the same, in another order.
    given = kb, mine_rules(kb), least
    found = EvidenceFeatures(*given, max_degree=max_degree, bins=BINS)
    features, own = found.evidence.features, found.evidence.rules
    source = np.repeat(np.arange(len(features.code)), np.diff(own.ptr))
    counted = {
        (feature(features, f), feature(features, g)): (int(s), int(b))
        for f, g, s, b in zip(source, own.target, own.support, own.body)
    }
    assert counted == {
        rule: (s, b) for rule, (s, _, b) in mined.items() if rule[0] is not None
    }
    # And so are those that are given, with intervals of their own.
    given = kb, mine_rules(kb).with_constants(rules), least
    again = EvidenceFeatures(*given, max_degree=max_degree).evidence.rules
    for name in ("ptr", "target", "support", "body", "source"):
        np.testing.assert_array_equal(getattr(again, name), getattr(own, name))


@pytest.mark.usefixtures("tiny_bins")
@pytest.mark.parametrize("leave_own", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_triples_are_those_of_the_twin(seed, leave_own):
    facts, kb = make(seed)
    rules, least = mine_rules(kb), 1 + seed % 2
    found = EvidenceFeatures(kb, rules, least, max_degree=14, bins=BINS)
    kinds = KindFeatures(found)
    code = np.repeat(np.arange(len(kinds.kinds.ptr) - 1), np.diff(kinds.kinds.ptr))
    names = list(zip(code.tolist(), kinds.kinds.kind.tolist()))
    choices = twin.Choices(least, max_degree=14)
    asked = every_triple(kb)
    is_fact = [tuple(map(int, one)) in facts for one in zip(*asked)]
    some = random.Random(seed).sample(range(len(is_fact)), min(20, len(is_fact)))
    some += np.flatnonzero(is_fact)[:25].tolist()
    h, r, t = (index[some] for index in asked)
    values = found.pairs(h, r, t, leave_own)
    of_kinds = kinds.pairs(h, r, t, "left" if leave_own else "whole")
    paths, num_relations = path_rules(rules), len(kb.edge_types)
    for i, triple in enumerate(zip(h.tolist(), r.tolist(), t.tolist())):
        a, b, c, *usual = twin.triple_features(
            facts, paths, *triple, choices, leave_own
        )
        slow = [a, b, max(a, c), max(b, c), *usual]
        np.testing.assert_allclose(values[i], slow, rtol=1e-5, atol=1e-6)
        own = slice(of_kinds.ptr[i], of_kinds.ptr[i + 1])
        fast = dict(zip(of_kinds.pair[own].tolist(), of_kinds.strength[own].tolist()))
        fast = {names[pair]: strength for pair, strength in fast.items()}
        slow = twin.triple_kinds(facts, *triple, num_relations, choices, leave_own)
        assert fast == pytest.approx({k: v for k, v in slow.items() if v}, rel=1e-5)


@pytest.mark.usefixtures("tiny_bins")
@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", SEEDS)
def test_three_ways_of_scoring_agree_and_parts_sum(seed, side, kinds):
    _, kb = make(seed)
    expert = EvidenceExpert(kb, mine_rules(kb), 1, kinds=kinds, bins=BINS)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in expert.parameters():
            parameter.normal_()
    num_entities, num_relations = kb["entity"].num_nodes, len(kb.edge_types)
    entity, rel = (i.ravel() for i in np.indices((num_entities, num_relations)))
    queries = Queries(torch.from_numpy(entity), torch.from_numpy(rel), side)
    every = torch.arange(num_entities).expand(len(rel), -1)
    triples = [index.flatten() for index in queries.triples(every)]
    scores = expert(*triples).view(every.shape)
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(expert.score_candidates(queries, every), scores, **close)
    whole = expert.score_all(queries, num_entities)
    torch.testing.assert_close(whole, scores, **close)
    columns = torch.randperm(num_entities)[: max(1, num_entities // 2)]
    some = expert.score_all(queries, num_entities, columns)
    torch.testing.assert_close(some, scores[:, columns], **close)
    for i in random.Random(seed).sample(range(len(triples[0])), 3):
        parts = expert.parts(*(int(index[i]) for index in triples), side)
        total = sum(part.contribution for part in parts)
        assert total == pytest.approx(scores.flatten()[i].item(), rel=1e-4, abs=1e-4)


def high_and_low(number=60, seed=0, permuted=False):
    """Who has a value of at least 0.5 is high; the last third is asked about."""
    rng = random.Random(seed)
    value = [rng.random() for _ in range(number)]
    is_high = [v >= 0.5 for v in value]
    if permuted:
        rng.shuffle(value)
    triples = [(i, 0, number + is_high[i]) for i in range(2 * number // 3)]
    kb = as_kb(triples, number + 2, 1)
    kb["entity"].name = [*(f"e{i}" for i in range(number)), "low", "high"]
    kb["entity"].x = torch.tensor([*value, math.nan, math.nan]).double()[:, None]
    kb.attribute_names = ["value"]
    return kb, is_high


def test_numbers_of_one_side_decide():
    kb, is_high = high_and_low()
    with_numbers = EvidenceExpert(kb, mine_rules(kb), bins=8)
    without = EvidenceExpert(kb, mine_rules(kb))
    asked = torch.arange(40, 60)
    for expert, least, most in ((with_numbers, 0.95, 1), (without, 0, 0.7)):
        low, high = (
            expert(asked, torch.zeros_like(asked), torch.full_like(asked, tail))
            for tail in (60, 61)
        )
        right = (high > low) == torch.tensor(is_high[40:])
        assert least <= right.float().mean() <= most
    # Asked for heads, those with the number come first.
    queries = Queries(torch.tensor([61]), torch.tensor([0]), "head")
    scores = with_numbers.score_all(queries, 62)[0, 40:60]
    is_high = torch.tensor(is_high[40:])
    assert scores[is_high].min() >= scores[~is_high].max()


def test_leaving_out_a_fact_leaves_the_number_but_lowers_the_support():
    # Two are high by their value: each of them has one example besides, too few.
    triples = [(0, 0, 13), (1, 0, 13), *((i, 0, 12) for i in range(2, 12))]
    kb = as_kb(triples, 14, 1)
    value = [9.0, 8.0, *([1.0] * 10), math.nan, math.nan]
    kb["entity"].x = torch.tensor(value).double()[:, None]
    kb.attribute_names = ["value"]
    found = EvidenceFeatures(kb, mine_rules(kb), bins=2)
    ids = [np.array([i]) for i in (0, 0, 13)]
    assert found.pairs(*ids)[0, 0] == pytest.approx(math.log1p(2 / 7 / 0.03))
    assert found.pairs(*ids, leave_own=True)[0, 0] == 0
    low = [np.array([i]) for i in (5, 0, 12)]
    # All ten of the low ones, and then the nine others.
    assert found.pairs(*low)[0, 0] == pytest.approx(math.log1p(10 / 15 / 0.03))
    left = found.pairs(*low, leave_own=True)[0, 0]
    assert left == pytest.approx(math.log1p(9 / 14 / 0.03))


def test_explanations_name_the_interval_and_the_number(tmp_path):
    kb, is_high = high_and_low()
    model = KBLRN.from_data(kb, "e", num_negatives=None, evidence_bins=8).eval()
    head = 40 + is_high[40:].index(True)
    text = str(model.explain(f"e{head}", "r0", "high"))
    value = f"{kb['entity'].x[head, 0].item():.4g}"
    assert "value(h) ≥ 0." in text
    assert f"{value}: true for " in text
    # A file of the model has all it needs.
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert str(again.explain(f"e{head}", "r0", "high")) == text
    assert again.config["evidence_bins"] == 8
    expert = again.experts["evidence"]
    assert expert.fingerprint() == model.experts["evidence"].fingerprint()
    other = EvidenceExpert(kb, mine_rules(kb), bins=4)
    assert other.fingerprint() != expert.fingerprint()


def test_rules_about_numbers_are_kept(tmp_path):
    kb, _ = high_and_low()
    rules = mine_constants(kb, bins=4)
    texts = str(rules).splitlines()
    assert any(one.startswith("r0(x, high) ⇐ value(x) ≥ 0.") for one in texts)
    assert any(" ≤ value(x) < " in one for one in texts)
    assert any("⇐ value(x) is known   support" in one for one in texts)
    rules.save(tmp_path / "rules.pt")
    again = ConstantRuleSet.load(tmp_path / "rules.pt")
    assert again == rules
    assert again.filter(min_support=5).intervals == rules.intervals
    assert rules.merge(again) == rules
    assert mine_constants(kb).merge(rules).intervals == rules.intervals
    with pytest.raises(ValueError, match="same intervals"):
        rules.merge(mine_constants(kb, bins=2))
    with pytest.raises(ValueError, match=r"RuleSet\.save"):
        write_rules(rules.as_rules(), tmp_path / "rules.tsv")
    other, _ = high_and_low()
    other.attribute_names = ["size"]
    with pytest.raises(DataError, match="other attributes"):
        EvidenceFeatures(other, mine_rules(kb).with_constants(rules))
    with pytest.raises(ValueError, match="'bins' must be 0"):
        EvidenceFeatures(kb, mine_rules(kb).with_constants(rules), bins=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"body_entity": [1, -1]}, "intervals of attributes"),
        ({"body_code": [9, 2]}, "must lie in"),
        ({"head_code": [2, 0]}, "must lie in"),
    ],
)
def test_rules_about_numbers_that_are_none_are_refused(change, message):
    own = Intervals(["a"], np.array([0, 1]), np.array([-math.inf]), np.array([0.5]))
    given = {"head_code": [0, 0], "head_entity": [1, 1]}
    given |= {"body_code": [2, 2], "body_entity": [0, -1]} | change
    code, entity, body, body_entity = given.values()
    with pytest.raises(ValueError, match=message):
        ConstantRuleSet.build(
            ["r"], ["x", "y"], (code, entity), (body, body_entity), own
        )


@pytest.mark.parametrize("wrong", [1, 3, -2, 12])
def test_wrong_numbers_of_bins_are_refused(wrong):
    kb, _ = high_and_low()
    for call in (
        lambda: mine_constants(kb, bins=wrong),
        lambda: KBLRN.from_data(kb, "e", evidence_bins=wrong),
        lambda: quantile_intervals(kb, wrong),
    ):
        with pytest.raises(ValueError, match=r"must be one of .*2, 4, 8"):
            call()


def test_bins_without_effect_are_said():
    kb, _ = high_and_low()
    rules = mine_rules(kb).with_constants(mine_constants(kb))
    with pytest.warns(UserWarning, match="rules with constants are given"):
        KBLRN.from_data(kb, "e", rules=rules, evidence_bins=2)
    with pytest.warns(UserWarning, match="are no numbers"):
        KBLRN.from_data(as_kb([(0, 0, 1)], 2, 1), "e", evidence_bins=2)
    with pytest.warns(UserWarning, match="'evidence_bins' has no effect without"):
        KBLRN.from_data(kb, "l", evidence_bins=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": torch.tensor([2.0, 0.5]).double()}, "less than"),
        ({"ptr": torch.tensor([0, 1])}, "must ascend"),
        ({"ptr": torch.tensor([0, 1, 2])}, "fit to"),
        ({"high": torch.tensor([1.0, 2.0])}, "must be one row"),
        ({"attributes": [3]}, "list of names"),
    ],
)
def test_unusable_intervals_of_files_are_refused(change, message):
    low, high = (torch.tensor(ends).double() for ends in ([0.0, 0.5], [1.0, 2.0]))
    content = {"attributes": ["a"], "ptr": torch.tensor([0, 2]), "low": low}
    Intervals.from_dict(content | {"high": high})
    with pytest.raises(ValueError, match=message):
        Intervals.from_dict(content | {"high": high} | change)
    content = mine_constants(high_and_low()[0], bins=2).as_rules().to_dict()
    content["constants"]["intervals"]["low"][:] = math.nan
    with pytest.raises((DataError, ValueError), match="less than"):
        RuleSet.from_dict(content)
