"""Predictions equal a softmax and a search by brute force, and have names."""

import csv
import io
import itertools
import json
import math
import random
import subprocess
import sys
from collections import defaultdict
from functools import partial

import naive
import pytest
import torch
from scripts import run
from test_mining import as_kb
from torch_geometric.data import HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import (
    DataError,
    ask,
    flat_triples,
    make_kb,
    single_valued,
    unify_types,
)
from kblrn_pyg.data import candidates as candidates_module
from kblrn_pyg.datasets import Families
from kblrn_pyg.nn import INSTANCES
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.predict import Predictions, complete, predict_heads, predict_tails
from kblrn_pyg.predict import answers as scores_module
from kblrn_pyg.rules import mine_rules

SEEDS = range(8)


def columns(triples):
    flat = torch.tensor(triples, dtype=torch.long).reshape(-1, 3).t()
    return tuple(column.contiguous() for column in flat)


def make(kb, experts="lrn", **kwargs):
    """A model of a tiny knowledge base whose scores differ enough to matter."""
    num_nodes = kb["entity"].num_nodes
    generator = torch.Generator().manual_seed(0)
    kb["entity"].x = torch.randn(num_nodes, 2, generator=generator).double()
    kb.attribute_names = ["a", "b"]
    torch.manual_seed(0)
    rules = mine_rules(kb) if "r" in experts else None
    if "l" in experts:
        kwargs = {"hidden_channels": 6, "dropout": 0.5, **kwargs}
    if "n" in experts:
        kwargs = {"threshold": 0.3, **kwargs}
    model = KBLRN.from_data(kb, experts, rules=rules, **kwargs).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def tiny(seed, experts="lrn"):
    """A model, its known facts, and one more split with facts of its own."""
    rng = random.Random(seed)
    triples, num_nodes, num_relations = naive.random_kb(rng)
    known = [triple for triple in triples if rng.random() < 0.8]
    kb = as_kb(known, num_nodes, num_relations)
    others = [triple for triple in triples if triple not in known]
    return make(kb, experts), set(known), others, ask(kb, columns(others))


@torch.no_grad()
def brute_force(model):
    """(h, r, t) -> score, probability of the tail, probability of the head."""
    model.eval()
    nodes, relations = range(model.num_nodes), range(model.num_relations)
    triples = list(itertools.product(nodes, relations, nodes))
    scores = dict(zip(triples, model(*columns(triples)).tolist()))
    of_head, of_tail = defaultdict(float), defaultdict(float)
    for (h, r, t), score in scores.items():
        of_head[h, r] += math.exp(score)
        of_tail[r, t] += math.exp(score)
    return {
        (h, r, t): (
            score,
            math.exp(score) / of_head[h, r],
            math.exp(score) / of_tail[r, t],
        )
        for (h, r, t), score in scores.items()
    }


def ids(prediction):
    return prediction.head_id, prediction.relation_id, prediction.tail_id


@pytest.mark.parametrize("experts", INSTANCES)
def test_probabilities_equal_those_of_brute_force(experts):
    model, known, _, _ = tiny(10, experts)
    table = brute_force(model)
    nodes, relations = range(model.num_nodes), range(model.num_relations)
    for r, e in itertools.product(relations, nodes):
        for found, side in (
            (predict_tails(model, e, r, k=99), 1),
            (predict_heads(model, r, e, k=99), 2),
        ):
            assert len(found) == model.num_nodes
            assert sum(p.probability for p in found) == pytest.approx(1)
            for prediction in found:
                row = table[ids(prediction)]
                assert prediction.score == pytest.approx(row[0], abs=1e-6)
                assert prediction.probability == pytest.approx(row[side], abs=1e-6)
                assert prediction.known == (ids(prediction) in known)
            answers = [p.tail_id if side == 1 else p.head_id for p in found]
            assert sorted(answers) == list(nodes)
            given = {p.head_id if side == 1 else p.tail_id for p in found}
            assert given == {e}
            assert [p.rank for p in found] == list(range(1, model.num_nodes + 1))
            scores = [p.score for p in found]
            assert scores == sorted(scores, reverse=True)


