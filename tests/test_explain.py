"""Explanations are exact: parts sum to scores, ranks and middles are the naive ones."""

import itertools
import json
import random

import naive
import numpy as np
import pytest
import torch
from scripts import run
from test_mining import as_kb
from torch_geometric.data import Data, HeteroData

from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, ask, flat_triples, read_kb
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.datasets import Families
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.explain import explain
from kblrn_pyg.nn import INSTANCES, Expert, Part, Ref
from kblrn_pyg.nn.build import instance_of
from kblrn_pyg.plotting import plot_explanation
from kblrn_pyg.plotting.fitting import fit
from kblrn_pyg.rules import RuleSet, mine_rules

SCORERS = [
    *("distmult", "complex", "transe", "unit-transe", "rotate", "rescal"),
    ["distmult", "transe", "rotate"],
]
KINDS = [(e, s) for e in INSTANCES for s in (SCORERS if "l" in e else SCORERS[:1])]


@pytest.fixture(scope="module")
def data():
    """Has self-loops, empty relations, unknown numbers and rules of all kinds."""
    triples, num_entities, num_relations = naive.random_kb(random.Random(10))
    kb = as_kb(triples, num_entities, num_relations)
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(num_entities, 3, generator=rng, dtype=torch.double)
    x[1, 0] = x[2, 1] = x[2:, 2] = torch.nan
    kb["entity"].x, kb.attribute_names = x, ["a", "b", "c"]
    return kb


def make(data, experts="lrn", **kwargs):
    torch.manual_seed(0)
    rules = mine_rules(data, parallel=True) if "r" in experts else None
    defaults = {"l": {"hidden_channels": 4}, "n": {"threshold": 0.1}}
    for letter, settings in defaults.items():
        kwargs = (settings if letter in experts else {}) | kwargs
    return KBLRN.from_data(data, experts, rules=rules, **kwargs).double()


