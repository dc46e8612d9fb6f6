"""Evidence by rules with constants, against a slow twin on random knowledge bases."""

import random
import warnings

import naive
import naive_evidence as twin
import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.datasets import Families
from kblrn_pyg.nn import EvidenceExpert
from kblrn_pyg.rules import EvidenceFeatures, mine_rules

SEEDS = range(12)


def make(seed, min_support=2, max_degree=10_000, **choices):
    rng = random.Random(seed)
    triples, num_entities, num_relations = naive.random_kb(rng)
    kb = as_kb(triples, num_entities, num_relations)
    rules = mine_rules(kb)
    features = EvidenceFeatures(
        kb, rules, min_support, max_degree=max_degree, **choices
    )
    return triples, kb, rules, features


def path_rules(rules):
    columns = rules.head, rules.bodies(), rules.support, rules.pca_body_size
    return [(int(h), body, int(s), int(b)) for h, body, s, b in zip(*columns)]


def every_triple(kb):
    num_entities, num_relations = kb["entity"].num_nodes, len(kb.edge_types)
    shape = num_entities, num_relations, num_entities
    return tuple(index.ravel() for index in np.indices(shape))


def feature(features, i):
    entity = int(features.entity[i])
    return int(features.code[i]), None if entity < 0 else entity