def test_k_takes_the_first_and_ties_go_by_id():
    kb = as_kb([(0, 0, 1)], 6, 1)
    model = KBLRN.from_data(kb, "r")  # without a rule, all scores are zero
    assert [p.tail_id for p in predict_tails(model, 0, 0)] == [0, 1, 2, 3, 4, 5]
    model = make(kb, "l")
    whole = predict_tails(model, 0, 0)
    assert predict_tails(model, 0, 0, k=2).predictions == whole.predictions[:2]


@pytest.mark.parametrize("seed", SEEDS)
def test_novel_leaves_known_facts_out_and_changes_nothing_else(seed):
    model, known, others, split = tiny(seed)
    for given, facts in (((), known), ([split], known | set(others))):
        for e in range(model.num_nodes):
            for ask_model in (
                partial(predict_tails, model, e, 0, 99),
                partial(predict_heads, model, 0, e, 99),
            ):
                whole = ask_model(known=given)
                assert [p.known for p in whole] == [ids(p) in facts for p in whole]
                novel = ask_model(known=given, novel=True)
                expected = [p for p in whole if not p.known]
                assert list(map(ids, novel)) == list(map(ids, expected))
                assert [(p.score, p.probability) for p in novel] == [
                    (p.score, p.probability) for p in expected
                ]
                assert [p.rank for p in novel] == list(range(1, len(novel) + 1))


def test_what_is_known_comes_from_both_edges_of_other_splits():
    kb = as_kb([(0, 0, 1)], 5, 1)
    model = make(kb, "l")
    other = ask(as_kb([(0, 0, 2)], 5, 1), columns([(0, 0, 3)]))
    found = predict_tails(model, 0, 0, known=(split for split in [other]))
    assert {p.tail_id for p in found if p.known} == {1, 2, 3}
    model.known = (other,)
    assert {p.tail_id for p in predict_tails(model, 0, 0) if p.known} == {1, 2, 3}
    model.known = ()
    # What the knowledge base of the model asks about is no fact of it.
    model.kb = ask(kb, columns([(0, 0, 4)]))
    assert {p.tail_id for p in predict_tails(model, 0, 0) if p.known} == {1}


def assert_same(found, expected):
    """Rows that are scored together may differ in the last digit."""
    assert list(map(ids, found)) == list(map(ids, expected))
    for one, other in zip(found, expected):
        assert one.score == pytest.approx(other.score)
        assert one.probability == pytest.approx(other.probability)
        assert (one.known, one.rank) == (other.known, other.rank)
        assert one.experts == other.experts
        assert one.calibrated == pytest.approx(other.calibrated)


def test_what_is_known_is_checked_once():
    kb = as_kb([(0, 0, 1), (1, 0, 2)], 4, 1)
    model = KBLRN.from_data(kb, "l", 4)
    model.known = (ask(kb, tuple(torch.tensor([[0], [0], [3]]))),)
    facts = model.known_facts
    assert [one.known for one in model.predict_tails(0, 0, k=4)].count(True) == 2
    assert model.known_facts is facts
    other = ask(kb, tuple(torch.tensor([[0], [0], [2]])))
    found = model.predict_tails(0, 0, k=4, known=[other])
    assert [one.known for one in found].count(True) == 3
    assert model.known_facts is facts
    kb[kb.edge_types[0]].edge_index = torch.tensor([[0, 0], [0, 1]])  # is seen
    assert [one.known for one in model.predict_tails(0, 0, k=4)].count(True) == 3
    model.known = ()
    assert [one.known for one in model.predict_tails(0, 0, k=4)].count(True) == 2
    model.kb = as_kb([(0, 0, 3)], 4, 1)
    assert [one.known for one in model.predict_tails(0, 0, k=4)].count(True) == 1