def some_triples(model, count, seed=0):
    """Facts, other triples, and those from an entity to itself."""
    rng = random.Random(seed)
    facts = sorted(zip(*(index.tolist() for index in flat_triples(model.kb))))
    ids = range(model.num_nodes), range(model.num_relations), range(model.num_nodes)
    every = list(itertools.product(*ids))
    loops = [(h, r, t) for h, r, t in every if h == t]
    return [t for ts in (facts, every, loops) for t in rng.choices(ts, k=count // 3)]


def score(model, *triple):
    with torch.no_grad():
        return float(model(*torch.tensor(triple).split(1)))


@pytest.mark.parametrize(("experts", "scorer"), KINDS, ids=str)
def test_parts_sum_to_the_score(data, experts, scorer):
    model = make(data, experts, scorer=scorer)
    facts = set(zip(*(index.tolist() for index in flat_triples(data))))
    triples = some_triples(model, 30)
    assert facts & set(triples)
    assert set(triples) - facts
    for triple in triples:
        reasons = explain(model, *triple)
        expected = score(model, *triple)
        parts = [part.contribution for p in reasons.parts.values() for part in p]
        assert sum(parts) == pytest.approx(expected, abs=1e-7)
        assert sum(reasons.experts.values()) == pytest.approx(expected, abs=1e-7)
        assert reasons.score == pytest.approx(expected, abs=1e-7)
        assert reasons.known == (triple in facts)
        assert set(instance_of(reasons.experts)) == set(experts)


@pytest.mark.parametrize("kwargs", [{"numerical": "sign"}, {"learn_rbf": True}])
def test_parts_of_other_numerical_experts(data, kwargs):
    model = make(data, "n", **kwargs)
    if "learn_rbf" in kwargs:
        torch.nn.init.constant_(model.experts["numerical"].shift, 0.3)
    for triple in some_triples(model, 30):
        reasons = explain(model, *triple)
        assert reasons.score == pytest.approx(score(model, *triple), abs=1e-9)
        for part in reasons.parts["numerical"]:
            assert (part.details.get("centre") is None) == (
                "numerical" in kwargs or not part.details
            )


def test_single_precision_and_dropout(data):
    model = make(data, scorer="transe", dropout=0.5).float()
    for triple in some_triples(model, 30):
        model.train()
        reasons = explain(model, *triple)
        assert model.training
        assert model.experts["latent"].training
        model.eval()
        assert reasons.score == pytest.approx(score(model, *triple), abs=1e-5)


def test_reciprocal_relations(data):
    """The parts are those of (h, r, ?); each side ranks by its own scores."""
    model = make(data, scorer=["distmult", "complex"], reciprocal=True)
    triples = some_triples(model, 15)
    table = evaluate(model, ask(data, tuple(torch.tensor(triples).t())))
    for i, triple in enumerate(sorted(triples, key=lambda triple: triple[1])):
        reasons = explain(model, *triple)
        assert reasons.score == pytest.approx(score(model, *triple), abs=1e-7)
        held_out = ask(data, tuple(torch.tensor(triples).t()))
        reasons = explain(model, *triple, known=[held_out])
        assert reasons.head_query.rank == table.rank[i]
        assert reasons.tail_query.rank == table.rank[len(triples) + i]


def brute_force_rank(scores, answer, known):
    others = [s for i, s in enumerate(scores) if i != answer and i not in known]
    better = sum(s > scores[answer] for s in others)
    return 1 + better + sum(s == scores[answer] for s in others) / 2


@pytest.mark.parametrize("experts", INSTANCES)
def test_ranks_equal_a_brute_force(data, experts):
    model = make(data, experts)
    held_out = ask(data, tuple(torch.tensor(some_triples(model, 30, 1)).t()))
    known = set(zip(*(index.tolist() for index in flat_triples(data))))
    known |= set(zip(*(i.tolist() for i in flat_triples(held_out, "edge_label_index"))))
    for h, r, t in some_triples(model, 30):
        reasons = explain(model, h, r, t, known=[held_out])
        tails = [e for e in range(model.num_nodes) if (h, r, e) in known]
        heads = [e for e in range(model.num_nodes) if (e, r, t) in known]
        head, rel, tail = torch.tensor([h, r, t]).split(1)
        for standing, side, answer, answers in (
            (reasons.tail_query, "tail", t, tails),
            (reasons.head_query, "head", h, heads),
        ):
            query = Queries.of_triples(head, rel, tail, side)
            with torch.no_grad():
                rows = {
                    name: expert.score_all(query, model.num_nodes)[0]
                    for name, expert in model.experts.items()
                }
            total = sum(rows.values())
            assert standing.rank == brute_force_rank(total.tolist(), answer, answers)
            assert standing.probability == pytest.approx(
                float(total.exp()[answer] / total.exp().sum())
            )
            assert standing.num_candidates == model.num_nodes - len(
                set(answers) - {answer}
            )
            assert set(standing.without) == (set(rows) if len(rows) > 1 else set())
            for name, rank in standing.without.items():
                rest = sum(row for other, row in rows.items() if other != name)
                assert rank == brute_force_rank(rest.tolist(), answer, answers)


def test_ranks_are_those_of_evaluation(data):
    model = make(data)
    triples = some_triples(model, 24)
    asked = ask(data, tuple(torch.tensor(triples).t()))
    table = evaluate(model, asked)
    ranks = {
        (side, h, r, t): rank
        for side, h, r, t, rank in zip(
            table.side, table.head, table.relation, table.tail, table.rank
        )
    }
    for triple in triples:
        reasons = explain(model, *triple, known=[asked])
        assert reasons.head_query.rank == ranks[(0, *triple)]
        assert reasons.tail_query.rank == ranks[(1, *triple)]


def bodies(reasons):
    """The bodies that hold, without the part that says that none does."""
    return [part for part in reasons.parts["relational"] if "rule" in part.details]


def ids(path):
    return [(fact.head.id, fact.relation.id, fact.tail.id) for fact in path]


@pytest.mark.parametrize("seed", [10, 12, 21, 28])
def test_middles_equal_a_naive_search(seed):
    triples, num_entities, num_relations = naive.random_kb(random.Random(seed))
    kb = as_kb(triples, num_entities, num_relations)
    model = make(kb, "r")
    rules = model.experts["relational"].features.rules
    all_bodies = [("parallel" if p else "path", codes) for p, codes in rules.bodies()]
    assert len(rules)
    for h, r, t in some_triples(model, 30):
        reasons = explain(model, h, r, t, max_middles=None)
        part = rules.of(r)
        holds = naive.pair_features(triples, all_bodies[part], h, t)
        found = [body.details["rule"] for body in bodies(reasons)]
        assert set(found) == {part.start + i for i in holds}
        assert len(reasons.parts["relational"]) == max(1, len(found))
        for body in bodies(reasons):
            naive_body = all_bodies[body.details["rule"]]
            groundings = naive.middles(triples, naive_body, h, t)
            assert body.num_paths == len(body.paths) == len(groundings)
            expected = sorted(x for middle in groundings for x in middle)
            if h == t:  # as if a loop had no middle
                expected = [x for x in expected if x != h]
            assert sorted(middle.id for middle in body.middles) == expected
            own = not naive.holds(triples, naive_body, h, t, without=(h, r, t))
            assert body.own == own
            for path, stops in zip(body.paths, groundings):
                assert set(ids(path)) <= set(triples)
                assert {e for h, _, t in ids(path) for e in (h, t)} == {h, *stops, t}
            relations = {
                relation for path in body.paths for _, relation, _ in ids(path)
            }
            assert relations == {code >> 1 for code in naive_body[1]}
        fewer = explain(model, h, r, t, max_middles=1)
        for one, body in zip(bodies(fewer), bodies(reasons)):
            assert one.middles == body.middles[:1]
            assert one.num_paths == body.num_paths
            assert set(one.paths) <= set(body.paths)
        for one in bodies(explain(model, h, r, t, max_middles=0)):
            assert one.middles == ()
            stops = naive.middles(triples, all_bodies[one.details["rule"]], h, t)
            assert len(one.paths) == stops.count(()) + (h == t) * stops.count((h,))


def test_own_evidence_is_told():
    kb = as_kb([(0, 0, 1), (1, 1, 1), (2, 0, 1)], 3, 2)
    rules = RuleSet.build(["r0", "r1"], head=[0], steps=[[0, 2]])
    model = KBLRN.from_data(kb, "r", rules=rules)
    with torch.no_grad():
        model.experts["relational"].weight.fill_(5.0)
    reasons = model.explain("e0", "r0", "e1")
    assert (reasons.known, reasons.score, reasons.own_evidence) == (True, 5.0, 5.0)
    assert score(model, 0, 0, 1) == 5.0
    assert "by this fact itself" in str(reasons)
    reasons = model.explain("e1", "r0", "e1")
    assert (reasons.known, reasons.own_evidence) == (False, 0.0)
    assert "not in the knowledge base" in str(reasons)
    assert "itself" not in str(reasons)


def test_unknown_numbers():
    kbs, _ = read_kb(
        [("Ada", "spouse", "Ben"), ("Cy", "spouse", "Dee")],
        numerical=[
            *(("Ada", "born", 1950), ("Ben", "born", 1948), ("Cy", "born", 1981)),
            *(("Dee", "born", 1980), ("Ada", "height", 170), ("Ben", "height", 172)),
        ],
        min_entities=1,
    )
    model = make(kbs["train"], "n", threshold=0.5)
    with torch.no_grad():
        model.experts["numerical"].weight.copy_(torch.tensor([2.0, -3.0]))
    reasons = model.explain("Ada", "spouse", "Cy")
    born, height = reasons.parts["numerical"]
    assert (born.text, height.text) == ("born", "height")
    assert born.details == pytest.approx(
        {
            "attribute": "born",
            **{"head": 1950, "tail": 1981, "difference": -31, "centre": 1.5},
            **{"width": 0.5, "activation": np.exp(-((32.5 / 0.5) ** 2)), "weight": 2},
        }
    )
    assert born.contribution == pytest.approx(2 * np.exp(-((32.5 / 0.5) ** 2)))
    values = [height.details[name] for name in ("head", "tail", "difference")]
    assert values == [170, None, None]
    assert (height.details["activation"], height.contribution) == (0, 0)
    text = str(reasons)
    assert "height" in text
    assert "unknown" in text
    assert "-0.000" not in text


def test_json(data):
    model = make(data, scorer=["distmult", "complex"])
    for triple in some_triples(model, 30):
        reasons = explain(model, *triple)
        content = json.loads(json.dumps(reasons.to_json(), allow_nan=False))
        parts = [
            part["contribution"]
            for name in content["experts"]
            for part in content["parts"][name]
        ]
        assert sum(parts) == pytest.approx(content["score"], abs=1e-9)
        assert content["score"] == reasons.score
        assert content["head"] == {
            "id": triple[0],
            "name": f"e{triple[0]}",
            "identifier": f"e{triple[0]}",
        }
        assert content["known"] == reasons.known
        assert content["tail_query"]["without"] == reasons.tail_query.without
        for name, found in reasons.parts.items():
            for part, entry in zip(found, content["parts"][name], strict=True):
                names = ("contribution", "own", "num_paths")
                assert [entry[key] for key in names] == [
                    getattr(part, key) for key in names
                ]
                assert (entry["text"], entry["note"]) == (part.text, part.note_text)
                assert len(entry["paths"]) == len(part.paths)
                assert set(part.details) <= set(entry)


def test_pyg_and_networkx(data):
    model = make(data)
    facts = set(zip(*(index.tolist() for index in flat_triples(data))))
    for triple in some_triples(model, 45):
        reasons = explain(model, *triple, max_middles=None)
        graph = reasons.to_pyg()
        assert graph.validate()
        n_id = graph.n_id.tolist()
        assert n_id[0] == triple[0]
        assert n_id[triple[0] != triple[2]] == triple[2]
        assert [graph.entity_names[i] for i in n_id] == [f"e{i}" for i in n_id]
        edges = {
            (n_id[h], r, n_id[t])
            for (h, t), r in zip(
                graph.edge_index.t().tolist(), graph.edge_type.tolist()
            )
        }
        assert edges <= facts
        assert len(edges) == graph.num_edges
        assert {graph.relation_names[r] for _, r, _ in edges} == {
            f"r{r}" for _, r, _ in edges
        }
        for mask in (graph.edge_mask, graph.node_mask):
            assert mask.numel() == 0 or (mask.min() > 0 and mask.max() == 1)
        assert graph.node_mask[:2].min() == 1 or triple[0] == triple[2]
        subgraph = graph.get_explanation_subgraph()
        assert subgraph.validate()
        assert subgraph.num_edges == graph.num_edges
        assert subgraph.n_id.tolist() == n_id
        assert graph.threshold("topk_hard", 1).get_explanation_subgraph().validate()
        drawn = reasons.to_networkx()
        assert {
            (int(h[1:]), int(r[1:]), int(t[1:])) for h, t, r in drawn.edges(keys=True)
        } == edges


def test_pyg_with_as_many_edges_as_nodes():
    """PyG has to guess then what belongs to which."""
    kb = as_kb([(0, 0, 1), (0, 1, 1), (0, 2, 1), (2, 0, 3), (2, 1, 3)], 4, 3)
    rules = RuleSet.build(["r0", "r1", "r2"], head=[0, 0], steps=[[2], [4]])
    model = KBLRN.from_data(kb, "r", rules=rules)
    with torch.no_grad():
        model.experts["relational"].weight.copy_(torch.tensor([2.0, -3.0]))
    graph = model.explain(0, 0, 1).to_pyg()
    assert (graph.num_nodes, graph.num_edges) == (2, 2)
    assert graph.edge_weight.tolist() == [-3, 2]
    assert graph.edge_mask.tolist() == pytest.approx([1, 2 / 3])
    assert graph.node_mask.tolist() == [[1], [1]]
    part = graph.threshold("hard", 0.8).get_explanation_subgraph()
    assert part.validate()
    assert part.edge_type.tolist() == [2]
    assert part.n_id.tolist() == [0, 1]
    assert part.relation_names[2] == "r2"
    assert graph.get_complement_subgraph().num_edges == 0


def test_a_triple_that_nothing_speaks_for():
    kb = as_kb([(0, 0, 1)], 3, 1)
    model = KBLRN.from_data(kb, "r", rules=mine_rules(kb))
    reasons = model.explain(1, 0, 2)
    assert reasons.score == 0
    assert "no body of its rules holds" in str(reasons)
    graph = reasons.to_pyg()
    assert (graph.num_nodes, graph.num_edges) == (2, 0)
    assert graph.get_explanation_subgraph().num_nodes == 0
    assert plot_explanation(reasons)


def test_text_sums_up_what_it_leaves_out(data):
    model = make(data, "rn")
    reasons = max(
        (explain(model, *triple) for triple in some_triples(model, 30)),
        key=lambda reasons: len(reasons.parts["relational"]),
    )
    weights = [body.contribution for body in reasons.parts["relational"]]
    assert len(weights) > 3
    assert [abs(w) for w in weights] == sorted(map(abs, weights), reverse=True)
    assert f"and {len(weights) - 2} more, together {sum(weights[2:]):+.3f}" in (
        reasons.to_text(max_parts=2)
    )
    lines = reasons.to_text(max_parts=len(weights)).splitlines()
    assert not any("together" in line for line in lines)
    for body in reasons.parts["relational"]:
        assert f" {body.contribution:+.3f}  {body.text}" in "\n".join(lines)
    experts = [line.split()[0] for line in lines if line.startswith(("rel", "num"))]
    assert experts == list(reasons.experts)
    standing = reasons.tail_query.without["relational"]
    line = next(line for line in lines if line.startswith("rank without relational"))
    assert float(line.split()[3].replace(",", "")) == standing


class Popularity(Expert):
    """Writes no more than it must."""

    def __init__(self, num_nodes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, num_nodes))

    def forward(self, head_index, rel_type, tail_index):
        return self.weight[head_index] * 2 + self.weight[tail_index]


class Awards(Popularity):
    """Names a fact that leads elsewhere, and a path of three facts."""

    def parts(self, head, rel, tail, side="tail"):
        (part,) = super().parts(head, rel, tail, side)
        words = (Ref("entity", head), " won ", Ref("attribute", 1))
        note = ("as ", Ref("relation", 0), " tells")
        award = ((head, 0, 3),)
        path = ((head, 0, 3), (4, 0, 3), (4, 1, tail))
        details = {"year": float("nan"), "list": [float("inf"), 1.5]}
        half = part.contribution / 2
        return [
            Part(0, ("nothing",)),
            Part(half / 2, words, note, (award, path), details=details),
            Part(1.5 * half, ("fame",), own=True),
        ]


def test_an_expert_of_ones_own(data):
    num_nodes = data["entity"].num_nodes
    model = make(data, ["l", "r", Popularity(num_nodes)])
    for triple in some_triples(model, 15):
        reasons = explain(model, *triple)
        assert list(reasons.parts) == ["latent", "relational", "popularity"]
        assert reasons.score == pytest.approx(score(model, *triple), abs=1e-7)
        (part,) = reasons.parts["popularity"]
        assert (part.text, part.note_text, part.paths) == ("Popularity", "", ())
        assert set(reasons.tail_query.without) == set(reasons.parts)
        assert f"{part.contribution:+.3f}  Popularity" in str(reasons)
        assert "popularity" in reasons.to_json()["experts"]


def test_parts_of_any_kind(data):
    model = make(data, ["n", Awards(data["entity"].num_nodes)])
    reasons = explain(model, 0, 1, 2)
    fame, award, nothing = reasons.parts["awards"]
    assert (fame.own, nothing.text) == (True, "nothing")
    assert (award.text, award.note_text) == ("e0 won b", "as r0 tells")
    assert [middle.id for middle in award.middles] == [3, 4]
    assert [ids(path) for path in award.paths] == [
        [(0, 0, 3)],
        [(0, 0, 3), (4, 0, 3), (4, 1, 2)],
    ]
    assert reasons.own_evidence == fame.contribution
    text = str(reasons)
    assert f"{fame.contribution:+.3f}  fame   (by this fact itself)" in text
    assert "           as r0 tells\n           x = e3, e4\n" in text
    assert "1 of the reasons would not hold" in text
    entry = json.loads(json.dumps(reasons.to_json(), allow_nan=False))
    entry = entry["parts"]["awards"][1]
    assert (entry["year"], entry["list"]) == (None, [None, 1.5])
    assert entry["paths"][0][0]["tail"]["name"] == "e3"
    graph = reasons.to_pyg()
    assert graph.n_id.tolist() == [0, 2, 3, 4]
    assert graph.edge_type.tolist() == [0, 0, 1]
    assert graph.edge_weight.tolist() == pytest.approx([award.contribution] * 3)
    fewer = explain(model, 0, 1, 2, max_middles=1)
    assert fewer.parts["awards"][1].paths == award.paths[:1]
    assert "x = e3 and 1 more" in str(fewer)


def test_names_of_all_kinds():
    kbs, _ = read_kb([("Ada", "/x/spouse", "Ben"), ("Ben", "/y/parent", "Cy")])
    kb = kbs["train"]
    kb["entity"].identifier = ["m.1", "m.2", "m.3"]
    kb["entity"].name = ["Ada", "Ben", "Ben"]
    model = make(kb, "l")
    reasons = model.explain("Ada", "spouse", "m.2")
    assert (reasons.tail.id, reasons.tail.name, reasons.tail.identifier) == (
        *(1, "Ben (m.2)"),
        "m.2",
    )
    assert (reasons.relation.name, reasons.relation.identifier) == (
        "spouse",
        "/x/spouse",
    )
    assert model.explain(np.int64(0), 0, 1) == reasons
    for triple, message in (
        (("Ada", "spouse", "Ben"), "entity 'Ben' is ambiguous"),
        (("Ada", "knows", "m.2"), "unknown relation 'knows'"),
    ):
        with pytest.raises(DataError, match=message):
            model.explain(*triple)


def test_mistakes(data):
    model = make(data, "l")
    other = as_kb([(0, 0, 1)], 2, 1)
    for arguments, message in (
        ({"head": 99}, "the id of the entity must lie in 0 to"),
        ({"relation": -1}, "the id of the relation must lie in 0 to"),
        ({"max_middles": -1}, "'max_middles' must not be negative"),
        ({"known": data}, "'known' must be a list"),
        ({"known": [other]}, "'known' must be over the entities and relations"),
    ):
        with pytest.raises(ValueError, match=message):
            model.explain(**{"head": 0, "relation": 0, "tail": 1, **arguments})
    with pytest.raises(ValueError, match="'max_parts' must not be negative"):
        model.explain(0, 0, 1).to_text(max_parts=-1)
    for wrong in ({"max_parts": 0}, {"max_middles": 0}):
        with pytest.raises(ValueError, match="must be positive"):
            plot_explanation(model.explain(0, 0, 1), **wrong)
    with torch.no_grad():
        model.experts["latent"].scorers[0].kge.node_emb.weight[3] = torch.nan
    with pytest.raises(ValueError, match="must be numbers"):
        model.explain(0, 0, 1)
    model.kb = None
    with pytest.raises(ValueError, match="'model' must know its knowledge base"):
        model.explain(0, 0, 1)


def texts_of(figure):
    figure.canvas.draw()
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    renderer = figure.canvas.get_renderer()
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in texts
        if text.get_text()
    ]


