"""New facts and entities: what is known follows from sets, what is scored from naive
twins, and nothing that was learned before changes."""

import random

import naive
import numpy as np
import pytest
import torch
from scripts import run
from test_experts import Popularity
from test_mining import as_dict
from torch.nn import Parameter
from torch_geometric.data import HeteroData
from torch_geometric.nn.kge import DistMult

from kblrn_pyg import KBLRN
from kblrn_pyg.data import (
    DataError,
    Vocabulary,
    ask,
    flat_triples,
    make_kb,
    read_kb,
    read_triples,
    read_values,
    split_types,
    unify_types,
    update_kb,
)
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.data.update import grown_split
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.nn import SCORERS, EvidenceExpert, Expert, NodeExpert
from kblrn_pyg.rules import mine_constants, mine_rules
from kblrn_pyg.training import FoldInSettings, apply_update, fit, update_model

FACTS = [
    ("Ada", "spouse", "Ben"),
    ("Ben", "spouse", "Ada"),
    ("Ada", "born_in", "Rome"),
    ("Ben", "born_in", "Bonn"),
    ("Cleo", "born_in", "Rome"),
    ("Cleo", "lives_in", "Rome"),
    ("Ada", "lives_in", "Rome"),
    ("Dan", "born_in", "Bonn"),
    ("Dan", "lives_in", "Bonn"),
]
NUMBERS = [
    (name, "height", 150.0 + 7 * i) for i, name in enumerate("Ada Ben Cleo Dan".split())
]
NUMBERS += [("Rome", "height", 21.0), ("Bonn", "height", 60.0)]


@pytest.fixture
def kb():
    return read_kb(FACTS, numerical=NUMBERS, min_entities=1)[0]["train"]


def named(data, key="edge_index"):
    names = Vocabulary.of(data)
    columns = (column.tolist() for column in flat_triples(data, key))
    return {
        (
            names.entities.identifiers[h],
            names.relations[r],
            names.entities.identifiers[t],
        )
        for h, r, t in zip(*columns)
    }


# --- the knowledge base ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_facts_are_those_of_sets(seed):
    rng = random.Random(seed)
    entities, relations = [f"e{i}" for i in range(6)], ["r", "s", "t"]
    everyone = [*entities, "new 1", "new 2"]

    def some(names, size):
        return [
            (rng.choice(names), rng.choice(relations), rng.choice(names))
            for _ in range(size)
        ]

    before = some(entities, 15) + [
        (name, rng.choice(relations), name) for name in entities
    ]
    before += [("e0", relation, "e1") for relation in relations]
    kb = read_kb(before)[0]["train"]
    known = set(before)
    gone = set(rng.sample(sorted(known), 3))
    add = set(some(everyone, 8)) - gone
    update = update_kb(kb, read_triples(sorted(add)), None, read_triples(sorted(gone)))
    assert named(update.kb) == (known | add) - gone
    assert named(kb) == known  # as it was
    names = Vocabulary.of(kb).entities.identifiers
    assert update.kb["entity"].name[: len(names)] == list(names)
    new = {name for h, _, t in add for name in (h, t)} - set(entities)
    assert set(update.kb["entity"].name[len(names) :]) == new
    assert update.num_new == len(new)
    assert update.added[0].numel() == len(add - known)
    assert update.num_known == len(add & known)
    assert update.retracted[0].numel() == len(gone)
    assert update.kb.edge_types == kb.edge_types


def test_numbers_replace_others(kb):
    values = read_values([("Ada", "height", 1.5), ("Eve", "height", 2.5)])
    update = update_kb(kb, None, values)
    x = dict(zip(update.kb["entity"].name, update.kb["entity"].x[:, 0].tolist()))
    assert (x["Ada"], x["Eve"], x["Ben"], update.num_values) == (1.5, 2.5, 157.0, 2)
    assert kb["entity"].x[kb["entity"].name.index("Ada"), 0] == 150.0