def test_several_queries_equal_single_ones(monkeypatch):
    model, _, _, split = tiny(10)
    slope = torch.linspace(0.5, 2.0, model.num_relations)
    model.calibration = Calibration(slope, slope - 1, torch.ones_like(slope).long())
    entities, words = [2, 0, 2, 5, 1], {"k": 4, "known": [split], "novel": True}
    relations = [0, 1, 1, 0, 2]
    monkeypatch.setattr(scores_module, "_TRIPLES", 3)
    for num_scores in (1, 2 * model.num_nodes, 1 << 22):
        monkeypatch.setattr(scores_module, "_SCORES", num_scores)
        for rel in (1, relations):
            rels = rel if isinstance(rel, list) else [rel] * 5
            tails = predict_tails(model, entities, rel, **words)
            heads = predict_heads(model, rel, entities, **words)
            assert len(tails) == len(heads) == 5
            for e, r, of_tail, of_head in zip(entities, rels, tails, heads):
                assert_same(of_tail, predict_tails(model, e, r, **words))
                assert_same(of_head, predict_heads(model, r, e, **words))
    assert predict_tails(model, [], 0) == []
    assert len(predict_tails(model, (3,), 0)) == 1


def test_chunks_are_small(monkeypatch):
    model, _, _, _ = tiny(10)
    sizes, score_tails = [], model.score_tails

    def noting(head_index, rel_type):
        sizes.append(len(head_index))
        return score_tails(head_index, rel_type)

    monkeypatch.setattr(model, "score_tails", noting)
    monkeypatch.setattr(scores_module, "_SCORES", 3 * model.num_nodes + 1)
    predict_tails(model, [0] * 8, 0)
    assert sizes == [3, 3, 2]


@pytest.mark.parametrize("training", [True, False])
def test_dropout_does_not_matter_and_training_goes_on(training):
    model, _, _, _ = tiny(10)
    model.train(training)
    first = predict_tails(model, 0, 0)
    assert predict_tails(model, 0, 0) == first
    assert complete(model) == complete(model)
    assert model.training == training
    scores = model.score_tails(torch.tensor([0]), torch.tensor([0]))
    assert scores.requires_grad
    model.score_all = None
    with pytest.raises(TypeError):
        predict_tails(model, 0, 0)
    assert model.training == training


@pytest.fixture(scope="module")
def families():
    torch.manual_seed(0)
    return KBLRN.from_data(Families()[0], "lrn", hidden_channels=8)


def test_names_and_ids_mean_the_same(families):
    names = families.kb["entity"].name
    ada, likes = names.index("Ada Crowgarth"), 2
    found = predict_tails(families, "Ada Crowgarth", "likes")
    assert found == predict_tails(families, ada, likes)
    assert found == predict_tails(families, torch.tensor(ada), torch.tensor(likes))
    assert found == families.predict_tails("ada crowgarth", "likes")
    for prediction in found:
        assert prediction.head == "Ada Crowgarth"
        assert prediction.relation == "likes"
        assert prediction.tail == names[prediction.tail_id]
    heads = predict_heads(families, "born_in", "Quarstead", k=3, novel=True)
    assert heads == families.predict_heads("born_in", "Quarstead", 3, True)
    assert [p.head for p in heads] == [names[p.head_id] for p in heads]
    assert not any(p.known for p in heads)


def test_shared_names_are_told_apart():
    identifiers, labels = ["/m/1", "/m/2", "/m/3"], ["Paris", "Paris", "Rome"]
    known = columns([(0, 0, 2)])
    kb = make_kb(labels, ["twin"], known, identifiers=identifiers)
    model = make(kb, "l")
    found = predict_heads(model, "twin", "Rome")
    assert {p.head for p in found} == {"Paris (/m/1)", "Paris (/m/2)", "Rome"}
    for prediction in found:
        again = predict_tails(model, prediction.head, "twin")
        assert {p.head_id for p in again} == {prediction.head_id}
    with pytest.raises(DataError, match=r"'Paris' is ambiguous, .* /m/1, /m/2"):
        predict_tails(model, "Paris", "twin")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, r"'k' must be positive \(got 0\)"),
        ({"k": 1.5}, r"'k' must be an integer \(got 1.5\)"),
        ({"head": 2232}, r"the id of the entity must lie in 0 to 2231 \(got 2232\)"),
        ({"head": -1}, r"must lie in 0 to 2231 \(got -1\)"),
        ({"relation": 12}, r"the id of the relation must lie in 0 to 11 \(got 12\)"),
        ({"head": 0.5}, r"the entity must be a name or an id \(got 0.5\)"),
        ({"relation": [1, 2]}, r"the relation must be a name or an id \(got \[1, 2\]"),
        (
            {"head": [0, 1, 2], "relation": [1, 2]},
            r"'relation' must be one, or as many as there are entities, 3 \(got 2\)",
        ),
        ({"head": "Ada"}, "unknown entity 'Ada', nearest are Ada Crowgarth"),
        ({"relation": "like"}, "unknown relation 'like', nearest are likes"),
        ({"known": Families()[0]}, "'known' must be a list of them"),
        ({"known": [as_kb([], 5, 1)]}, "'known' must be over the entities and"),
    ],
)
def test_mistakes(families, change, message):
    words = {"head": "Ada Crowgarth", "relation": "likes", **change}
    with pytest.raises(ValueError, match=message):
        predict_tails(families, **words)
    with pytest.raises(ValueError, match=message):
        predict_heads(families, tail=words.pop("head"), **words)