def hard_case():
    """Long names, dollar signs, many middles and all kinds of bodies."""
    long = "Wolfeschlegelsteinhausenbergerdorff the Third of Some Far Away Place"
    triples = [("A$AP", "likes", "B$B"), ("A$AP", "likes", "A$AP")]
    for i in range(9):
        triples += [("A$AP", "likes", f"{long} {i}"), (f"{long} {i}", "likes", "B$B")]
    way = "/government/positions_held./government/position_held/jurisdiction_of_office"
    triples += [("A$AP", way, "B$B"), ("B$B", way, "A$AP"), ("B$B", way, f"{long} 1")]
    numbers = [("A$AP", "net_worth", 4e9), ("B$B", "net_worth", -2.5)]
    numbers += [
        ("A$AP", "height", 1.8),
        ("A$AP", "born", 1988.5),
        ("B$B", "born", 1970),
    ]
    kbs, _ = read_kb(triples, numerical=numbers, min_entities=1)
    return make(kbs["train"], scorer=["distmult", "rotate"], threshold=0.01)


def test_words_in_pictures_do_not_overlap():
    model = hard_case()
    for head, tail in (("A$AP", "B$B"), ("A$AP", "A$AP"), (5, 0)):
        figure = plot_explanation(model.explain(head, "likes", tail))
        texts = texts_of(figure)
        assert any("A$AP" in text for text, _ in texts)
        for text, box in texts:
            assert figure.bbox.x0 <= box.x0, text
            assert box.x1 <= figure.bbox.x1, text
            assert figure.bbox.y0 <= box.y0, text
            assert box.y1 <= figure.bbox.y1, text
        for (one, box), (other, other_box) in itertools.combinations(texts, 2):
            # A hair's breadth of ascenders is not an overlap.
            assert not box.padded(-1.5).overlaps(other_box.padded(-1.5)), (one, other)