def test_attributes_are_found_by_the_paths_that_they_were():
    paths = [("a", "<http://x/ns/height>", 1.0), ("b", "<http://x/ns/width>", 2.0)]
    kb = read_kb([("a", "r", "b")], numerical=paths, min_entities=1)[0]["train"]
    assert kb.attribute_names == [name for _, name, _ in paths]
    update = update_kb(kb, None, read_values([("b", "<http://x/ns/height>", 3.0)]))
    assert update.kb["entity"].x[1].tolist() == [3.0, 2.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"triples": [("Ada", "likes", "Ben")]}, "unknown relation 'likes'"),
        ({"numbers": [("Ada", "weight", 1.0)]}, "unknown attribute 'weight'"),
        (
            {"retracted": [("Ada", "spouse", "Dan")]},
            r"spouse\(Ada, Dan\) is not a fact",
        ),
        ({"retracted": [("Zoe", "spouse", "Dan")]}, "unknown entity 'Zoe'"),
        (
            {"triples": FACTS[:1], "retracted": FACTS[:1]},
            "both to be added and to be retracted",
        ),
        ({}, "'triples', 'numbers' or 'retracted' must be given"),
    ],
)
def test_what_cannot_be_done_is_said(kb, arguments, message):
    model = KBLRN.from_data(kb, "n", threshold=0.1)
    with pytest.raises(ValueError, match=message):
        model.update(**arguments)


def test_a_label_of_two_entities_is_refused():
    kb = make_kb(
        ["Paris", "Paris", "Ada"],
        ["r"],
        (torch.tensor([0]),) * 3,
        identifiers=["p1", "p2", "a"],
    )
    with pytest.raises(DataError, match="ambiguous"):
        update_kb(kb, read_triples([("Paris", "r", "Ada")]))
    update = update_kb(
        kb, read_triples([("p2", "r", "Ada"), ("Paris (p1)", "r", "new")])
    )
    assert named(update.kb) == {("p1", "r", "p1"), ("p2", "r", "a"), ("p1", "r", "new")}
    assert update.kb["entity"].identifier == ["p1", "p2", "a", "new"]


def test_node_types_follow_from_relations():
    data = HeteroData()
    data["person"].num_nodes, data["city"].num_nodes = 2, 2
    data["person"].name, data["city"].name = ["Ada", "Ben"], ["Rome", "Bonn"]
    data["person", "lives_in", "city"].edge_index = torch.tensor([[0, 1], [1, 0]])
    kb = unify_types(data)
    update = update_kb(kb, read_triples([("Cleo", "lives_in", "Oslo")]))
    kinds = [update.kb.type_names[i] for i in update.kb["entity"].type.tolist()]
    assert kinds == ["person", "person", "city", "city", "person", "city"]
    apart = split_types(update.kb)
    assert apart["person"].name == ["Ada", "Ben", "Cleo"]
    edges = apart["person", "lives_in", "city"].edge_index.t().tolist()
    assert sorted(edges) == [[0, 1], [1, 0], [2, 2]]
    with pytest.raises(
        DataError, match="'Rome' is a city, and 'lives_in' needs a person"
    ):
        update_kb(kb, read_triples([("Rome", "lives_in", "Oslo")]))
    with pytest.raises(DataError, match="the node type of 'Eve' is unknown"):
        update_kb(_with_height(kb), None, read_values([("Eve", "height", 1.0)]))


def _with_height(kb):
    kb["entity"].x = torch.full((4, 1), torch.nan, dtype=torch.double)
    kb.attribute_names = ["height"]
    return kb


def test_other_splits_grow(kb):
    val = ask(kb, tuple(torch.tensor([i]) for i in (0, 0, 2)))
    (fact,) = named(val, "edge_label_index")
    update = update_kb(kb, read_triples([("Eve", "spouse", "Dan")]))
    assert named(grown_split(val, update), "edge_label_index") == {fact}
    assert grown_split(val, update)["entity"].num_nodes == kb["entity"].num_nodes + 1


# --- experts -----------------------------------------------------------------------


def random_update(seed):
    """A random knowledge base, and one with other facts and more entities."""
    rng = random.Random(seed)
    names = [f"e{i}" for i in range(9)]
    relations = [f"r{i}" for i in range(3)]

    def fact(pool):
        return rng.choice(pool), rng.choice(relations), rng.choice(pool)

    before = [(name, "r0", rng.choice(names)) for name in names]
    before += [fact(names) for _ in range(25)] + [("e0", r, "e1") for r in relations]
    numbers = [(name, "a", rng.random()) for name in names[:-2]]
    kb = read_kb(before, numerical=numbers, min_entities=1)[0]["train"]
    add = [fact([*names, "new 1", "new 2"]) for _ in range(8)] + [("new 1", "r1", "e3")]
    gone = [one for one in sorted(set(before) - set(add))[::9]]
    update = update_kb(
        kb,
        read_triples(add),
        read_values([("new 1", "a", 0.5), ("e8", "a", 0.1)]),
        read_triples(gone),
    )
    return kb, update