def test_models_that_cannot_predict():
    model, _, _, _ = tiny(10)
    model.experts["latent"].scorers[0].kge.node_emb.weight.data[3] = torch.nan
    with pytest.raises(ValueError, match=r"must be numbers \(got NaN: \(0, r0, \?\)"):
        predict_tails(model, 0, 0)
    model.kb = None
    for function, ids_of_query in (
        (predict_tails, (0, 0)),
        (predict_heads, (0, 0)),
        (complete, ()),
    ):
        with pytest.raises(ValueError, match="'model' must know its knowledge base"):
            function(model, *ids_of_query)


def assert_rows(rows, found):
    """Compares what was read with what was written, field by field."""
    assert len(rows) == len(found) > 0
    for row, prediction in zip(rows, found):
        assert list(row) == list(vars(prediction))
        for name, value in vars(prediction).items():
            kind = type(value)
            if value is None:
                assert row[name] in (None, "")
            elif kind is bool:
                assert str(row[name]) == str(value)
            else:
                assert kind(row[name]) == value


def test_csv_and_json_parse_back():
    labels = ['He said "no", twice', "line\nend", "Ærø, DK", "plain"]
    kb = make_kb(labels, ["r,1"], columns([(0, 0, 1)]))
    found = predict_tails(make(kb, "l"), 0, 0)
    assert_rows(list(csv.DictReader(io.StringIO(found.to_csv()))), found)
    assert_rows(json.loads(json.dumps(found.to_json())), found)
    assert {p.tail for p in found} == set(labels)


def test_table():
    kb = make_kb(["Ada", "Ben"], ["knows"], columns([(0, 0, 1)]))
    model = make(kb, "l")
    model.experts["latent"].scorers[0].kge.node_emb.weight.data[0] = (
        0  # so that scores are zero
    )
    lines = str(predict_tails(model, "Ada", "knows")).splitlines()
    assert lines == [
        "rank  head  relation  tail  probability  score  experts  known",
        "   1  Ada   knows     Ada        0.5000  0.000  none     no",
        "   2  Ada   knows     Ben        0.5000  0.000  none     yes",
    ]
    assert repr(predict_tails(model, "Ada", "knows")) == "Predictions(2)"
    assert str(Predictions(())).split() == lines[0].split()


@pytest.mark.parametrize("seed", range(4))
def test_experts_spoke_if_they_have_a_score(seed):
    model, _, _, _ = tiny(seed, "lrn")
    letters = {"latent": "l", "relational": "r", "numerical": "n"}
    for prediction in [*predict_tails(model, 0, 0, k=99), *complete(model, k=20)]:
        ids = prediction.head_id, prediction.relation_id, prediction.tail_id
        triple = [torch.tensor([i]) for i in ids]
        spoke = [letters[n] for n, e in model.experts.items() if e(*triple).item()]
        assert prediction.experts == "".join(spoke)


def naive_single(known, r, side, least=None):
    """Whether nearly all queries that facts answer have one answer."""
    answers = {}
    for h, s, t in known:
        given, answer = (h, t) if side == "tail" else (t, h)
        if s == r:
            answers.setdefault(given, set()).add(answer)
    single = sum(len(found) == 1 for found in answers.values())
    least = candidates_module._LEAST_QUERIES if least is None else least
    return len(answers) >= least and single >= 0.99 * len(answers)