def test_fit():
    assert fit("", 8, 1, 1) == [""]
    assert fit("one two", 8, 5, 1) == ["one two"]
    assert fit("aaaa bbbb cccc", 8, 0.5, 3) == ["aaaa", "bbbb", "cccc"]
    assert fit("aaaa bbbb cccc", 8, 0.5, 2) == ["aaaa", "bbbb…"]
    assert fit("aaaa bbbb cccc", 8, 0.5, 2, keep_end=True) == ["…bbbb", "cccc"]
    assert len(fit("a" * 100, 8, 0.5, 2)) == 1
    assert fit("a" * 100, 8, 0.5, 2)[0].endswith("a…")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "run"
    words = "--hidden-channels 4 --num-negatives 5 --batch-size 8192 --epochs 1"
    done = run("kblrn", "train", "Families", *words.split(), "--out", path)
    assert done.code == 0, done.err
    return path


TRIPLE = ("Adea Hazelwright", "grandparent_of", "Selen Frostshaw")


def test_command(folder, tmp_path):
    done = run("kblrn", "explain", folder, *TRIPLE)
    assert done.code == 0, done.err
    assert "grandparent_of(h, t) for h = Adea Hazelwright" in done.out
    assert "parent_of(h, x) ∧ parent_of(x, t)" in done.out
    out = tmp_path / "new" / "reasons.json"
    words = ["--format", "json", "--max-middles", "1", "--out", out]
    done = run("kblrn", "explain", folder, *TRIPLE, *words)
    assert (done.code, done.out) == (0, f"saved {out}\n")
    content = json.loads(out.read_text(encoding="utf-8"))
    assert content["tail"]["name"] == "Selen Frostshaw"
    # Those of the other splits are no candidates, either.
    assert content["tail_query"]["num_candidates"] < 2232
    done = run("kblrn", "explain", folder, *TRIPLE, "--format", "json")
    assert json.loads(done.out)["score"] == content["score"]