def all_triples(kb):
    nodes, relations = (
        torch.arange(kb["entity"].num_nodes),
        torch.arange(len(kb.edge_types)),
    )
    return tuple(
        column.contiguous()
        for column in torch.cartesian_prod(nodes, relations, nodes).t()
    )


@pytest.mark.parametrize("seed", range(8))
def test_paths_are_those_of_the_naive_twin(seed):
    kb, update = random_update(seed)
    rules = mine_rules(kb, min_head_coverage=0.0, min_support=1)
    torch.manual_seed(seed)
    model = KBLRN.from_data(kb, "r", rules=rules)
    updated = apply_update(model, update)
    triples = all_triples(update.kb)
    found = updated(*triples).tolist()
    facts = [tuple(one) for one in torch.stack(flat_triples(update.kb), dim=1).tolist()]
    weight = dict(zip(as_dict(rules), model.experts["relational"].weight.tolist()))
    holding, size = {}, update.kb["entity"].num_nodes
    for (r, body), value in weight.items():
        for pair in naive.body_pairs(facts, size, body):
            holding[pair[0], r, pair[1]] = (
                holding.get((pair[0], r, pair[1]), 0.0) + value
            )
    wanted = [
        holding.get(tuple(one), 0.0) for one in torch.stack(triples, dim=1).tolist()
    ]
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_that_of_a_new_expert(seed, kinds):
    kb, update = random_update(seed)
    rules = mine_rules(kb, min_head_coverage=0.0, min_support=1)
    expert = EvidenceExpert(kb, rules, min_support=3, kinds=kinds)
    torch.manual_seed(seed)
    with torch.no_grad():
        expert.weight.normal_()
        if kinds:
            expert.kind_weight.normal_()
    grown = expert.with_facts(update)
    fresh = EvidenceExpert(update.kb, rules, min_support=3, kinds=kinds)
    with torch.no_grad():
        fresh.weight.copy_(expert.weight)
        if kinds:  # pair by pair
            old = {key: i for i, key in enumerate(pairs_of(expert))}
            for i, key in enumerate(pairs_of(fresh)):
                fresh.kind_weight[i] = expert.kind_weight[old[key]] if key in old else 0
    triples = all_triples(update.kb)
    torch.testing.assert_close(grown(*triples), fresh(*triples))
    if kinds:
        assert pairs_of(grown) != pairs_of(expert)  # or nothing is tested


def pairs_of(expert):
    kinds = expert.kinds.kinds
    return [
        (code, int(kind))
        for code in range(len(kinds.ptr) - 1)
        for kind in kinds.kind[kinds.ptr[code] : kinds.ptr[code + 1]]
    ]


@pytest.mark.parametrize("seed", range(4))
def test_weights_of_nodes_stay(seed):
    kb, update = random_update(seed)
    model = KBLRN.from_data(kb, ["n", NodeExpert(kb)], threshold=0.1)
    torch.manual_seed(seed)
    node = model.experts["node"]
    with torch.no_grad():
        node.head.normal_()
        node.tail.normal_()
    grown = apply_update(model, update).experts["node"]
    facts = [set(zip(*(c.tolist() for c in flat_triples(d)))) for d in (kb, update.kb)]
    h, r, t = all_triples(update.kb)
    for head, rel, tail, score in zip(
        *(c.tolist() for c in (h, r, t)), grown(h, r, t).tolist()
    ):
        # What a relation has before and after keeps its weight; the rest has none.
        wanted = 0.0
        for end, entity in ((0, head), (2, tail)):
            if all(any(f[1] == rel and f[end] == entity for f in one) for one in facts):
                index = [torch.tensor([i]) for i in (rel, entity)]
                wanted += node._look_up("head" if end == 0 else "tail", *index).item()
        assert score == pytest.approx(wanted, abs=1e-6)


