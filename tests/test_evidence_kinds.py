"""Evidence of different kinds, against a slow twin on random knowledge bases."""

import random

import naive_evidence as twin
import numpy as np
import pytest
import torch
from test_evidence import SEEDS, every_triple, make, path_rules
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.datasets import Families
from kblrn_pyg.nn import EvidenceExpert
from kblrn_pyg.rules import mine_rules
from kblrn_pyg.rules.evidence_kinds import KindFeatures


def named_pairs(kinds):
    """The predicted code and the kind of each weight."""
    code = np.repeat(np.arange(len(kinds.kinds.ptr) - 1), np.diff(kinds.kinds.ptr))
    return list(zip(code.tolist(), kinds.kinds.kind.tolist()))


def random_expert(kb, rules, seed=0, **kwargs):
    expert = EvidenceExpert(kb, rules, kinds=True, **kwargs)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in expert.parameters():
            parameter.normal_(generator=generator)
    return expert


def random_triples(kb, seed, number=20):
    every = list(zip(*every_triple(kb)))
    return random.Random(seed).sample(every, min(number, len(every)))


@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_code_and_kind_that_a_rule_has_is_a_pair(seed, least):
    triples, kb, _, features = make(seed, least)
    num_relations = len(kb.edge_types)
    rules = twin.constant_rules(triples, least)
    expected = {(g[0], twin.kind_of(f, num_relations)) for f, g in rules}
    found = KindFeatures(features)
    assert named_pairs(found) == sorted(expected)
    assert len(found) == len(expected)