def test_picture(folder, tmp_path):
    out = tmp_path / "new" / "why.png"
    done = run("python", "viz/explanation.py", "--run", folder, *TRIPLE, "--out", out)
    assert done.code == 0, done.err
    assert done.out == f"saved {out}\n"
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "command", [["kblrn", "explain"], ["python", "viz/explanation.py", "--run"]]
)
def test_mistakes_on_the_command_line(folder, tmp_path, command):
    out = tmp_path / "out.png"
    for words, message in (
        ([folder, "Nobody", *TRIPLE[1:]], "unknown entity 'Nobody'"),
        ([folder, TRIPLE[0], "nothing", TRIPLE[2]], "unknown relation 'nothing'"),
        ([tmp_path, *TRIPLE], "has no model.pt, expected a run"),
    ):
        done = run(*command, *words, "--out", out)
        assert done.code == 2
        assert message in done.err
        assert len(done.err.splitlines()) == 1
        assert not out.exists()


def test_other_mistakes_on_the_command_line(folder, tmp_path):
    done = run("kblrn", "explain", folder, *TRIPLE, "--max-middles", "-1")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    script = ["python", "viz/explanation.py", "--run", folder, *TRIPLE]
    done = run(*script, "--out", tmp_path / "why.doc")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "has an unknown ending" in done.err


