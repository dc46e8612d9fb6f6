"""The pictures, and apart from drawing the numbers that they show."""

import copy
import itertools
import json
import math
import random
import sys
from unittest import mock

import naive
import naive_layers
import numpy as np
import pytest
import torch
from matplotlib import pyplot
from matplotlib.text import Text
from scripts import run

from kblrn_pyg.data import (
    DataError,
    ask,
    flat_triples,
    make_kb,
    numerical_features,
)
from kblrn_pyg.data.neighbourhood import neighbourhood
from kblrn_pyg.data.words import short_names, value_text
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.explain import (
    Contributions,
    Named,
    NamedFact,
    Reason,
    Reasons,
    Standing,
    contributions,
    heaviest_rules,
    mean_lifts,
)
from kblrn_pyg.nn import KBLRN, Expert, NumericalExpert
from kblrn_pyg.plotting import (
    difference_panels,
    fitting,
    layer_panels,
    plot_contributions,
    plot_differences,
    plot_explanation,
    plot_fragment,
    plot_rules,
    plot_training,
)
from kblrn_pyg.plotting.explained_paths import Chain
from kblrn_pyg.rules import RuleSet, body_text, mine_rules
from kblrn_pyg.runs import load_run
from kblrn_pyg.training.history import History, read_histories