def naive_only(table, known, facts, r, side, roles):
    """The one answer that each entity may get, None if it has one."""
    nodes = {h for h, _, _ in table}
    has_loops = any((e, r, e) in known for e in nodes)
    only = {}
    for given in nodes:
        best, answer = -1.0, None
        for other in sorted(roles[r, side]):
            triple = (given, r, other) if side == "tail" else (other, r, given)
            if other == given and not has_loops:
                continue
            probability = table[triple][1 if side == "tail" else 2]
            if probability > best:
                best, answer = probability, other
        has_one = any(
            s == r and (h if side == "tail" else t) == given for h, s, t in facts
        )
        only[given] = None if has_one else answer
    return only


def naive_missing(model, known, facts):
    """The definition of 'complete', word by word: (h, r, t) -> probability."""
    nodes, relations = range(model.num_nodes), range(model.num_relations)
    roles = {(r, "head"): {h for h, s, _ in known if s == r} for r in relations}
    roles |= {(r, "tail"): {t for _, s, t in known if s == r} for r in relations}

    def may_be_asked(entity, role):
        return entity in roles[role] or any(
            entity in others and 2 * len(others & roles[role]) >= len(others)
            for others in roles.values()
        )

    table = brute_force(model)
    only = {
        (r, side): naive_only(table, known, facts, r, side, roles)
        for r in relations
        for side in ("tail", "head")
        if naive_single(known, r, side)
    }
    found = {}
    for (h, r, t), (_, tail, head) in table.items():
        if only.get((r, "tail"), {}).get(h, t) != t:
            continue
        if only.get((r, "head"), {}).get(t, h) != h:
            continue
        has_loops = any((e, r, e) in known for e in nodes)
        if (h, r, t) in facts or (h == t and not has_loops):
            continue
        if t in roles[r, "tail"] and may_be_asked(h, (r, "head")):
            found[h, r, t] = tail
        if h in roles[r, "head"] and may_be_asked(t, (r, "tail")):
            found[h, r, t] = max(head, found.get((h, r, t), 0))
    return found


@pytest.mark.parametrize(
    ("seed", "least"),
    # With few queries, relations that have one answer on both sides are among them.
    [*((seed, 10**6) for seed in SEEDS), *((seed, 2) for seed in range(17))],
)
def test_complete_equals_brute_force(seed, least, monkeypatch):
    monkeypatch.setattr(scores_module, "_SCORES", 30)  # several chunks
    monkeypatch.setattr(candidates_module, "_LEAST_QUERIES", least)
    model, known, others, split = tiny(seed)
    for given, facts in (((), known), ([split], known | set(others))):
        expected = naive_missing(model, known, facts)
        found = complete(model, 10**6, known=given)
        assert set(map(ids, found)) == set(expected)
        assert len(found) == len(expected)
        for prediction in found:
            assert prediction.probability == pytest.approx(
                expected[ids(prediction)], abs=1e-6
            )
            assert not prediction.known
        order = [p.probability for p in found]
        assert order == sorted(order, reverse=True)
        assert [p.rank for p in found] == list(range(1, len(found) + 1))
        for k in (1, 7):
            best = complete(model, k, known=given)
            assert [p.probability for p in best] == order[:k]
            assert {ids(p) for p in best} <= set(expected)
    model.known = (split,)
    assert complete(model, 10**6) == found


def test_some_relations_of_tiny_knowledge_bases_are_single_valued():
    """On no side, on one, on both; and what is proposed for them differs."""
    sides = []
    for seed in range(24):
        known = naive.random_kb(random.Random(seed))[0]
        for r in {r for _, r, _ in known}:
            both = [naive_single(known, r, side, 2) for side in ("tail", "head")]
            sides.append(sum(both))
    assert min(sides.count(number) for number in (0, 1, 2)) >= 3


def test_a_single_answer_is_not_followed_by_a_second(families):
    single = single_valued(families.kb)
    names = families.vocabulary.relations
    born_in = names.resolve("born_in")
    assert single["tail"][born_in]
    assert not single["head"][born_in]
    found = complete(families, 300, relations=["born_in"])
    born = {
        h
        for h, r, _ in zip(*(c.tolist() for c in flat_triples(families.kb)))
        if r == born_in
    }
    heads = [p.head_id for p in found]
    assert len(set(heads)) == len(heads) > 0
    assert born.isdisjoint(heads)