def test_families():
    """What a reader would give as the reason is found, by name."""
    data = Families()[0]
    model = KBLRN.from_data(data, "rn", rules=mine_rules(data, confidences=False))
    reasons = model.explain(*TRIPLE)
    middles = {b.text: [x.name for x in b.middles] for b in bodies(reasons)}
    assert middles["parent_of(h, x) ∧ parent_of(x, t)"] == ["Hedon Frostshaw"]
    (born,) = reasons.parts["numerical"]
    assert (born.text, born.details["difference"]) == ("birth_year", 1910 - 1962)
    assert born.note_text.startswith("1910 − 1962 = −52, usually −63.5")


def test_graphs_of_users_stay_as_they_are():
    typed = HeteroData()
    typed["person"].num_nodes, typed["town"].num_nodes = 3, 2
    lives = torch.tensor([[0, 1], [0, 1]])
    typed["person", "lives_in", "town"].edge_index = lives
    model = KBLRN.from_data(typed, "l", 4)
    reasons = explain(model, 0, 0, 3, known=[typed])
    assert reasons.known
    assert typed.node_types == ["person", "town"]


def test_what_a_model_knows_besides_its_knowledge_base(data):
    model = make(data, "l")
    held_out = ask(data, tuple(torch.tensor(some_triples(model, 30, 1)).t()))
    expected = [explain(model, 0, 0, t, known=[held_out]) for t in range(3)]
    assert expected != [explain(model, 0, 0, t) for t in range(3)]
    model.known = (held_out,)
    assert expected == [explain(model, 0, 0, t) for t in range(3)]