def test_rules_about_numbers_are_counted_anew(kb):
    model = KBLRN.from_data(kb, "e", evidence_support=1, evidence_bins=2)
    new = [("Eve", "born_in", "Rome"), ("Eve", "lives_in", "Rome")]
    updated = model.update(new, [("Eve", "height", 151.0)])
    fresh = EvidenceExpert(
        updated.kb, model.experts["evidence"].features.paths.rules, 1, bins=2
    )
    triples = all_triples(updated.kb)
    torch.testing.assert_close(updated(*triples), fresh(*triples))


def test_given_rules_with_constants_are_counted_anew(kb):
    rules = mine_rules(kb).with_constants(mine_constants(kb, min_support=1))
    model = KBLRN.from_data(kb, "e", rules=rules, evidence_support=1)
    updated = model.update([("Eve", "born_in", "Rome"), ("Eve", "lives_in", "Rome")])
    before, after = (one.experts["evidence"].features for one in (model, updated))
    assert len(before) == len(after)  # those that were given, and no others
    rule = [f.best_rule("head", 0, 2, 2) for f in (before, after)]
    assert rule[1].support == rule[0].support + 1


def test_numbers_of_new_entities_count_at_once(kb):
    model = KBLRN.from_data(kb, "n", threshold=0.5)
    features = model.experts["numerical"].features
    assert len(features) > 0
    new = [("Eve", "height", 180.0)]
    updated = model.update([("Eve", "born_in", "Rome")], new)
    eve, rome = (updated.vocabulary.entities.resolve(n) for n in ("Eve", "Rome"))
    triple = [torch.tensor([i]) for i in (eve, 1, rome)]
    i = int(features.ptr[1])
    centre, width = float(features.centre[i]), float(features.width[i])
    weight = float(model.experts["numerical"].weight[i].detach())
    wanted = weight * np.exp(-(((180 - 21 - centre) / width) ** 2))
    assert float(updated(*triple).detach()) == pytest.approx(wanted, abs=1e-6)
    # What was learned about differences stays, whatever new facts are.
    assert updated.experts["numerical"].features is features


@pytest.mark.parametrize("letters", ["r", "n", "e", "lrne"])
def test_what_is_retracted_and_added_again_changes_nothing(kb, letters):
    torch.manual_seed(0)
    given = {
        "l": {"hidden_channels": 8},
        "n": {"threshold": 0.5},
        "e": {"evidence_support": 1},
    }
    settings = {k: v for letter in letters for k, v in given.get(letter, {}).items()}
    model = KBLRN.from_data(kb, letters, **settings)
    back = model.update(retracted=FACTS[4:6]).update(FACTS[4:6])
    assert named(back.kb) == named(model.kb)
    triples = all_triples(kb)
    torch.testing.assert_close(back(*triples), model(*triples))
    less = model.update(retracted=FACTS[4:6])
    if letters != "n":
        assert not torch.equal(less(*triples), model(*triples))


PLAIN = [*(one for one in SCORERS if one != "conve"), "rgcn:distmult", DistMult]


@pytest.mark.parametrize(
    ("scorer", "reciprocal"),
    [*((one, False) for one in PLAIN), *((one, True) for one in (*PLAIN, "conve"))],
)
def test_all_that_was_learned_stays(kb, scorer, reciprocal, tmp_path):
    torch.manual_seed(0)
    if scorer is DistMult:
        scorer = DistMult(
            kb["entity"].num_nodes, len(kb.edge_types) * (1 + reciprocal), 8
        )
    model = KBLRN.from_data(kb, "lr", 8, scorer, reciprocal=reciprocal)
    new = [
        ("Eve", "born_in", "Bonn"),
        ("Eve", "spouse", "Dan"),
        ("Fay", "spouse", "Eve"),
    ]
    updated = model.update(new)
    before, after = model.state_dict(), updated.state_dict()
    assert before.keys() == after.keys()
    changed = []
    for name, weight in before.items():
        same = after[name][tuple(map(slice, weight.shape))]
        assert torch.equal(same, weight), name
        if after[name].shape != weight.shape:
            changed.append(name)
            rows = after[name][len(weight) :]
            assert rows.isfinite().all()
            assert (rows.abs().sum(dim=1) > 0).all()
    assert changed
    assert not updated.training or model.training
    assert all(one.requires_grad for one in updated.parameters())
    path = tmp_path / "model.pt"
    updated.save(path)
    loaded, triples = KBLRN.load(path), all_triples(updated.kb)
    torch.testing.assert_close(loaded(*triples), updated.eval()(*triples))