def test_types_restrict_what_is_proposed():
    data = HeteroData()
    data["person"].num_nodes, data["city"].num_nodes = 6, 4
    data["person", "lives_in", "city"].edge_index = torch.tensor([[0, 1, 1], [1, 0, 1]])
    data["person", "knows", "person"].edge_index = torch.tensor([[0, 1], [1, 2]])
    kb = unify_types(data)
    model = make(kb, "l")
    known = set(zip(*(c.tolist() for c in flat_triples(kb))))
    found = {ids(p) for p in complete(model, 10**6, candidates="types")}
    people, cities = range(6), range(6, 10)
    wanted = {(h, 0, t) for h in people for t in cities}
    wanted |= {(h, 1, t) for h in people for t in people if h != t}
    assert found == wanted - known
    everything = {ids(p) for p in complete(model, 10**6, candidates="all")}
    wanted = {(h, r, t) for h in range(10) for r in (0, 1) for t in range(10) if h != t}
    assert everything == wanted - known
    with pytest.raises(ValueError, match="'candidates' must be one of"):
        complete(model, candidates="x")
    with pytest.raises(DataError, match="without node types"):
        complete(
            make(make_kb(["a"], ["r"], columns([(0, 0, 0)])), "l"), candidates="types"
        )


def test_least_probability(families):
    with pytest.raises(ValueError, match="not calibrated"):
        complete(families, 5, min_probability=0.5)
    row = torch.ones(families.num_relations, dtype=torch.double)
    middle = sorted(p.score for p in complete(families, 50))[25]
    families.calibration = Calibration(row, -middle * row, row.long())
    whole = complete(families, 50)
    some = complete(families, 50, min_probability=0.5)
    with pytest.raises(ValueError, match="0 to 1"):
        complete(families, 5, min_probability=2)
    families.calibration = None
    wanted = [ids(p) for p in whole if p.calibrated >= 0.5]
    assert [ids(p) for p in some] == wanted
    assert 0 < len(some) < len(whole)


def test_the_tiny_knowledge_bases_have_what_they_should():
    """Missing facts by either side, unseen entities that may be asked, loops."""
    found = dict.fromkeys(["tail", "head", "unseen", "loop", "nothing", "rest"], 0)
    for seed in SEEDS:
        model, known, _, _ = tiny(seed)
        table = brute_force(model)
        missing = naive_missing(model, known, known)
        heads = {(h, r) for h, r, _ in known}
        for triple, probability in missing.items():
            _, tail, head = table[triple]
            found["tail"] += probability == tail > head
            found["head"] += probability == head > tail
            found["unseen"] += triple[:2] not in heads
            found["loop"] += triple[0] == triple[2]
        found["rest"] += len(table) - len(known) - len(missing)
        found["nothing"] += not missing
    assert found["nothing"] < len(SEEDS) / 2
    del found["nothing"]
    assert min(found.values()) >= 10, found