def test_a_split_of_few_relations_is_known():
    edges, relations = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 1])
    whole = Data(edge_index=edges, edge_type=relations, num_nodes=3)
    split = Data(edge_index=edges[:, :1], edge_type=relations[:1], num_nodes=3)
    model = KBLRN.from_data(whole, "l", 4)
    assert explain(model, 0, 0, 1, known=[split]).known
    assert model.predict_tails(0, 0, k=3, known=[split])


def test_entities_of_one_label_are_told_apart():
    kb = as_kb([(0, 0, 1), (1, 1, 2)], 3, 2)
    kb["entity"].name = ["Paris", "Paris", "Rome"]
    kb["entity"].identifier = ["Q1", "Q2", "Q3"]
    reasons = explain(KBLRN.from_data(kb, "l", 4), "Q1", "r0", "Q2")
    assert (reasons.head.name, reasons.tail.name) == ("Paris (Q1)", "Paris (Q2)")
    assert "h = Paris (Q1), t = Paris (Q2)" in str(reasons)
    assert list(reasons.to_networkx()) == ["Q1", "Q2"]
    del kb["entity"].identifier
    reasons = explain(KBLRN.from_data(kb, "l", 4), 0, "r0", 1)
    assert list(reasons.to_networkx()) == ["Paris (id 0)", "Paris (id 1)"]