@pytest.mark.parametrize("max_degree", [None, 6])
@pytest.mark.parametrize("least", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_mined_rules_are_those_of_the_twin(seed, least, max_degree):
    triples, _, _, found = make(seed, least, max_degree or 10_000)
    features, rules = found.evidence.features, found.evidence.rules
    source = np.repeat(np.arange(len(features.code)), np.diff(rules.ptr))
    mined = {
        (feature(features, f), feature(features, g)): (int(s), int(b))
        for f, g, s, b in zip(source, rules.target, rules.support, rules.body)
    }
    assert len(mined) == len(found) == len(rules.target)
    assert mined == twin.constant_rules(triples, least, max_degree)
    # The other order has the same rules, those of a kind together, the surest first.
    target = np.repeat(np.arange(len(features.code)), np.diff(rules.back_ptr))
    back = {
        (feature(features, f), feature(features, g)): sure
        for f, g, sure in zip(rules.source, target, rules.back_strength)
    }
    assert back.keys() == mined.keys()
    for pair, (support, body) in mined.items():
        strength = np.log1p(support / (body + 5.0) / 0.03)
        np.testing.assert_allclose(back[pair], strength, rtol=1e-6)
    for g in range(len(features.code)):
        own = slice(rules.back_ptr[g], rules.back_ptr[g + 1])
        bodies = [feature(features, f) for f in rules.source[own]]
        kinds = [(code, entity is None) for code, entity in bodies]
        changes = sum(one != other for one, other in zip(kinds, kinds[1:]))
        assert changes == max(0, len(set(kinds)) - 1)
        for i in range(1, len(kinds)):
            if kinds[i] == kinds[i - 1]:
                assert rules.back_strength[own][i] <= rules.back_strength[own][i - 1]


@pytest.mark.parametrize("leave_own", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_of_triples_are_those_of_the_twin(seed, leave_own):
    max_degree = 8 if seed % 3 == 0 else 10_000
    given = {"shrinkage": 1.0 + seed, "floor": 0.1 / (1 + seed)}
    triples, kb, rules, found = make(seed, 1 + seed % 2, max_degree, **given)
    choices = twin.Choices(1 + seed % 2, max_degree, **given)
    asked = every_triple(kb)
    values = found.pairs(*asked, leave_own)
    paths = path_rules(rules)
    rng = random.Random(seed)
    some = rng.sample(range(len(asked[0])), min(60, len(asked[0])))
    facts = set(triples)
    some += [i for i, t in enumerate(zip(*asked)) if tuple(map(int, t)) in facts][:40]
    for i in some:
        h, r, t = (int(index[i]) for index in asked)
        a, b, c, *usual = twin.triple_features(
            triples, paths, h, r, t, choices, leave_own
        )
        slow = [a, b, max(a, c), max(b, c), *usual]
        np.testing.assert_allclose(values[i], slow, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", SEEDS)
def test_three_ways_of_scoring_agree(seed, side):
    _, kb, rules, _ = make(seed)
    expert = EvidenceExpert(kb, rules)
    torch.manual_seed(seed)
    with torch.no_grad():
        expert.weight.normal_()
    num_entities, num_relations = kb["entity"].num_nodes, len(kb.edge_types)
    entity, rel = (i.ravel() for i in np.indices((num_entities, num_relations)))
    order = np.random.default_rng(seed).permutation(len(rel))
    entity, rel = (torch.from_numpy(i[order]) for i in (entity, rel))
    queries = Queries(entity, rel, side)
    every = torch.arange(num_entities).expand(len(rel), -1)
    triples = [index.flatten() for index in queries.triples(every)]
    scores = expert(*triples).view(every.shape)
    torch.testing.assert_close(expert.score_candidates(queries, every), scores)
    whole = expert.score_all(queries, num_entities)
    torch.testing.assert_close(whole, scores, rtol=1e-4, atol=1e-5)
    # The columns of some entities; twice, as what is kept must not stay behind.
    for size in (max(1, num_entities // 2), 1, num_entities):
        columns = torch.randperm(num_entities)[:size]
        some = expert.score_all(queries, num_entities, columns)
        torch.testing.assert_close(some, scores[:, columns], rtol=1e-4, atol=1e-5)
        again = Queries(entity.repeat(2), rel.repeat(2), side)  # equal queries
        some = expert.score_all(again, num_entities, columns)
        expected = scores[:, columns].repeat(2, 1)
        torch.testing.assert_close(some, expected, rtol=1e-4, atol=1e-5)
    expert.features.remember()
    again = expert.score_all(queries, num_entities)
    torch.testing.assert_close(again, scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("side", SIDES)
def test_gradients_are_those_of_the_slow_way(side, columns):
    _, kb, rules, _ = make(1)
    num_entities = kb["entity"].num_nodes
    chosen = None if columns is None else torch.randperm(num_entities)[:columns]
    entity = torch.arange(num_entities).repeat(2)
    rel = torch.arange(2 * num_entities) % len(kb.edge_types)
    queries = Queries(entity, rel, side)
    grads = []
    for is_slow in (False, True):
        torch.manual_seed(0)
        expert = EvidenceExpert(kb, rules).double()
        with torch.no_grad():
            expert.weight.normal_()
        candidates = torch.arange(num_entities) if chosen is None else chosen
        if is_slow:
            triples = queries.triples(candidates.expand(len(rel), -1))
            scores = expert(*(i.flatten() for i in triples)).view(len(rel), -1)
        else:
            scores = expert.score_all(queries, num_entities, chosen)
        torch.logsumexp(scores, dim=1).sum().backward()
        grads.append(expert.weight.grad)
    torch.testing.assert_close(*grads, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_of_facts_is_what_would_be_found(seed):
    triples, kb, _, found = make(seed)
    asked = every_triple(kb)
    before = found.own(*asked)
    expected = found.pairs(*asked) - found.pairs(*asked, leave_own=True)
    np.testing.assert_array_equal(before, expected)
    assert before.any() == bool(triples)
    found.remember()
    assert (found._own is not None) == bool(triples)
    np.testing.assert_array_equal(found.own(*asked), before)


def test_a_fact_is_no_example_of_itself():
    # Both have the award, and both the nationality: two examples, each of which has
    # only one other, which is too few.
    triples = [(0, 0, 2), (1, 0, 2), (0, 1, 3), (1, 1, 3)]
    kb = as_kb(triples, 4, 2)
    expert = EvidenceExpert(kb, mine_rules(kb))
    head, rel, tail = (torch.tensor([i]) for i in (0, 1, 3))
    values = expert.features.pairs(*(i.numpy() for i in (head, rel, tail)))
    assert values[0, 0] > 0
    own = expert.own_evidence(head, rel, tail)
    left = expert(head, rel, tail) - own
    values = expert.features.pairs(*(i.numpy() for i in (head, rel, tail)), True)
    assert values[0, 0] == 0
    torch.testing.assert_close(left, torch.tensor([0.05 * values[0, 4:].sum()]))


@pytest.mark.parametrize("seed", range(3))
def test_bodies_may_be_believed_as_they_are(seed):
    # Without its only fact, nothing is left of a relation to divide by.
    triples, num_entities, num_relations = naive.random_kb(random.Random(seed))
    triples = [*triples, (0, num_relations, 1)]
    kb = as_kb(triples, num_entities, num_relations + 2)
    rules = mine_rules(kb)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = EvidenceFeatures(kb, rules, shrinkage=0.0)
    facts = tuple(np.array(column) for column in zip(*sorted(set(triples))))
    choices = twin.Choices(shrinkage=0.0)
    for leave_own in (False, True):
        found = features.pairs(*facts, leave_own)
        for values, fact in zip(found, zip(*facts)):
            given = triples, path_rules(rules), *fact, choices, leave_own
            head, tail, path, *usual = twin.triple_features(*given)
            expected = [head, tail, max(head, path), max(tail, path), *usual]
            np.testing.assert_allclose(values, expected, rtol=1e-5)
    difference = features.pairs(*facts) - features.pairs(*facts, True)
    np.testing.assert_allclose(features.own(*facts), difference, atol=1e-6)


def test_explanations_say_how_usual_both_ends_are():
    triples = [(0, 0, 3), (0, 0, 4), (1, 0, 3), (1, 0, 3), (2, 0, 5)]
    kb = as_kb(triples, 6, 1)
    expert = EvidenceExpert(kb, mine_rules(kb))
    of_tail, of_head = expert.parts(0, 0, 3)[-2:]
    assert of_tail.note[0] == "true for 2 of 3 heads of "
    assert of_head.note[0] == "true for 2 of 3 tails of "
    assert (of_tail.details["support"], of_tail.details["body"]) == (2, 3)
    assert of_tail.details["fraction"] == pytest.approx(2 / 8)
    assert of_head.details["fraction"] == pytest.approx(2 / 8)
    of_tail, of_head = expert.parts(3, 0, 0)[-2:]
    assert of_tail.note[0] == "true for 0 of 3 heads of "
    assert of_head.details["fraction"] == 0


def test_hubs_are_left_out_and_it_is_said(caplog):
    triples = [(0, 0, i) for i in range(1, 30)] + [(1, 0, 2), (3, 0, 2)]
    kb = as_kb(triples, 30, 1)
    with caplog.at_level("INFO"):
        found = EvidenceFeatures(kb, mine_rules(kb), max_degree=10)
    assert "1 entity with more than 10 features" in caplog.text
    assert found.evidence.rules.counted.sum() == 29


def test_too_many_rules_raise_the_support(caplog):
    kb = Families()[0]
    rules = mine_rules(kb)
    everything = EvidenceFeatures(kb, rules)
    with caplog.at_level("INFO"):
        found = EvidenceFeatures(kb, rules, max_rules=len(everything) // 3)
    assert 0 < len(found) <= len(everything) // 3
    assert found.evidence.rules.support.min() == found.evidence.choices.least > 2
    assert "are kept" in caplog.text


def test_rules_without_confidences_are_refused_or_mined(caplog):
    kb = Families()[0]
    rules = mine_rules(kb, confidences=False)
    with pytest.raises(ValueError, match="PCA confidences"):
        EvidenceFeatures(kb, rules)
    with caplog.at_level("INFO"):
        model = KBLRN.from_data(kb, "re", rules=rules)
    assert "uses mined ones" in caplog.text
    assert model.experts["relational"].features.rules is rules


def test_learned_weights_answer_better():
    from kblrn_pyg.evaluation import evaluate
    from kblrn_pyg.training import fit

    train, val, test = (
        Families()[0],
        Families(split="val")[0],
        Families(split="test")[0],
    )
    model = KBLRN.from_data(train, "e", num_negatives=None)
    before = evaluate(model, val, [test]).metrics().mrr
    fit(model, train, epochs=2, lr=0.05)
    after = evaluate(model, val, [test]).metrics().mrr
    assert before > 0.5
    assert after > before + 0.02


def test_wrong_ids_are_refused():
    kb = Families()[0]
    expert = EvidenceExpert(kb, mine_rules(kb))
    number = kb["entity"].num_nodes
    for queries, candidates in (
        (Queries(torch.tensor([number]), torch.tensor([0]), "tail"), [[0]]),
        (Queries(torch.tensor([0]), torch.tensor([99]), "head"), [[0]]),
        (Queries(torch.tensor([0]), torch.tensor([0]), "head"), [[number]]),
    ):
        with pytest.raises((ValueError, IndexError)):
            expert.score_candidates(queries, torch.tensor(candidates))
    with pytest.raises((ValueError, IndexError)):
        expert(torch.tensor([0]), torch.tensor([0]), torch.tensor([-1]))