def test_complete_some_relations(families):
    whole = complete(families, 20, relations=["neighbour_of", 7])
    assert len(whole) == 20
    assert {p.relation_id for p in whole} <= {10, 7}
    assert complete(families, 20, relations=[7, "neighbour_of", 7]) == whole
    facts = set(zip(*(index.tolist() for index in flat_triples(families.kb))))
    assert facts.isdisjoint(map(ids, whole))
    for mistake, message in (
        ({"relations": "likes"}, "'relations' must be a list"),
        ({"relations": ["lykes"]}, "unknown relation 'lykes'"),
        ({"relations": [12]}, "must lie in 0 to 11"),
        ({"k": 0}, "'k' must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            complete(families, **mistake)


def test_complete_shows_progress(capsys, monkeypatch):
    monkeypatch.setattr("kblrn_pyg.progress.LINE_SECONDS", 0.0)
    model, _, _, _ = tiny(10)
    complete(model, progress=True)
    assert "Completing: 100%" in capsys.readouterr().err
    complete(model)
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a small run."""
    path = tmp_path_factory.mktemp("runs") / "small"
    words = "--experts ln --hidden-channels 8 --num-negatives 20 --epochs 1"
    words += " --batch-size 4096 --threads 1 --lr 0.01"
    done = run("kblrn", "train", "Families", *words.split(), "--out", path)
    assert done.code == 0, done.err
    return path


def load(folder):
    from kblrn_pyg.runs import load_run

    model, splits, _ = load_run(folder)
    return model, [splits["val"], splits["test"]]


def test_predict_command(folder):
    model, others = load(folder)
    for query, found in (
        (
            ["ada crowgarth", "likes", "?"],
            predict_tails(model, "Ada Crowgarth", "likes", known=others),
        ),
        (
            ["?", "born_in", "Quarstead", "--k", "3", "--novel"],
            predict_heads(model, "born_in", "Quarstead", 3, True, others),
        ),
    ):
        done = run("kblrn", "predict", folder, *query)
        assert done.code == 0, done.err
        assert done.out == f"{found}\n"
        done = run("kblrn", "predict", folder, *query, "--format", "json")
        assert_rows(json.loads(done.out), found)
        done = run("kblrn", "predict", folder, *query, "--format", "csv")
        assert_rows(list(csv.DictReader(io.StringIO(done.out))), found)


def test_known_facts_of_all_splits(folder):
    _, others = load(folder)
    for data in (Families()[0], *others):
        head, rel, tail = (
            int(index[0]) for index in flat_triples(data, "edge_label_index")
        )
        names = data["entity"].name
        query = [names[head], data.edge_types[rel][1], "?", "--k", "2232"]
        done = run("kblrn", "predict", folder, *query, "--format", "json")
        rows = {row["tail_id"]: row["known"] for row in json.loads(done.out)}
        assert rows[tail] is True
        done = run("kblrn", "predict", folder, *query, "--format", "json", "--novel")
        assert tail not in {row["tail_id"] for row in json.loads(done.out)}


def test_complete_command(folder, tmp_path):
    model, others = load(folder)
    found = complete(model, 4, ["spouse", "likes"], others)
    words = ["--relation", "spouse", "--relation", "likes", "--k", "4"]
    done = run("kblrn", "complete", folder, *words)
    assert done.code == 0, done.err
    assert done.out == f"{found}\n"
    out = tmp_path / "new" / "found.csv"
    done = run("kblrn", "complete", folder, *words, "--out", out)
    assert done.out == f"saved {out}\n"
    assert_rows(list(csv.DictReader(io.StringIO(out.read_text("utf-8")))), found)
    out = out.with_suffix(".json")
    assert run("kblrn", "complete", folder, *words, "--out", out).code == 0
    assert_rows(json.loads(out.read_text("utf-8")), found)
    words += ["--format", "table"]
    assert run("kblrn", "complete", folder, *words, "--out", out).code == 0
    assert out.read_text("utf-8") == f"{found}\n"


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("predict", ["?", "likes", "?"], "exactly one of head and tail must be '?'"),
        ("predict", ["Ada Crowgarth", "likes", "Amber Dice"], "exactly one of head"),
        ("predict", ["Ada Crowgart", "likes", "?"], "nearest are Ada Crowgarth"),
        ("predict", ["Ada Crowgarth", "lykes", "?"], "unknown relation 'lykes'"),
        (
            "predict",
            ["Ada Crowgarth", "likes", "?", "--k", "0"],
            "--k must be positive",
        ),
        ("predict", ["?", "likes", "Ada Crowgarth", "--out", "."], "is a directory"),
        ("complete", ["--relation", "lykes"], "nearest are likes"),
        ("complete", ["--k", "-1"], "--k must be positive (got -1)"),
    ],
)
def test_wrong_arguments(folder, command, words, message):
    done = run("kblrn", command, folder, *words)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert done.out == ""


@pytest.mark.parametrize("command", [["predict", "a", "r", "?"], ["complete"]])
def test_no_run(tmp_path, command):
    name, *words = command
    done = run("kblrn", name, tmp_path, *words)
    assert done.code == 2
    assert "has no model.pt, expected a run" in done.err
    assert len(done.err.splitlines()) == 1


def test_closed_pipe_ends_quietly():
    """As in ``kblrn data | true``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "kblrn_pyg.cli", "data"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141