def test_gradients_are_as_they_were_afterwards(kb):
    model = KBLRN.from_data(kb, "l", 8)
    updated = model.update([("Eve", "born_in", "Bonn")])
    assert not updated.experts["latent"].sparse
    updated.train().loss(*flat_triples(updated.kb)).backward()
    table = updated.experts["latent"].entity_tables()[0]
    assert not table.grad.is_sparse


def test_steps_of_new_rows_follow_their_gradient(kb):
    """The mean start, and then one step of Adagrad, by hand."""
    torch.manual_seed(0)
    model = KBLRN.from_data(kb, "l", 4)
    facts = [("Eve", "lives_in", "Bonn"), ("Eve", "lives_in", "Rome")]
    settings = FoldInSettings(epochs=1, least_steps=1, num_negatives=100, lr=0.1)
    with torch.no_grad():  # of any size, as that of other entries counts
        model.experts["latent"].entity_tables()[0].sign_().mul_(3)
    updated = update_model(model, facts, settings=settings)
    old = model.experts["latent"].entity_tables()[0].detach()
    names = kb["entity"].name
    residents = [names.index(name) for name in ("Cleo", "Ada", "Dan")]
    start = old[residents].mean(dim=0)
    table = torch.cat([old, start[None]]).requires_grad_()
    relation = updated.experts["latent"].scorers[0].kge.rel_emb.weight.detach()[2]
    losses = []
    for city in (names.index("Bonn"), names.index("Rome")):
        query = table[-1] * relation
        losses.append((table @ query).logsumexp(0) - table[city] @ query)
        query = table[city] * relation
        losses.append((table @ query).logsumexp(0) - table[-1] @ query)
    torch.stack(losses).mean().backward()
    grad = table.grad[-1]
    wanted = start - 3 * 0.1 * grad / (grad.abs() + 1e-10)
    found = updated.experts["latent"].entity_tables()[0][-1]
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)


def test_folded_in_entities_are_ranked_well():
    """People live where they were born; so does a new one, by embeddings alone."""
    rng, cities = random.Random(0), [f"city {i}" for i in range(8)]
    facts = []
    for i in range(120):
        city = rng.choice(cities)
        facts += [(f"person {i}", "born_in", city), (f"person {i}", "lives_in", city)]
    kb = read_kb(facts)[0]["train"]
    torch.manual_seed(0)
    model = KBLRN.from_data(kb, "l", 16, num_negatives=None)
    fit(model, kb, epochs=30, lr=0.05)
    new = [(f"new {i}", "born_in", cities[i]) for i in range(8)]
    updated, silent = model.update(new), model.update(new, fold_in=False)
    found = [
        updated.predict_tails(f"new {i}", "lives_in", k=1)[0].tail for i in range(8)
    ]
    assert sum(a == b for a, b in zip(found, cities)) >= 7
    scores = {one.score for one in silent.predict_tails("new 0", "lives_in", k=200)}
    assert scores == {0.0}


def test_silence_needs_scorers_that_multiply(kb):
    model = KBLRN.from_data(kb, "lr", 8, "transe")
    with pytest.raises(
        ValueError, match="'fold_in' must be True for the latent expert"
    ):
        model.update([("Eve", "born_in", "Bonn")], fold_in=False)
    assert (
        model.update([("Ada", "born_in", "Bonn")], fold_in=False).num_nodes
        == model.num_nodes
    )


def test_own_experts(kb):
    popularity = Popularity(kb["entity"].num_nodes, len(kb.edge_types))
    model = KBLRN.from_data(kb, ["r", popularity])
    updated = model.update([("Eve", "born_in", "Bonn")])
    weight = updated.experts["popularity"].weight
    assert torch.equal(weight[:, :-1], popularity.weight)
    assert weight.shape == (len(kb.edge_types), kb["entity"].num_nodes + 1)

    class Constant(Expert):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(torch.ones(()))

        def forward(self, head_index, rel_type, tail_index):
            return self.weight.expand_as(rel_type)

    model = KBLRN.from_data(kb, ["r", Constant()])
    assert model.update([("Ada", "born_in", "Bonn")]).num_nodes == model.num_nodes
    with pytest.raises(ValueError, match="Constant cannot take new entities"):
        model.update([("Eve", "born_in", "Bonn")])


