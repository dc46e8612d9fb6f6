"""Path features equal those of the naive twin: pairs, queries and middles."""

import random

import naive
import numpy as np
import pytest
from test_mining import ALL_CHOICES, as_dict, as_kb

from kblrn_pyg.data import DataError
from kblrn_pyg.kernels.threads import default_threads, limit_threads
from kblrn_pyg.rules import PathFeatures, RuleSet, Semantics, mine_rules

CHOICES = ("equal_ends", "equal_middle", "self_loops")


def every_rule(num_relations, rng, **choices):
    """A rule set with many bodies of each kind, mined or not."""
    bodies = naive.all_bodies(num_relations, 2, parallel=True)
    rules = [
        (head, (kind, codes))
        for head in range(num_relations)
        for kind, codes in bodies
        if 2 * head not in codes or (kind == "path" and len(codes) == 2)
    ]
    rules = rng.sample(rules, min(len(rules), 60))
    return RuleSet.build(
        [f"r{i}" for i in range(num_relations)],
        head=[head for head, _ in rules],
        steps=[codes for _, (_, codes) in rules],
        parallel=[kind == "parallel" for _, (kind, _) in rules],
        semantics=Semantics(**choices),
    )


def naive_bodies(rules, relation):
    part = rules.of(relation)
    return [
        ("parallel" if parallel else "path", codes)
        for parallel, codes in rules.bodies()[part]
    ]


@pytest.fixture(params=range(60))
def case(request):
    rng = random.Random(request.param)
    triples, num_entities, num_relations = naive.random_kb(rng)
    choices = {} if request.param % 2 else {c: rng.random() < 0.5 for c in CHOICES}
    rules = every_rule(num_relations, rng, **choices)
    features = PathFeatures(
        as_kb(triples, num_entities, num_relations),
        rules,
        num_threads=rng.choice([1, 3]),
    )
    return triples, num_entities, num_relations, rules, choices, features, rng


def check_pairs(features, triples, asked, choices):
    rules = features.rules
    given = np.array(asked).T
    found, left = features.pairs(*given), features.pairs(*given, leave_own=True)
    own = features.own_evidence(*given)
    for i, (h, r, t) in enumerate(asked):
        ask = (triples, naive_bodies(rules, r), h, t)
        expected = naive.pair_features(*ask, **choices)
        expected_left = naive.pair_features(*ask, own=(h, r, t), **choices)
        expected_own = naive.own_evidence(*ask, own=(h, r, t), **choices)
        for features_found, wanted in (
            (found, expected),
            (left, expected_left),
            (own, expected_own),
        ):
            ptr, rule = features_found
            assert (rule[ptr[i] : ptr[i + 1]] - rules.ptr[r]).tolist() == wanted


def check_queries(features, triples, entity, rel, choices):
    rules = features.rules
    for given, found in (
        ("head", features.tails(entity, rel)),
        ("tail", features.heads(rel, entity)),
    ):
        for i in range(len(rel)):
            part = slice(found.ptr[i], found.ptr[i + 1])
            mine = {}
            for candidate, rule in zip(found.candidate[part], found.rule[part]):
                mine.setdefault(int(candidate), []).append(
                    int(rule - rules.ptr[rel[i]])
                )
            expected = naive.query_features(
                triples,
                features.num_entities,
                naive_bodies(rules, rel[i]),
                **{given: int(entity[i])},
                **choices,
            )
            assert mine == expected
            assert (np.diff(found.rule[part]) >= 0).all()


def random_triples(rng, num_entities, num_relations, number):
    sizes = num_entities, num_relations, num_entities
    return [tuple(map(rng.randrange, sizes)) for _ in range(number)]


def test_pairs(case):
    triples, num_entities, num_relations, _, choices, features, rng = case
    asked = random_triples(rng, num_entities, num_relations, 15) + triples[:15]
    check_pairs(features, triples, asked, choices)


def test_queries(case):
    triples, num_entities, num_relations, _, choices, features, rng = case
    entity, rel, _ = np.array(random_triples(rng, num_entities, num_relations, 12)).T
    check_queries(features, triples, entity, rel, choices)


@pytest.mark.parametrize("seed", [0, 10, 23])
@pytest.mark.parametrize(
    "choices", ALL_CHOICES, ids=lambda c: "".join(str(int(v)) for v in c.values())
)
def test_rules_are_evaluated_as_they_were_mined(choices, seed):
    """Measures, pairs, queries and own evidence, under all semantics."""
    rng = random.Random(seed)
    kb = triples, num_entities, num_relations = naive.random_kb(rng)
    mined = {"parallel": True, "min_head_coverage": 0.0, **choices}
    rules = mine_rules(as_kb(*kb), **mined)
    assert rules.semantics == Semantics(**choices)
    expected = naive.mine(*kb, **mined)
    assert as_dict(rules) == expected
    for i, key in enumerate(as_dict(rules)):
        measures = expected[key]
        assert rules.confidence[i] == measures["support"] / measures["body_size"]
        assert rules.pca_confidence[i] == float(naive.pca_confidence(measures))
    features = PathFeatures(as_kb(*kb), rules)
    asked = random_triples(rng, num_entities, num_relations, 15) + triples[:15]
    check_pairs(features, triples, asked, choices)
    entity, rel, _ = np.array(asked[:12]).T
    check_queries(features, triples, entity, rel, choices)
    head, rel, tail = np.array(sorted(set(triples))).T
    found = features.pairs(head, rel, tail).rule
    supports = np.bincount(found, minlength=len(rules))
    assert supports.tolist() == rules.support.tolist()