@pytest.mark.parametrize("what", ["whole", "left", "own"])
@pytest.mark.parametrize("seed", SEEDS)
def test_kinds_of_triples_are_those_of_the_twin(seed, what):
    max_degree = 8 if seed % 3 == 0 else 10_000
    given = {"shrinkage": 1.0 + seed, "floor": 0.1 / (1 + seed)}
    triples, kb, _, features = make(seed, 1 + seed % 2, max_degree, **given)
    choices = twin.Choices(1 + seed % 2, max_degree, **given)
    kinds = KindFeatures(features)
    names, num_relations = named_pairs(kinds), len(kb.edge_types)
    asked = every_triple(kb)
    facts = set(triples)
    is_fact = [tuple(map(int, one)) in facts for one in zip(*asked)]
    others = random.Random(seed).sample(range(len(is_fact)), min(60, len(is_fact)))
    some = [*others, *np.flatnonzero(is_fact)[:40]]
    h, r, t = (index[some] for index in asked)
    found = kinds.pairs(h, r, t, what)
    for i, triple in enumerate(zip(h.tolist(), r.tolist(), t.tolist())):
        own = slice(found.ptr[i], found.ptr[i + 1])
        values = {names[p]: s for p, s in zip(found.pair[own], found.strength[own])}
        assert len(values) == own.stop - own.start
        whole, left = (
            twin.triple_kinds(triples, *triple, num_relations, choices, leave_own)
            for leave_own in (False, True)
        )
        slow = {"whole": whole, "left": left}.get(what)
        if slow is None:
            slow = {name: whole[name] - left.get(name, 0.0) for name in whole}
        for name in {*values, *slow}:
            fast = values.get(name, 0.0)
            np.testing.assert_allclose(fast, slow.get(name, 0.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_scores_are_those_of_the_twin(seed):
    triples, kb, rules, _ = make(seed)
    expert = random_expert(kb, rules, seed)
    weight = expert.weight.tolist()
    of_kind = dict(zip(named_pairs(expert.kinds), expert.weight_of_kinds().tolist()))
    some = random_triples(kb, seed) + triples[:20]
    index = [torch.tensor([int(one[i]) for one in some]) for i in range(3)]
    scores, own = expert(*index).tolist(), expert.own_evidence(*index).tolist()
    for i, triple in enumerate(zip(*(one.tolist() for one in index))):
        slow = []
        for leave_own in (False, True):
            a, b, c, *usual = twin.triple_features(
                triples, path_rules(rules), *triple, leave_own=leave_own
            )
            six = [a, b, max(a, c), max(b, c), *usual]
            total = sum(w * x for w, x in zip(weight[triple[1]], six))
            kinds = twin.triple_kinds(
                triples, *triple, len(kb.edge_types), leave_own=leave_own
            )
            slow.append(total + sum(of_kind[name] * x for name, x in kinds.items()))
        np.testing.assert_allclose(scores[i], slow[0], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(scores[i] - own[i], slow[1], rtol=1e-4, atol=1e-4)


def every_query(kb, side, seed=0):
    num_entities, num_relations = kb["entity"].num_nodes, len(kb.edge_types)
    entity, rel = (i.ravel() for i in np.indices((num_entities, num_relations)))
    order = np.random.default_rng(seed).permutation(len(rel))
    return Queries(*(torch.from_numpy(i[order]) for i in (entity, rel)), side)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", SEEDS)
def test_three_ways_of_scoring_agree(seed, side):
    _, kb, rules, _ = make(seed)
    expert = random_expert(kb, rules, seed)
    num_entities = kb["entity"].num_nodes
    queries = every_query(kb, side, seed)
    close = {"rtol": 1e-4, "atol": 1e-4}
    # Some candidates are there twice.
    generator = torch.Generator().manual_seed(seed)
    shape = len(queries), num_entities + 3
    candidates = torch.randint(num_entities, shape, generator=generator)
    triples = [index.flatten() for index in queries.triples(candidates)]
    scores = expert(*triples).view(shape)
    found = expert.score_candidates(queries, candidates)
    torch.testing.assert_close(found, scores, **close)
    whole = expert.score_all(queries, num_entities)
    torch.testing.assert_close(whole.gather(1, candidates), scores, **close)
    for size in (max(1, num_entities // 2), 1, num_entities):
        columns = torch.randperm(num_entities, generator=generator)[:size]
        some = expert.score_all(queries, num_entities, columns)
        torch.testing.assert_close(some, whole[:, columns], **close)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept_of_facts_is_what_would_be_found(seed, monkeypatch):
    triples, kb, _, features = make(seed)
    kinds = KindFeatures(features)
    asked = every_triple(kb)
    before = kinds.pairs(*asked, what="own")
    kinds.remember()
    assert (kinds._own is not None) == bool(triples)
    for fast, slow in zip(kinds.pairs(*asked, what="own"), before):
        np.testing.assert_array_equal(fast, slow)
    # What would take too much memory is not kept, and looked for once only.
    monkeypatch.setattr("kblrn_pyg.rules.evidence_kinds._MAX_KEPT", 0)
    other = KindFeatures(features)
    other.remember()
    assert other._own is None or len(before.pair) == 0
    assert other._is_too_much == (len(before.pair) > 0)


@pytest.mark.parametrize("max_kept", [0, 1, 1_000_000_000])
@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("side", SIDES)
def test_gradients_are_those_of_differences(side, columns, max_kept, monkeypatch):
    limit = "kblrn_pyg.rules.evidence_kinds._MAX_KEPT_OF_QUERIES"
    monkeypatch.setattr(limit, max_kept)
    monkeypatch.setattr("kblrn_pyg.rules.evidence_kinds._QUERIES_AT_ONCE", 4)
    _, kb, rules, _ = make(1)
    expert = random_expert(kb, rules).double()
    num_entities = kb["entity"].num_nodes
    queries = every_query(kb, side)
    chosen = None if columns is None else torch.randperm(num_entities)[:columns]
    candidates = torch.randint(num_entities, (len(queries), 4))
    triples = [index.flatten() for index in queries.triples(candidates)]
    ways = (
        lambda: expert.score_all(queries, num_entities, chosen),
        lambda: expert.score_candidates(queries, candidates),
        lambda: expert(*triples),
        lambda: expert.own_evidence(*triples),
    )
    for way in ways:
        coefficient = torch.randn_like(way())
        expert.zero_grad()
        (way() * coefficient).sum().backward()
        for parameter in (expert.weight, expert.kind_weight):
            # Scores are linear in weights: any step shows the gradient.
            step = torch.randn_like(parameter)
            before = (way() * coefficient).sum()
            with torch.no_grad():
                parameter += step
            after = (way() * coefficient).sum()
            expected = (parameter.grad * step).sum()
            torch.testing.assert_close(after - before, expected, rtol=1e-5, atol=1e-5)
            with torch.no_grad():
                parameter -= step


def test_untrained_scores_are_those_without_kinds():
    kb = Families()[0]
    rules = mine_rules(kb)
    new, old = EvidenceExpert(kb, rules, kinds=True), EvidenceExpert(kb, rules)
    assert list(old.state_dict()) == ["weight"]
    assert new.fingerprint() != old.fingerprint()
    queries = Queries(torch.arange(50), torch.arange(50) % len(kb.edge_types), "head")
    scores = (one.score_all(queries, kb["entity"].num_nodes) for one in (new, old))
    torch.testing.assert_close(*scores, rtol=0, atol=0)
    fact = 3, 1, 4
    assert new.parts(*fact) == old.parts(*fact)


@pytest.mark.parametrize("seed", SEEDS)
def test_explanations_add_up(seed):
    triples, kb, rules, _ = make(seed)
    expert = random_expert(kb, rules, seed)
    some = random_triples(kb, seed) + triples[:20]
    for triple in some:
        h, r, t = (int(i) for i in triple)
        index = (torch.tensor([i]) for i in (h, r, t))
        parts = expert.parts(h, r, t)
        total = sum(part.contribution for part in parts)
        np.testing.assert_allclose(total, expert(*index).item(), rtol=1e-4, atol=1e-4)
        words = [part.words for part in parts]
        assert len(set(words)) == len(words)


def test_explanations_are_short_and_name_the_rest():
    kb = Families()[0]
    expert = random_expert(kb, mine_rules(kb))
    facts = zip(*(index[::97].tolist() for index in flat_triples(kb)))
    others = []
    for triple in facts:
        parts = expert.parts(*triple)
        assert len(parts) <= 2 + 1 + 6 + 1 + 2
        others += [part for part in parts if part.words == ("other rules",)]
    assert others
    assert all(part.details["number"] > 0 for part in others)


def test_model_file_keeps_kinds(tmp_path):
    kb = Families()[0]
    model = KBLRN.from_data(kb, "e", num_negatives=None, evidence_kinds=True)
    with torch.no_grad():
        model.experts["evidence"].kind_weight.normal_()
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert again.settings.evidence_kinds
    assert again.fingerprint() == model.fingerprint()
    queries = Queries(torch.arange(9), torch.zeros(9, dtype=torch.long), "tail")
    torch.testing.assert_close(again.score_all(queries), model.score_all(queries))


def test_files_of_before_are_without_kinds(tmp_path, monkeypatch):
    kb = Families()[0]
    old = KBLRN.from_data(kb, "e", num_negatives=None, evidence_kinds=False)
    expert = old.experts["evidence"]
    args, kwargs = expert.arguments
    expert.__dict__["arguments"] = args[:5], kwargs  # what there was before
    monkeypatch.setattr(KBLRN, "config", {"experts": "e", "num_negatives": None})
    old.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert again.experts["evidence"].kinds is None
    assert again.fingerprint() == old.fingerprint()
    assert not again.settings.evidence_kinds


def test_a_fact_is_no_example_of_any_kind():
    # Two examples of each rule, one of which is the fact itself.
    triples = [(0, 0, 2), (1, 0, 2), (0, 1, 3), (1, 1, 3)]
    kb = as_kb(triples, 4, 2)
    expert = EvidenceExpert(kb, mine_rules(kb), kinds=True)
    index = [torch.tensor([i]) for i in (0, 1, 3)]
    whole = expert.kinds.pairs(*(i.numpy() for i in index))
    left = expert.kinds.pairs(*(i.numpy() for i in index), what="left")
    assert len(whole.pair) > 0
    assert len(left.pair) == 0
    without = expert(*index) - expert.own_evidence(*index)
    with torch.no_grad():
        expert.kind_weight.fill_(7.0)
    torch.testing.assert_close(expert(*index) - expert.own_evidence(*index), without)


@pytest.mark.parametrize("what", ["whole", "left"])
def test_a_loop_is_no_evidence_for_itself_from_its_other_end(what):
    # Who likes 0 is liked by 0, which does not say that 0 likes itself.
    friends = [(i, 0, 0) for i in range(1, 5)] + [(0, 0, i) for i in range(1, 5)]
    triples = [*friends, (0, 0, 0)]
    kb = as_kb(triples, 5, 1)
    kinds = EvidenceExpert(kb, mine_rules(kb), kinds=True).kinds
    names = named_pairs(kinds)
    found = kinds.pairs(*np.zeros((3, 1), np.int64), what)
    values = {names[pair]: one for pair, one in zip(found.pair, found.strength)}
    slow = twin.triple_kinds(triples, 0, 0, 0, 1, leave_own=what == "left")
    assert values == pytest.approx(slow, rel=1e-5)


def test_learning_is_no_worse_with_kinds():
    from kblrn_pyg.evaluation import evaluate
    from kblrn_pyg.training import fit, seed_all

    splits = (Families(split=name)[0] for name in ("train", "val", "test"))
    train, val, test = splits
    mrr = []
    for kinds in (False, True):
        seed_all(0)
        model = KBLRN.from_data(train, "e", num_negatives=None, evidence_kinds=kinds)
        fit(model, train, epochs=4, lr=0.01)
        mrr.append(evaluate(model, val, [test]).metrics().mrr)
    assert mrr[1] > mrr[0]


def test_wrong_ids_are_refused():
    kb = Families()[0]
    expert = EvidenceExpert(kb, mine_rules(kb), kinds=True)
    zero, wrong = np.array([0]), np.array([kb["entity"].num_nodes])
    with pytest.raises(ValueError, match="ids of tail"):
        expert.kinds.pairs(zero, zero, wrong)
    with pytest.raises(ValueError, match="ids of entity"):
        expert.kinds.asked(("tail", wrong, zero))
    with pytest.raises(ValueError, match="ids of candidates"):
        expert.kinds.asked(("tail", zero, zero), candidates=wrong[:, None])
    with pytest.raises(ValueError, match="'what' must be"):
        expert.kinds.pairs(zero, zero, zero, what="all")


def test_pairs_have_distinct_keys_with_bins_of_numbers():
    train = Families()[0]
    settings = {"evidence_kinds": True, "evidence_bins": 16}
    model = KBLRN.from_data(train, "e", num_negatives=None, **settings)
    assert (np.diff(model.experts["evidence"].kinds.keys()) > 0).all()