def test_known_facts_of_other_splits_stay_known(kb):
    model = KBLRN.from_data(kb, "r")
    model.known = (ask(kb, tuple(torch.tensor([i]) for i in (0, 2, 3))),)
    updated = model.update([("Eve", "born_in", "Bonn")])
    queries = Queries(torch.tensor([0]), torch.tensor([2]), "tail")
    before, after = (
        m.known_facts.answers(queries).entity.tolist() for m in (model, updated)
    )
    assert before == after
    assert 3 in after


def test_the_same_update_gives_the_same_model(kb):
    model = KBLRN.from_data(kb, "l", 8)
    new = [("Eve", "born_in", "Bonn")]
    torch.manual_seed(1)
    first = model.update(new).state_dict()
    state = torch.get_rng_state()
    torch.manual_seed(2)
    second = model.update(new).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    torch.manual_seed(1)
    assert torch.equal(torch.get_rng_state(), state)  # that of the caller is left alone


# --- the command -------------------------------------------------------------------


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = KBLRN.from_data(load_dataset("Families")["train"], "ln", 8)
    model.save("model.pt")
    (tmp_path / "new.csv").write_text(
        "head,relation,tail\nNils Novel,born_in,Quarstead\nNils Novel,spouse,Ada Crowgarth\n"
    )
    (tmp_path / "numbers.csv").write_text(
        "entity,attribute,value\nNils Novel,birth_year,1900\n"
    )
    done = run(
        "kblrn",
        "update",
        "model.pt",
        "--triples",
        "new.csv",
        "--numbers",
        "numbers.csv",
    )
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "1 new entity",
        "2 new facts",
        "1 number",
        "the latent expert: new entities are folded in",
        "saved updated.pt",
    ]
    done = run(
        "kblrn", "predict", "updated.pt", "Nils Novel", "lives_in", "?", "--k", "3"
    )
    assert done.code == 0
    assert done.out.count("Nils Novel") == 3
    # Once more, in place, and back.
    done = run("kblrn", "update", "updated.pt", "--retract", "new.csv")
    assert done.out.splitlines() == ["2 facts retracted", "saved updated.pt"]
    again = KBLRN.load("updated.pt")
    assert named(again.kb) == named(model.kb)
    assert again.num_nodes == model.num_nodes + 1
    done = run("kblrn", "update", "model.pt", "--triples", "new.csv")
    assert (done.code, "exists already" in done.err) == (2, True)
    done = run(
        "kblrn",
        "update",
        "model.pt",
        "--triples",
        "new.csv",
        "--no-fold-in",
        "--out",
        "x.pt",
    )
    assert "the latent expert: new entities are left out" in done.out
    for words, message in (
        (["model.pt"], "nothing to do"),
        (["model.pt", "--triples", "absent.csv", "--out", "y.pt"], "absent.csv"),
        (["absent.pt", "--triples", "new.csv"], "no such file"),
    ):
        done = run("kblrn", "update", *words)
        assert done.code == 2
        assert message in done.err


def test_wide_numbers_with_decimal_commas(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    KBLRN.from_data(load_dataset("Families")["train"], "n").save("model.pt")
    rows = "id;birth_year;latitude;town\nNils Novel;1900,5;;Rome\n"
    (tmp_path / "numbers.csv").write_text(rows)
    words = ("kblrn", "update", "model.pt", "--numbers", "numbers.csv")
    done = run(*words)
    assert (done.code, "--decimal ," in done.err) == (2, True)
    done = run(*words, "--decimal", ",")
    assert done.code == 0, done.err
    assert done.out.splitlines()[:4] == [
        *("1 new entity", "1 number", "1 number is unknown"),
        "columns without numbers left out: town",
    ]


def test_the_model_of_a_run_stays(tmp_path):
    assert (
        run(
            "kblrn",
            "train",
            "Families",
            "--experts",
            "n",
            "--epochs",
            "0",
            "--out",
            tmp_path / "run",
        ).code
        == 0
    )
    new = tmp_path / "new.csv"
    new.write_text("Nils Novel,born_in,Quarstead\n")
    done = run(
        "kblrn",
        "update",
        tmp_path / "run",
        "--triples",
        new,
        "--out",
        tmp_path / "run" / "model.pt",
    )
    assert (done.code, "can be trained further" in done.err) == (2, True)
    done = run("kblrn", "update", tmp_path / "run", "--triples", new)
    assert (done.code, (tmp_path / "run" / "updated.pt").exists()) == (0, True)