def test_middles(case):
    triples, num_entities, _, rules, choices, features, rng = case
    bodies = rules.bodies()
    for rule in rng.sample(range(len(rules)), min(len(rules), 8)):
        parallel, codes = bodies[rule]
        rule = rng.choice([int, np.int64, np.int32])(rule)
        for _ in range(10):
            h, t = rng.randrange(num_entities), rng.randrange(num_entities)
            body = ("parallel" if parallel else "path", codes)
            expected = naive.middles(triples, body, h, t, **choices)
            assert features.holds(rule, h, t) == bool(expected)
            if len(codes) == 2 and not parallel:
                assert [(x,) for x in features.middles(rule, h, t)] == expected
                assert len(features.middles(rule, h, t, limit=1)) == min(
                    len(expected), 1
                )
            else:
                assert len(features.middles(rule, h, t)) == 0


def test_empty_batches():
    kb = naive.random_kb(random.Random(1))
    features = PathFeatures(as_kb(*kb), every_rule(kb[2], random.Random(1)))
    for found in (
        features.tails([], []),
        features.heads([], []),
        features.pairs([], [], []),
    ):
        assert found.ptr.tolist() == [0]
        assert len(found.rule) == 0


def test_own_fact_is_no_evidence():
    """Only self-loops let a fact reach itself, and then it must not count."""
    triples = [(0, 0, 1), (1, 1, 1), (0, 1, 0)]
    rules = RuleSet.build(["r0", "r1"], head=[0, 0, 1], steps=[[0, 2], [2, 0], [3]])
    features = PathFeatures(as_kb(triples, 2, 2), rules)
    head, rel, tail = np.array(triples).T
    assert features.pairs(head, rel, tail).ptr.tolist() == [0, 2, 3, 4]
    assert features.pairs(head, rel, tail, leave_own=True).ptr.tolist() == [0, 0, 0, 0]


def test_rules_of_another_knowledge_base_are_refused():
    data = as_kb([(0, 0, 1)], 2, 1)
    with pytest.raises(DataError, match=r"over other relations than.*'x'.*'r0'"):
        PathFeatures(data, RuleSet.build(["x"], head=[0], steps=[[1]]))
    with pytest.raises(DataError, match=r"at most 2 steps \(got 3\)"):
        PathFeatures(data, RuleSet.build(["r0"], head=[0], steps=[[0, 1, 0]]))


def test_threads_are_those_of_now():
    kb = as_kb([(0, 0, 1)], 2, 1)
    features = PathFeatures(kb, RuleSet.build(["r0"], head=[0], steps=[[1]]))
    before = default_threads()
    try:
        limit_threads(before + 1)
        assert features.num_threads == before + 1
    finally:
        limit_threads(before)


@pytest.mark.parametrize(
    ("head", "rel", "message"),
    [
        ([0], [3], r"ids of relations must lie in 0 to 2 \(got 3 to 3\)"),
        ([0], [-1], r"ids of relations must lie in 0 to 2"),
        ([4], [0], r"ids of (entities|heads) must lie in 0 to 3"),
        ([-2], [0], r"ids of (entities|heads) must lie in 0 to 3"),
        ([0, 1], [0], r"must be equally many \(got \[1, 2"),
    ],
)
def test_wrong_ids_are_refused(head, rel, message):
    """Kernels do not look, and would read memory of others."""
    data = as_kb([(0, 0, 1), (1, 1, 2), (2, 2, 3)], 4, 3)
    rules = RuleSet.build(["r0", "r1", "r2"], head=[0, 1], steps=[[2], [4, 1]])
    features = PathFeatures(data, rules)
    heads, rels = np.array(head), np.array(rel)
    scores, weight = np.zeros((len(head), 4)), np.zeros(2)
    for ask in (
        lambda: features.tails(heads, rels),
        lambda: features.heads(rels, heads),
        lambda: features.pairs(heads, rels, heads),
        lambda: features.own_evidence(heads, rels, heads),
        lambda: features.add_scores("head", heads, rels, weight, scores),
        lambda: features.weight_gradient("tail", heads, rels, scores),
        lambda: features.walk_arguments("tail", heads, rels),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


@pytest.mark.parametrize(
    ("rule", "head", "tail", "message"),
    [
        (2, 0, 0, r"id of the rule must lie in 0 to 1 \(got 2\)"),
        (-1, 0, 0, "id of the rule must lie in 0 to 1"),
        (0, 4, 0, "id of the head must lie in 0 to 3"),
        (1, 0, -1, "id of the tail must lie in 0 to 3"),
    ],
)
def test_wrong_ids_of_rules_and_pairs_are_refused(rule, head, tail, message):
    rules = RuleSet.build(["r0"], head=[0, 0], steps=[[1], [0, 1]])
    features = PathFeatures(as_kb([(0, 0, 1)], 4, 1), rules)
    for ask in (features.holds, features.middles):
        with pytest.raises(ValueError, match=message):
            ask(rule, head, tail)


def test_sides_have_names():
    rules = RuleSet.build(["r0"], head=[0], steps=[[1]])
    features = PathFeatures(as_kb([(0, 0, 1)], 2, 1), rules)
    ids = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="'side' must be 'head' or 'tail'"):
        features.walk_arguments(True, ids, ids)