TRAIN = [
    *("--recipe", "none"),
    *("--hidden-channels", "4", "--num-negatives", "5", "--epochs", "2"),
    *("--validate-every", "1", "--batch-size", "4096", "--lr", "0.05"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with all experts and learned RBFs, and one with the latent expert."""
    folder = tmp_path_factory.mktemp("runs")
    for name, words in {"all": ["--learn-rbf"], "latent": ["--experts", "l"]}.items():
        done = run("kblrn", "train", "Families", *TRAIN, *words, "--out", folder / name)
        assert done.code == 0, done.err
    return folder


@pytest.fixture(scope="module")
def trained(runs):
    return load_run(str(runs / "all"))


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    pyplot.close("all")


def with_runs(words, runs):
    return [word.replace("RUNS", str(runs)) for word in words]


# ---------------------------------------------------------------------------
# Scripts
# ---------------------------------------------------------------------------

PICTURES = {
    "rbf_hist": "--relation spouse --relation capital_of",
    "rbf_hist of a run": "--relation spouse --run RUNS/all",
    "kb_fragment": "--entity --max-nodes 5 --hops 2",
    "kb_fragment of a run": "--entity --run RUNS/all",
    "experts": "--run RUNS/all --split val --top 3",
    "experts by name": "--run RUNS/all --expert numerical --relation spouse",
    "training": "--run RUNS/all RUNS/latent",
    "rules": "--run RUNS/all --relation spouse --top 5",
}
ENDINGS = itertools.cycle(["png", "svg", "pdf"])


@pytest.mark.parametrize(("name", "ending"), list(zip(PICTURES, ENDINGS)))
def test_script(name, ending, runs, tmp_path):
    words = with_runs(PICTURES[name].split(), runs)
    if "--entity" in words:
        words[words.index("--entity")] = "--entity=Jora Crowgarth"
    out = tmp_path / "new" / f"figure.{ending}"
    done = run("python", f"viz/{name.split()[0]}.py", *words, "--out", out)
    assert (done.code, done.out, done.err) == (0, f"saved {out}\n", "")
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[ending]
    assert out.read_bytes().startswith(start)
    assert out.stat().st_size > 5000


MISTAKES = [
    ("rbf_hist --out a.png", "arguments are required: --relation"),
    ("rbf_hist --relation nothing --out a.png", "unknown relation 'nothing'"),
    ("rbf_hist --relation lives_in --out a.png", "these have: influenced_by, spouse"),
    ("rbf_hist --relation spouse --bins 0 --out a.png", "must be at least 1 (got '0')"),
    ("rbf_hist --relation spouse --bins x --out a.png", "must be at least 1 (got 'x')"),
    ("rbf_hist --relation spouse --out a.xyz", "unknown ending, expected one of .png"),
    ("rbf_hist --relation spouse", "there is no screen"),
    ("rbf_hist --relation spouse --run RUNS/latent --out a.png", "experts are 'l'"),
    ("rbf_hist --relation spouse --run RUNS --out a.png", "expected a run"),
    (
        "rbf_hist --relation spouse --run RUNS --dataset Families --out a.png",
        "not allowed with",
    ),
    ("kb_fragment --out a.png", "arguments are required: --entity"),
    ("kb_fragment --entity Nobody --out a.png", "unknown entity 'Nobody'"),
    ("kb_fragment --entity Torwick --hops -1 --out a.png", "must be at least 1"),
    ("kb_fragment --entity Torwick --dataset X --out a.png", "unknown data set 'X'"),
    ("kb_fragment --entity Torwick --run X --out a.png", "X: no such file"),
    ("experts --out a.png", "arguments are required: --run"),
    ("experts --run RUNS/all --split dev --out a.png", "unknown split 'dev'"),
    ("experts --run RUNS/all --relation x --out a.png", "unknown relation 'x'"),
    (
        "experts --run RUNS/all --expert numerical --relation likes --out a.png",
        "does not ask about any relation",
    ),
    ("experts --run RUNS/all --expert x --out a.png", "latent, relational, numerical"),
    ("training --run --out a.png", "expected at least one argument"),
    ("training --run RUNS --out a.png", "log.jsonl: no such file, not a run"),
    ("rules --run RUNS/all --out a.png", "arguments are required: --relation"),
    ("rules --run RUNS/all --relation x --out a.png", "unknown relation 'x'"),
    ("rules --run RUNS/latent --relation spouse --text", "no relational expert"),
    ("rules --run RUNS/all --relation spouse", "there is no screen"),
    ("rules --run RUNS/all --relation spouse --paint", "unrecognized arguments"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistake(words, message, runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script, *words = with_runs(words.split(), runs)
    done = run("python", f"viz/{script}.py", *words)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.startswith(f"{script}: ")
    assert len(done.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_the_ending_is_looked_at_before_anything_takes_time():
    done = run("python", "viz/experts.py", "--run", "nowhere", "--out", "a.xyz")
    assert "has an unknown ending" in done.err


@pytest.mark.parametrize("script", ["rbf_hist", "experts", "training", "rules"])
def test_help(script):
    done = run("python", f"viz/{script}.py", "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"usage: {script} ")


def test_rules_as_text(runs, trained):
    words = ["--run", runs / "all", "--relation", "spouse", "--top", "3", "--text"]
    done = run("python", "viz/rules.py", *words)
    assert done.code == 0, done.err
    header, *rows = done.out.splitlines()
    assert header.split() == "weight coverage PCA conf. support body".split()
    found = heaviest_rules(trained[0], trained[1]["train"], "spouse", 3)
    assert [float(row.split()[0]) for row in rows] == pytest.approx(
        found.weight, abs=1e-3
    )
    assert rows[0].endswith(f"  {body_text(found.rules, 0)}")


# ---------------------------------------------------------------------------
# Numbers behind the pictures
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("learn_rbf", [False, True])
def test_panels(learn_rbf):
    # The threshold is that of the model.
    data = load_dataset("Families")["train"]
    model = KBLRN.from_data(data, "n", learn_rbf=learn_rbf, threshold=0.5)
    expert = model.experts["numerical"]
    assert isinstance(expert, NumericalExpert)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    panels = difference_panels(data, ["capital_of", "spouse"], model=model)
    names = [data.edge_types[p.relation][1] for p in panels]
    assert names == ["capital_of", "capital_of", "spouse"]
    features = numerical_features(data, 0.5)
    x = data["entity"].x.numpy()
    for panel in panels:
        head, tail = data[data.edge_types[panel.relation]].edge_index.numpy()
        difference = x[head, panel.attribute] - x[tail, panel.attribute]
        assert panel.centre == pytest.approx(np.nanmean(difference))
        assert panel.width == pytest.approx(np.nanstd(difference))
        (i,) = [
            i
            for i in range(*features.of(panel.relation).indices(len(features)))
            if features.attribute[i] == panel.attribute
        ]
        assert panel.weight == expert.weight[i].item()
        if learn_rbf:
            width = math.exp(expert.log_width[i].item())
            assert panel.learned == pytest.approx((expert.centre[i].item(), width))
        else:
            assert panel.learned is None


def test_panels_of_signs():
    data = load_dataset("Families")["train"]
    model = KBLRN.from_data(data, "n", numerical="sign")
    (panel,) = difference_panels(data, ["spouse"], model=model)
    assert not panel.has_rbf
    figure = plot_differences(data, ["spouse"], model=model)
    assert "weight of the sign" in figure.axes[0].get_xlabel()


def layered(threshold=0.5):
    data = load_dataset("Families")["train"]
    model = KBLRN.from_data(data, "n", numerical="layer", threshold=threshold)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return data, model


def own_unit(panel, compared):
    if panel.attribute.kind == "log_ratio":
        return math.exp(compared)
    if panel.attribute.kind == "haversine":
        return 2 * 6371 * math.asin(compared / (2 * 6371))
    return compared


def test_panels_of_layers():
    data, model = layered()
    expert = model.experts["numerical"]
    panels = layer_panels(data, expert, ["capital_of", "spouse"])
    names = [data.edge_types[p.relation][1] for p in panels]
    assert names[0] == "capital_of"
    assert names[-1] == "spouse"
    x = data["entity"].x
    for panel in panels:
        head, tail = data[data.edge_types[panel.relation]].edge_index
        rows = x[head].tolist(), x[tail].tolist()
        pairs = (naive_layers.compared(panel.attribute, *pair) for pair in zip(*rows))
        expected = [own_unit(panel, one) for one in pairs if one is not None]
        assert panel.values == pytest.approx(np.array(expected))
        # A pair whose numbers compare as a knot has the value of the knot.
        assert len(panel.knots) == len(panel.learned)
    (one,) = layer_panels(data, expert, ["spouse"], "birth_year")
    i = int(expert.feature_ptr[one.relation])
    assert (one.no_head, one.no_tail) == tuple(expert.missing[i].tolist())
    with pytest.raises(
        DataError, match="has no layer for 'height'; it has: birth_year"
    ):
        layer_panels(data, expert, ["spouse"], "height")
    with pytest.raises(DataError, match="has no layer; it has: none"):
        layer_panels(data, expert, ["likes"])


@pytest.mark.parametrize("log", [False, True])
def test_layers_are_drawn_as_they_are(log):
    data, model = layered()
    figure = plot_differences(data, ["spouse", "located_in"], model=model, log=log)
    panels = layer_panels(data, model.experts["numerical"], ["spouse", "located_in"])
    drawn = [axis for axis in figure.axes if axis.get_ylabel() == "log-score"]
    assert len(drawn) == len(panels)
    for axis, panel in zip(drawn, panels):
        x, y = axis.lines[0].get_data()
        features = model.experts["numerical"].features
        i = next(
            i
            for i in range(*features.of(panel.relation).indices(len(features)))
            if features.attributes[int(features.pair[i])] == panel.attribute
        )
        part = slice(int(features.knot_ptr[i]), int(features.knot_ptr[i + 1]))
        knots = features.knot[part].tolist()
        for k, knot in enumerate(knots):  # at knots, and half-way between them
            between = (knot + knots[min(k + 1, len(knots) - 1)]) / 2
            for place in (knot, between):
                shown = own_unit(panel, place)
                if not x[0] <= shown <= x[-1]:
                    continue
                value = naive_layers.layer_value(knots, panel.learned.tolist(), place)
                found = panel.layer_at(np.array([shown]))
                assert found == pytest.approx(value, abs=1e-6)
        assert y == pytest.approx(panel.layer_at(x))
    assert_legible(figure)


def test_outliers_are_counted_and_not_drawn():
    data, model = layered()
    x = data["entity"].x.clone()
    head = data["entity", "spouse", "entity"].edge_index[0, 0]
    x[head, data.attribute_names.index("birth_year")] = 1e9
    data["entity"].x = x
    model = KBLRN.from_data(data, "n", numerical="layer")
    figure = plot_differences(data, ["spouse"], model=model)
    assert figure.axes[0].get_xlim()[1] < 1000
    number = int((data["entity", "spouse", "entity"].edge_index == head).sum())
    assert f"triples, {number} of them outside" in figure.axes[0].get_xlabel()
    plain = plot_differences(data, ["spouse"])
    assert f"{number} of them are too far away to be drawn" in (
        plain.axes[0].get_xlabel()
    )


def test_one_attribute_is_drawn():
    data = load_dataset("Families")["train"]
    figure = plot_differences(data, ["capital_of"], attribute="latitude", log=True)
    assert len(figure.axes) == 1
    assert figure.axes[0].get_xlabel().startswith("latitude")
    with pytest.raises(DataError, match="no such attribute: 'x'; there are: latitude"):
        plot_differences(data, ["capital_of"], attribute="x")


@pytest.mark.parametrize("has_layers", [False, True])
@pytest.mark.parametrize("size", [1, 3e4])
def test_logarithmic_axes_have_round_ticks(has_layers, size):
    data = copy.copy(load_dataset("Families")["train"])
    data["entity"].x = size * data["entity"].x
    given = {"model": KBLRN.from_data(data, "n", numerical="layer")}
    given = given if has_layers else {}
    figure = plot_differences(
        data, ["spouse"], attribute="birth_year", log=True, **given
    )
    figure.canvas.draw()
    ticks = figure.axes[0].get_xticks()
    assert 0 in ticks
    assert len(ticks) >= 3
    for tick in ticks[ticks != 0]:
        digits = f"{abs(tick):e}".split("e")[0].rstrip("0.")
        assert digits in ("1", "2", "5")
    labels = [one.get_text() for one in figure.axes[0].get_xticklabels()]
    assert len(set(labels)) == len(ticks)
    assert any("k" in label for label in labels) == (size > 1)


def test_an_axis_of_zeros_can_be_logarithmic():
    data = copy.copy(load_dataset("Families")["train"])
    x = data["entity"].x
    data["entity"].x = torch.where(x.isnan(), x, torch.ones_like(x))
    figure = plot_differences(data, ["spouse"], attribute="birth_year", log=True)
    assert 0 in figure.axes[0].get_xticks()


def test_panels_need_the_same_features():
    data = load_dataset("Families")["train"]
    model = KBLRN.from_data(data, "n", threshold=0.99)
    with pytest.raises(DataError, match="other numerical features"):
        difference_panels(data, ["spouse"], 0.9, model)


def test_caption_has_what_was_learned(trained):
    model, splits, _ = trained
    (panel,) = difference_panels(splits["train"], ["spouse"], model=model)
    figure = plot_differences(splits["train"], ["spouse"], model=model)
    caption = figure.axes[0].get_xlabel().replace("−", "-")
    assert f"learned: centre {panel.learned[0]:.2f}, " in caption
    assert caption.endswith(f"weight {panel.weight:.2f}")


def small_kb(seed):
    """A random knowledge base with random numbers, some of them unknown."""
    rng = random.Random(seed)
    triples, num_entities, num_relations = naive.random_kb(rng)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_entities, 3, generator=generator).double()
    x[torch.rand(x.shape, generator=generator) < 0.2] = torch.nan
    columns = tuple(
        torch.tensor(c).long() for c in (zip(*triples) if triples else ([], [], []))
    )
    names = [f"e{i}" for i in range(num_entities)]
    relations = [f"/base/r{i}" for i in range(num_relations)]
    return make_kb(names, relations, columns, x, ["a", "b", "c"])


@pytest.mark.parametrize("seed", range(40))
def test_neighbourhood(seed):
    data = small_kb(seed)
    facts = set(zip(*(c.tolist() for c in flat_triples(data))))
    edges = {frozenset((h, t)) for h, _, t in facts if h != t}
    hops, most = 1 + seed % 3, 1 + seed % 5
    distance, front = {0: 0}, {0}
    for hop in range(1, hops + 1):
        front = {e for f in front for edge in edges if f in edge for e in edge}
        for entity in front:
            distance.setdefault(entity, hop)
    if len(distance) == 1:
        with pytest.raises(DataError, match="no known facts"):
            neighbourhood(data, "e0", hops, most)
        return
    found = neighbourhood(data, "e0", hops, most)
    assert found.num_around == len(distance) - 1
    assert found.rings[0] == [0]
    drawn = {e: i for i, ring in enumerate(found.rings) for e in ring}
    assert len(drawn) == len(found.entities)  # each once
    assert all(distance[entity] == ring for entity, ring in drawn.items())
    assert 1 <= len(drawn) - 1 <= most
    if hops == 1:
        assert len(drawn) - 1 == min(most, len(distance) - 1)
    told = set()
    for link in found.links:
        for relation in link.relations:
            told.add((link.head, relation, link.tail))
            if link.both_ways:
                told.add((link.tail, relation, link.head))
    between = {(h, r, t) for h, r, t in facts if h != t and h in drawn and t in drawn}
    assert told <= between
    assert {f for f in between if 0 in (f[0], f[2])} <= told
    assert (told == between) == (found.num_links_left_out == 0)
    for entity in found.entities[1:]:  # each is connected to the ring within
        inner = found.rings[drawn[entity] - 1]
        assert any({h, t} & {entity} and {h, t} & {*inner} for h, _, t in told)
    x = data["entity"].x
    for entity in drawn:
        numbers = found.numbers[entity]
        assert all(x[entity, i] == value for i, value in numbers)
        assert len(numbers) == min(2, int((~x[entity].isnan()).sum()))


def test_numbers_of_drawn_relations_come_first():
    found = neighbourhood(load_dataset("Families")["train"], "Jora Crowgarth")
    data = load_dataset("Families")["train"]
    first = data.attribute_names[found.numbers[found.rings[0][0]][0][0]]
    assert first == "birth_year"


@pytest.mark.parametrize("settings", [{"hops": 0}, {"max_nodes": 0}])
def test_neighbourhood_mistakes(settings):
    with pytest.raises(ValueError, match="must be positive"):
        neighbourhood(small_kb(1), "e0", **settings)


def asked_kb(seed=5):
    """A random knowledge base that asks about some of its facts."""
    data = small_kb(seed)
    triples = flat_triples(data)
    return ask(data, tuple(column[::2] for column in triples))


def naive_lift(expert, data, relation):
    """One triple, one candidate at a time."""
    num_nodes, total = data["entity"].num_nodes, 0.0

    def score(*triple):
        return float(expert(*(torch.tensor([index]) for index in triple)))

    pairs = data[data.edge_types[relation]].edge_label_index.t().tolist()
    for head, tail in pairs:
        own = score(head, relation, tail)
        others = range(num_nodes)
        total += own - sum(score(head, relation, e) for e in others) / num_nodes
        total += own - sum(score(e, relation, tail) for e in others) / num_nodes
    return total / (2 * len(pairs))


@pytest.mark.parametrize("seed", [5, 7, 11])
def test_lifts(seed, monkeypatch):
    data = asked_kb(seed)
    module = sys.modules[mean_lifts.__module__]
    two_queries = 2 * data["entity"].num_nodes
    monkeypatch.setattr(module, "_MAX_SCORES", two_queries)
    model = KBLRN.from_data(
        data, "lrn", 4, scorer=["distmult", "transe"], threshold=0.3, dropout=0.5
    )
    num_asked = [data[kind].edge_label_index.size(1) for kind in data.edge_types]
    for relation in np.flatnonzero(num_asked):
        lifts = mean_lifts(model, data, int(relation))
        assert model.training
        model.eval()
        for name, lift in lifts.items():
            expected = naive_lift(model.experts[name], data, int(relation))
            assert lift == pytest.approx(expected, abs=1e-5)
        total = naive_lift(model, data, int(relation))
        assert sum(lifts.values()) == pytest.approx(total, abs=1e-5)
        model.train()


def test_a_negative_number_of_relations_is_refused(trained):
    model, splits, _ = trained
    with pytest.raises(
        ValueError, match=r"'max_relations' must not be negative \(got -1\)"
    ):
        contributions(model, splits["val"], max_relations=-1)


def test_contributions(trained):
    model, splits, _ = trained
    found = contributions(model, splits["test"], [splits["val"]], max_relations=4)
    counts = {
        r: splits["test"][kind].edge_label_index.size(1)
        for r, kind in enumerate(splits["test"].edge_types)
    }
    assert found.counts == sorted(counts.values(), reverse=True)[:4]
    assert found.counts == [counts[r] for r in found.relations]
    pairs = [(model, found.mrr)]
    for name, mrr in found.mrr_without.items():
        silent = copy.deepcopy(model)
        for parameter in silent.experts[name].parameters():
            parameter.data.zero_()
        pairs.append((silent, mrr))
    assert len(pairs) == 4
    for some, mrr in pairs:
        table = evaluate(some, splits["test"], [splits["val"]])
        for r, value in zip(found.relations, mrr):
            assert value == pytest.approx((1 / table.rank[table.relation == r]).mean())
    for i, r in enumerate(found.relations):
        lifts = mean_lifts(model, splits["test"], r)
        assert {name: values[i] for name, values in found.lifts.items()} == lifts
        for name, speaks in found.speaks.items():
            if not speaks[i]:
                assert found.mrr[i] == found.mrr_without[name][i]
                assert lifts[name] == 0
    assert not all(found.speaks["numerical"])


def test_contributions_of_chosen_relations(trained):
    model, splits, _ = trained
    found = contributions(model, splits["val"], relations=["spouse", "likes"])
    names = [splits["val"].edge_types[r][1] for r in found.relations]
    assert names == ["likes", "spouse"]
    assert found.speaks["numerical"] == [False, True]
    numbers = contributions(model, splits["val"], expert="numerical")
    assert all(numbers.speaks["numerical"])
    assert len(numbers.relations) == 8


class Popularity(Expert):
    """An expert of one's own, which has only what it must have."""

    def __init__(self, num_nodes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(num_nodes))

    def forward(self, head_index, rel_type, tail_index):
        return self.weight[tail_index]


@pytest.mark.parametrize("experts", ["n", "l", "lr", ["r", Popularity(10)]])
def test_contributions_of_few_and_of_own_experts(experts):
    data = asked_kb()
    if isinstance(experts, list):
        experts = [experts[0], Popularity(data["entity"].num_nodes)]
    settings = {"n": {"threshold": 0.3}, "l": {"hidden_channels": 4}}
    model = KBLRN.from_data(data, experts, **settings.get(experts[0], {}))
    found = contributions(model, data)
    assert list(found.lifts) == list(model.experts)
    assert set(found.mrr_without) == (set(found.lifts) if len(experts) > 1 else set())
    figure = plot_contributions(data, found)
    words = [text for text, _ in drawn_texts(figure)]
    assert [f"without {name}" for name in found.mrr_without] == [
        word for word in words if word.startswith("without ")
    ]
    assert_legible(figure)


def test_any_number_of_experts():
    names = [f"expert_{i}_$" for i in range(9)]
    values = {name: [0.1 * i, -1.0] for i, name in enumerate(names)}
    speaks = {name: [True, i % 2 == 0] for i, name in enumerate(names)}
    found = Contributions([0, 1], [5, 3], speaks, values, [0.5, 0.2], values)
    figure = plot_contributions(two_relations(), found)
    words = [text for text, _ in drawn_texts(figure)]
    assert words.count("no effect") == 4
    assert {f"{name} expert" for name in names} <= set(words)
    colours = {(bar.get_facecolor(), bar.get_hatch()) for bar in figure.axes[0].patches}
    assert len(colours) == len(names)
    assert_legible(figure)


def two_relations():
    columns = tuple(torch.tensor(c) for c in ([0, 1], [0, 1], [1, 0]))
    return make_kb(["a", "b"], ["one", "two"], columns)


def test_nothing_to_contribute_to():
    data = small_kb(5)
    empty = torch.empty(0, dtype=torch.long)
    model = KBLRN.from_data(data, "l", 4)
    with pytest.raises(DataError, match="does not ask about any relation"):
        contributions(model, ask(data, (empty, empty, empty)))
    asked = ask(data, tuple(column[:1] for column in flat_triples(data)))
    unasked = data.edge_types[-1][1]
    with pytest.raises(DataError, match=f"no triple .* '{unasked}'"):
        contributions(model, asked, relations=[unasked])


def test_heaviest_rules(trained):
    model, splits, _ = trained
    found = heaviest_rules(model, splits["train"], "parent_of", 6)
    relations = [relation for _, relation, _ in splits["train"].edge_types]
    r = relations.index("parent_of")
    everything = mine_rules(splits["train"])
    weight_of = {}
    for i, (head, body) in enumerate(
        zip(everything.head.tolist(), everything.bodies())
    ):
        if head == r:
            weight_of[body] = model.experts["relational"].weight[i].item(), i
    assert found.num_rules == len(weight_of)
    heaviest = sorted(weight_of, key=lambda body: -abs(weight_of[body][0]))[:6]
    expected = sorted(heaviest, key=lambda body: -weight_of[body][0])
    assert found.rules.bodies() == expected
    places = [weight_of[body][1] for body in expected]
    assert found.weight.tolist() == [weight_of[body][0] for body in expected]
    for name in ("support", "head_size", "body_size", "pca_body_size"):
        wanted = getattr(everything, name)[places]
        assert getattr(found.rules, name).tolist() == wanted.tolist(), name


def test_no_rules():
    data = small_kb(5)
    rules = mine_rules(data).filter(relations=[])
    model = KBLRN.from_data(data, "r", rules=rules)
    with pytest.raises(DataError, match=r"no rules for the relation '/base/r0'"):
        heaviest_rules(model, data, "r0")


@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_rules_without_measures_are_measured(seed, self_loops):
    """An entity with no other fact of the relation than a self-loop counts for PCA."""
    data = small_kb(seed)
    settings = {"min_head_coverage": 0, "parallel": True, "self_loops": self_loops}
    measured = mine_rules(data, **settings)
    if len(measured) == 0:
        return
    bare = RuleSet(
        measured.relations,
        measured.head,
        measured.steps,
        measured.parallel,
        *[np.full(len(measured), -1)] * 4,
        np.zeros(len(measured), bool),
        measured.semantics,
    )
    model = KBLRN.from_data(data, "r", rules=bare)
    for r in sorted(set(measured.head.tolist())):
        found = heaviest_rules(model, data, measured.relations[r], len(measured))
        wanted = {
            body: (
                measured.support[i],
                measured.head_size[i],
                measured.pca_body_size[i],
            )
            for i, body in enumerate(measured.bodies())
            if measured.head[i] == r
        }
        rules = found.rules
        shown = zip(rules.support, rules.head_size, rules.pca_body_size)
        assert dict(zip(rules.bodies(), shown)) == wanted


def test_histories(runs):
    lines = [json.loads(line) for line in (runs / "all/log.jsonl").open()]
    first, second = read_histories([runs / "all", runs / "latent", runs / "all"])
    assert (first.name, second.name) == ("all", "latent")
    assert first.loss == {line["epoch"]: line["loss"] for line in lines}
    assert first.mrr == {line["epoch"]: line["val"]["mrr"] for line in lines}
    best = max(lines, key=lambda line: line["val"]["mrr"])
    assert first.best_epoch == best["epoch"]


def test_history_of_the_first_validation_set(tmp_path):
    line = {"epoch": 2, "loss": 1.5, "small": {"mrr": 0.25}, "large": {"mrr": 0.5}}
    (tmp_path / "log.jsonl").write_text(json.dumps(line) + "\n")
    (history,) = read_histories([tmp_path])
    assert (history.loss, history.mrr) == ({2: 1.5}, {2: 0.25})


def test_runs_of_one_name_are_told_apart(tmp_path):
    for name in ("a/run", "b/run", "b/other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "log.jsonl").write_text('{"epoch": 5, "loss": 1.5}\n')
    found = read_histories([tmp_path / "a/run", tmp_path / "b/run"])
    assert [history.name for history in found] == ["a/run", "b/run"]
    assert found[0] == History("a/run", {5: 1.5}, {})
    assert found[0].best_epoch is None
    (legend,) = plot_training(found).legends
    assert legend.get_texts()[0].get_text() == "a/run, not validated"


@pytest.mark.parametrize(
    "text", ["{", "[1]", '{"epoch": 1}', '{"epoch": 1, "loss": ""}']
)
def test_damaged_logs(text, tmp_path):
    (tmp_path / "log.jsonl").write_text(text + "\n")
    with pytest.raises(DataError, match=r"log\.jsonl: is not the log of a run"):
        read_histories([tmp_path])


def test_too_few_epochs_or_too_many_runs():
    with pytest.raises(DataError, match="no epoch has been logged"):
        plot_training([History("a", {}, {})])
    with pytest.raises(DataError, match="at most 21 runs"):
        plot_training([History(str(i), {1: 1.0}, {}) for i in range(22)])


def test_short_names_differ():
    names = ["/a/x/b/c", "/a/x/d/c", "/x/b/c", "/q/x/d/c", "/c/r/c", "other"]
    short = short_names(names)
    assert len(set(short)) == len(names)
    assert short[-1] == "other"


@pytest.mark.parametrize(
    ("attribute", "value", "text"),
    [
        ("sports_team.founded", 1899.5, "1899"),
        ("birth_year", -427.0, "−427"),
        ("legend", 1899.5, "1,900"),
        ("height", 1.854321, "1.854"),
        ("longitude", -0.5, "−0.5"),
        ("growth_per_year", -0.02, "−0.02"),
        ("end_longitude", 2.35, "2.35"),
        ("mass", 6.567e24, "6.567e+24"),
        ("population", 1234567.0, "1,234,567"),
    ],
)
def test_value_text(attribute, value, text):
    assert value_text(attribute, value) == text


# ---------------------------------------------------------------------------
# Explanations
# ---------------------------------------------------------------------------

HEAD, TAIL, OSCAR, NOBEL = (
    Named(i, name, name) for i, name in enumerate(["Ada", "Ben", "Oscar", "Nobel"])
)
AWARD, LIKES = Named(0, "award", "award"), Named(1, "likes", "likes")

# The facts of a path, the entities between head and tail, and the arrows.
CHAINS = [
    ([(HEAD, LIKES, TAIL)], [], [(LIKES, True)]),
    ([(TAIL, LIKES, HEAD)], [], [(LIKES, False)]),
    (
        [(HEAD, LIKES, TAIL), (TAIL, AWARD, HEAD)],
        [],
        [(LIKES, True), (AWARD, False)],
    ),
    (
        [(HEAD, AWARD, OSCAR), (TAIL, AWARD, OSCAR)],
        [OSCAR],
        [(AWARD, True), (AWARD, False)],
    ),
    (
        [(HEAD, LIKES, HEAD), (HEAD, LIKES, TAIL)],
        [HEAD],
        [(LIKES, True), (LIKES, True)],
    ),
    (
        [(HEAD, LIKES, TAIL), (TAIL, LIKES, TAIL)],
        [TAIL],
        [(LIKES, True), (LIKES, True)],
    ),
    (
        [(HEAD, AWARD, OSCAR), (NOBEL, LIKES, OSCAR), (NOBEL, LIKES, TAIL)],
        [OSCAR, NOBEL],
        [(AWARD, True), (LIKES, False), (LIKES, True)],
    ),
    # Those that do not reach one of the ends, or both.
    ([(HEAD, AWARD, OSCAR)], [OSCAR], [(AWARD, True), None]),
    ([(TAIL, AWARD, OSCAR)], [OSCAR], [None, (AWARD, False)]),
    ([(OSCAR, LIKES, NOBEL)], [OSCAR, NOBEL], [None, (LIKES, True), None]),
    (
        [(HEAD, AWARD, OSCAR), (TAIL, AWARD, NOBEL)],
        [OSCAR, NOBEL],
        [(AWARD, True), None, (AWARD, False)],
    ),
]


@pytest.mark.parametrize(("facts", "middles", "steps"), CHAINS)
def test_chain(facts, middles, steps):
    path = [NamedFact(*fact) for fact in facts]
    assert Chain.of(path, HEAD, TAIL) == Chain(tuple(middles), tuple(steps))


def make_reasons(**parts):
    one = Standing(0.5, 1, {name: 2.0 for name in parts}, 99)
    parts = {name: tuple(several) for name, several in parts.items()}
    return Reasons(HEAD, LIKES, TAIL, False, parts, one, one)


def of_path(value, *facts, num_paths=1):
    path = tuple(NamedFact(*fact) for fact in facts)
    return Reason(value, ("some path",), (), (path,), num_paths)


def test_paths_of_any_expert_are_drawn():
    awards = of_path(-3.0, (HEAD, AWARD, OSCAR), num_paths=4)
    direct = of_path(1.0, (HEAD, LIKES, TAIL))
    number = Reason(0.25, (Named(0, "birth_year", "b"),), ("1910 − 1962 = −52",))
    reasons = make_reasons(
        first=[direct],
        second=[Reason(5.0, ("weight of evidence",), ("a note",)), awards],
        third=[number],
        fourth=[Reason(2.0, ("Popularity",))],
        popularity=[Reason(1.5, ("Popularity",))],
        fifth=[Reason(0.0, ("nothing holds",))],
    )
    figure = plot_explanation(reasons)
    words = [text for text, _ in drawn_texts(figure)]
    # The strongest path is the first one, whichever expert it is of.
    bars = {"second": "path 1", "first": "path 2", "third": "birth year"}
    for expert, bar in bars.items():
        assert words.index(expert) < words.index(bar)
    for text in ("Oscar\nand 3 more", "weight of evidence", "a note", "nothing holds"):
        assert text in words
    assert {"1910 − 1962 = −52", "fourth (Popularity)", "popularity", "fifth"} <= set(
        words
    )
    arrows = [text for text in figure.axes[0].texts if hasattr(text, "arrow_patch")]
    assert len(arrows) == 2  # none from the award to the tail
    assert_legible(figure)


def test_every_chain_is_legible():
    paths = [of_path(9.0 - i, *facts) for i, (facts, *_) in enumerate(CHAINS)]
    figure = plot_explanation(make_reasons(one=paths), max_parts=len(paths))
    assert_legible(figure)
    cut = plot_explanation(make_reasons(one=paths, two=paths[:1]), max_parts=2)
    words = [text for text, _ in drawn_texts(cut)]
    assert "9 more" in words
    total = sum(9.0 - i for i in range(1, len(CHAINS)))
    assert f"and {len(CHAINS) - 1} more, together +{total:.3f}" in words
    assert any(
        "no part" in text
        for text, _ in drawn_texts(
            plot_explanation(make_reasons(one=[Reason(1.0, ("Popularity",))]))
        )
    )


# ---------------------------------------------------------------------------
# Legibility
# ---------------------------------------------------------------------------


def drawn_texts(figure):
    """The texts of a figure as it is saved, with their places."""
    drawn, draw = [], Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn.append((text.get_text(), text.get_window_extent(renderer)))
        draw(text, renderer)

    figure.set_dpi(150)
    with mock.patch.object(Text, "draw", record):
        figure.canvas.draw()
    return drawn


def illegible_texts(figure):
    """Pairs of texts that cover each other, and texts that the edge cuts."""
    texts = drawn_texts(figure)
    frame = figure.bbox.padded(1)
    pairs = [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(texts, 2)
        if a.padded(-1).overlaps(b.padded(-1))
    ]
    corners = [(text, (box.p0, box.p1)) for text, box in texts]
    return pairs + [t for t, ps in corners if not all(frame.contains(*p) for p in ps)]


def assert_legible(figure):
    assert illegible_texts(figure) == []


def test_the_overlap_of_texts_is_seen():
    figure = pyplot.figure()
    figure.text(0.5, 0.5, "one text")
    figure.text(0.51, 0.5, "another")
    figure.text(0.95, 0.2, "over the edge")
    assert illegible_texts(figure) == [("one text", "another"), "over the edge"]


def test_legible_differences(trained):
    model, splits, _ = trained
    names = ["spouse", "parent_of", "located_in", "capital_of"]
    assert_legible(plot_differences(splits["train"], names, model=model))


def test_legible_contributions(trained):
    model, splits, _ = trained
    found = contributions(model, splits["val"], relations=["spouse", "likes"])
    assert_legible(plot_contributions(splits["val"], found))


def test_legible_rules(trained):
    model, splits, _ = trained
    for relation in ("spouse", "grandparent_of"):
        assert_legible(plot_rules(heaviest_rules(model, splits["train"], relation)))


def test_legible_training():
    histories = [
        History(f"run-{i}", {e: 5 / (e + i) for e in range(1, 30)}, {9: 0.1 * i})
        for i in range(1, 9)
    ]
    assert_legible(plot_training(histories))


def test_legible_fragments():
    data = load_dataset("Families")["train"]
    for i, entity in enumerate(data["entity"].name[::300]):
        assert_legible(plot_fragment(data, entity, hops=1 + i % 2))
        pyplot.close("all")


def test_hubs_have_a_note():
    data = load_dataset("Families")["train"]
    head, _, tail = flat_triples(data)
    hub = int(torch.cat([head, tail]).bincount().argmax())
    near = {*head[tail == hub].tolist(), *tail[head == hub].tolist()} - {hub}
    figure = plot_fragment(data, data["entity"].name[hub], max_nodes=7)
    notes = [text.get_text() for text in figure.texts]
    assert any(note.startswith(f"7 of {len(near)} neighbours") for note in notes)


def test_names_are_no_mathematics():
    names = ["Ke$ha", "A$AP_{x}^{", "$1 \\frac"]
    columns = tuple(torch.tensor(c) for c in ([0, 0, 1], [0, 1, 1], [1, 2, 0]))
    x = torch.tensor([[1.0], [2.0], [3.0]]).double()
    data = make_kb(names, ["owes_$", "$^{spent"], columns, x, ["net_$_worth^{"])
    model = KBLRN.from_data(data, "lrn", 4, rules=mine_rules(data))
    for figure in (
        plot_fragment(data, "Ke$ha"),
        plot_differences(data, ["owes_$"], model=model),
        plot_contributions(data, contributions(model, data)),
        plot_rules(heaviest_rules(model, data, "owes_$")),
    ):
        assert_legible(figure)


# ---------------------------------------------------------------------------
# The paper's data
# ---------------------------------------------------------------------------


@pytest.mark.data
def test_ages_of_spouses_and_of_generations(paper_data):
    """Couples are of one age; children are far from it, and so is influence."""
    small = paper_data("FB15k-237")["train"]
    couple, influence = difference_panels(small, ["marriage/spouse", "influenced_by"])
    assert small.attribute_names[couple.attribute] == "date_of_birth"
    assert abs(couple.centre) < 1
    assert influence.centre > 50
    large = paper_data("FB15k")["train"]
    children, parents = difference_panels(
        large, ["/people/person/children", "/people/person/parents"]
    )
    assert large.attribute_names[children.attribute] == "date_of_birth"
    assert children.centre < -20
    assert parents.centre > 20


@pytest.mark.data
def test_legible_fragments_of_freebase(paper_data):
    data = paper_data("FB15k-237")["train"]
    for entity in ("Germany", "Isaac Newton", "Barack Obama"):
        figure = plot_fragment(data, entity)
        assert_legible(figure)
    assert any(" of 49 neighbours" in text.get_text() for text in figure.texts)


def test_names_of_runs_mean_themselves():
    names = ["_run", r"$\bad$", "lr$1e-3$_"]
    figure = plot_training([History(name, {1: 1.0}, {1: 0.5}) for name in names])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text().split(",")[0] for text in legend.get_texts()] == names
    assert not any(text.get_parse_math() for text in legend.get_texts())


@pytest.mark.parametrize("keep_end", [False, True])
@pytest.mark.parametrize("text", ["x" * 5000, "word " * 1000])
def test_what_can_never_fit_is_not_measured(monkeypatch, text, keep_end):
    measured = []

    def width(text, *_):
        measured.append(text)
        return 0.06 * len(text)

    monkeypatch.setattr(fitting, "text_width", width)
    lines = fitting.fit(text, 9, 1.5, 2, keep_end)
    assert 1 <= len(lines) <= 2
    assert "…" in "".join(lines)
    assert sum(map(len, measured)) < 50_000
