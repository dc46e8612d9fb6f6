"""Tables go out as CSV, JSON, Parquet, N-Triples, data frames and HTML, and come back."""

import csv
import io
import json
from html.parser import HTMLParser
from urllib.parse import unquote

import numpy as np
import pandas
import pyarrow.parquet
import pyoxigraph
import pytest
import torch
from scripts import run

from kblrn_pyg import KBLRN
from kblrn_pyg.data import DataError, flat_triples, make_kb
from kblrn_pyg.data.write_ntriples import ntriples
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.evaluation import Report, evaluate
from kblrn_pyg.frames import html_table
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.predict import complete, predict_tails, score_triples
from kblrn_pyg.rules import RuleSet, mine_rules

HOSTILE = "<script>alert('&\"x')</script>"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


@pytest.fixture(scope="module")
def splits():
    return load_dataset("Families")


@pytest.fixture(scope="module")
def model(splits):
    torch.manual_seed(0)
    model = KBLRN.from_data(splits["train"], "lrn", 8, reciprocal=True).eval()
    row = torch.ones(model.num_relations, dtype=torch.double)
    model.calibration = Calibration(row, row, row.long())
    return model


@pytest.fixture(scope="module")
def hostile():
    names = ["Ada", HOSTILE, "=1+1", "b c"]
    kb = make_kb(
        names,
        [HOSTILE, "http://x/knows"],
        tuple(torch.tensor(i) for i in ([0, 1], [0, 1], [1, 2])),
    )
    torch.manual_seed(0)
    return KBLRN.from_data(kb, "l", 4).eval()


class Texts(HTMLParser):
    """Reads the cells of tables, and notes all tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.text = set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        self.text += data
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


TAGS = {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}


# --- scores of given triples -------------------------------------------------------


def some_triples(model, number, seed=0):
    rng = np.random.default_rng(seed)
    ids = [
        rng.integers(n, size=number)
        for n in (model.num_nodes, model.num_relations, model.num_nodes)
    ]
    facts = np.stack(flat_triples(model.kb))[:, ::997]
    return np.concatenate([np.stack(ids), facts], axis=1)


def test_scores_are_those_of_the_model(model):
    ids = some_triples(model, 5000)
    ids = np.concatenate([ids, ids[:, :7]], axis=1)
    names = model.vocabulary
    rows = [
        (
            names.entities.identifiers[h],
            names.relations.identifiers[r],
            names.entities.identifiers[t],
        )
        for h, r, t in ids.T.tolist()
    ]
    found = score_triples(model, rows)
    given = list(map(tuple, ids.T.tolist()))
    assert len(set(given)) < len(given)  # each row has its score
    assert (
        list(zip(found.head.tolist(), found.rel.tolist(), found.tail.tolist())) == given
    )
    h, r, t = (torch.tensor(column) for column in zip(*given))
    with torch.no_grad():
        parts = model.score_experts(h, r, t)
    for name, part in parts.items():
        np.testing.assert_allclose(found.parts[name], part.numpy(), atol=1e-4)
    np.testing.assert_allclose(
        found.calibrated, 1 / (1 + np.exp(-(found.score + 1))), atol=1e-9
    )
    facts = set(zip(*(c.tolist() for c in flat_triples(model.kb))))
    assert found.known.tolist() == [one in facts for one in given]
    assert found.known.any()
    assert "more triples" in str(found)


def test_unknown_names(model):
    rows = [
        ("Ada Crowgarth", "likes", "Nobody"),
        ("Ada Crowgarth", "likes", "Quarstead"),
    ]
    with pytest.raises(DataError, match="unknown entity 'Nobody'"):
        score_triples(model, rows)
    found = score_triples(model, rows, skip_unknown=True)
    assert (len(found), found.num_unknown) == (1, 1)
    with pytest.raises(DataError, match="known names only"):
        score_triples(model, rows[:1], skip_unknown=True)


def test_score_command(model, tmp_path):
    model.save(tmp_path / "model.pt")
    file = tmp_path / "triples.csv"
    file.write_text(
        "head,relation,tail\nAda Crowgarth,likes,Quarstead\nAda Crowgarth,born_in,Nowhere\n"
    )
    words = ("kblrn", "score", tmp_path / "model.pt", file)
    done = run(*words)
    assert done.code == 2
    assert f"{file}: unknown entity 'Nowhere'" in done.err
    assert "--skip-unknown" in done.err
    done = run(*words, "--skip-unknown")
    assert done.out.splitlines()[0].split() == [
        *("head", "relation", "tail", "score", "calibrated"),
        *("score_latent", "score_relational", "score_numerical", "known"),
    ]
    assert "1 triples with unknown names left out" in done.err
    done = run(*words, "--skip-unknown", "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(done.out)))) == 1
    for ending in ("csv", "json", "parquet", "nt"):
        out = tmp_path / f"out.{ending}"
        done = run(*words, "--skip-unknown", "--out", out)
        assert (done.code, out.exists()) == (0, True), done.err
    assert (
        next(csv.DictReader((tmp_path / "out.csv").open()))["head"] == "Ada Crowgarth"
    )
    for more, message in (
        (["--format", "parquet"], "expected --out"),
        (["--statement", "star"], "--statement has no effect"),
        (["--out", tmp_path], "is a directory"),
    ):
        done = run(*words, *more)
        assert (done.code, message in done.err) == (2, True), done.err


# --- tables of triples -------------------------------------------------------------


def tables(model):
    rows = [
        ("Ada Crowgarth", "likes", "Quarstead"),
        ("Ada Crowgarth", "born_in", "Quarstead"),
    ]
    return [
        predict_tails(model, "Ada Crowgarth", "likes", k=4),
        complete(model, 3),
        score_triples(model, rows),
    ]


@pytest.mark.parametrize("which", range(3))
def test_all_formats_say_the_same(model, which, tmp_path):
    table = tables(model)[which]
    frame = table.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(table) > 0
    rows = json.loads(json.dumps(table.to_json()))
    read = list(csv.DictReader(io.StringIO(table.to_csv())))
    table.to_parquet(tmp_path / "t.parquet")
    stored = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert len(rows) == len(read) == len(stored) == len(table)
    for one, texts, other, (_, values) in zip(rows, read, stored, frame.iterrows()):
        assert one == other
        assert list(one) == list(texts) == list(frame.columns)
        for name, value in one.items():
            assert str(value) == texts[name] or float(texts[name]) == value
            assert values[name] == value
    shown = Texts(table._repr_html_())
    header, cells = table.shown()
    assert shown.rows[0] == header
    assert len(shown.rows) == 1 + len(cells)
    assert shown.tags <= TAGS


@pytest.mark.parametrize("statement", ["plain", "star", "reified"])
def test_ntriples_are_read_by_others(model, statement):
    table = tables(model)[0]
    text = table.to_ntriples(statement)
    quads = list(
        pyoxigraph.parse(
            io.BytesIO(text.encode()), format=pyoxigraph.RdfFormat.N_TRIPLES
        )
    )
    wanted = {("Ada%20Crowgarth", one.tail.replace(" ", "%20")) for one in table}
    if statement == "plain":
        ends = [(q.subject, q.object) for q in quads]
    elif statement == "star":
        ends = [
            (q.object.subject, q.object.object)
            for q in quads
            if q.predicate.value == RDF + "reifies"
        ]
    else:
        by_node = {}
        for quad in quads:
            by_node.setdefault(quad.subject, {})[quad.predicate.value] = quad.object
        ends = [(one[RDF + "subject"], one[RDF + "object"]) for one in by_node.values()]
    found = {tuple(end.value.rpartition(":")[2] for end in pair) for pair in ends}
    assert len(ends) == len(table)
    assert {pair[0] for pair in found} == {"Ada%20Crowgarth"}
    assert len(found) == len(wanted)
    sure = [
        float(q.object.value)
        for q in quads
        if q.predicate.value.endswith("probability")
    ]
    assert sure == ([] if statement == "plain" else [one.calibrated for one in table])


@pytest.mark.parametrize(
    "name",
    [
        HOSTILE,
        "a\nb",
        "ümläut <x>",
        'q"uote',
        "back\\slash",
        "",
        "http://x y",
        "{a}:b",
        "%20",
        "🦊",
    ],
)
def test_any_name_is_a_node(name):
    triples = [
        ((name, name, name), 0.25),
        (("http://x/a", "<http://x/b>", "_:c1"), None),
    ]
    for statement in ("plain", "star", "reified"):
        text = "".join(ntriples(triples, statement))
        quads = list(
            pyoxigraph.parse(
                io.BytesIO(text.encode()), format=pyoxigraph.RdfFormat.N_TRIPLES
            )
        )
        assert len(quads) == text.count("\n")
    first = next(ntriples(triples)).split(" ")[0]
    assert unquote(first[1:-1].removeprefix("urn:kblrn:entity:")) == name
    lines = list(ntriples(triples))
    assert lines[1] == "<http://x/a> <http://x/b> _:c1 .\n"
    with pytest.raises(ValueError, match="'statement' must be one of"):
        next(ntriples(triples, "x"))


def test_identifiers_are_written_and_not_labels():
    kb = make_kb(
        ["Paris", "Paris"],
        ["r"],
        (torch.tensor([0]), torch.tensor([0]), torch.tensor([1])),
        identifiers=["http://x/1", "http://x/2"],
    )
    table = predict_tails(KBLRN.from_data(kb, "l", 4), 0, 0)
    assert "<http://x/2>" in table.to_ntriples()


def test_formulas_are_harmless(hostile):
    table = predict_tails(hostile, "Ada", 0)
    assert any(
        row["tail"] == "'=1+1" for row in csv.DictReader(io.StringIO(table.to_csv()))
    )


# --- notebooks ---------------------------------------------------------------------


def test_hostile_names_are_text(hostile):
    rules = RuleSet.build([HOSTILE, "s"], head=[1], steps=[[0]])
    report = Report.of(evaluate(hostile, hostile.kb))
    shown = [
        predict_tails(hostile, "Ada", HOSTILE),
        score_triples(hostile, [("Ada", HOSTILE, HOSTILE)]),
        hostile.explain("Ada", HOSTILE, HOSTILE),
        rules,
        report,
        hostile,
    ]
    for one in shown:
        text = one._repr_html_()
        assert Texts(text).tags <= TAGS, one
    for one in shown[:5]:
        assert HOSTILE in Texts(one._repr_html_()).text


def test_long_tables_are_cut():
    text = html_table(["a"], [[i] for i in range(150)])
    assert (text.count("<tr>"), "50 more rows" in text) == (101, True)


def test_explanations_show_all_parts(model):
    reasons = model.explain("Ada Crowgarth", "likes", "Quarstead")
    rows = Texts(reasons._repr_html_()).rows
    parts = [part for parts in reasons.parts.values() for part in parts]
    assert sum(row[0] in model.experts and len(row) == 4 for row in rows) == len(parts)


# --- frames of metrics, ranks and rules --------------------------------------------


def test_frames_of_ranks_and_metrics(model, splits):
    table = evaluate(
        model, splits["test"], [splits["val"]], relations=["spouse", "likes"]
    )
    frame = table.to_frame()
    assert len(frame) == len(table)
    assert set(frame.relation) == {"spouse", "likes"}
    assert (1 / frame["rank"]).mean() == pytest.approx(table.metrics().mrr)
    by_side = frame.groupby("side")["rank"].mean()
    assert by_side["head"] == pytest.approx(table.metrics(table.mask(side="head")).mr)
    one = table.metrics().to_frame()
    assert (len(one), one["mrr"][0]) == (1, table.metrics().mrr)
    whole = Report.of(table).to_frame()
    likes = whole[(whole.group == "relation") & (whole.name == "likes")]
    assert likes["mrr"].item() == table.metrics(table.mask(["likes"])).mrr
    assert Texts(table._repr_html_()).rows[0][:3] == ["count", "mr", "mrr"]


def test_frames_of_rules(splits):
    rules = mine_rules(splits["train"])
    frame = rules.to_frame()
    assert len(frame) == len(rules)
    assert frame.support.tolist() == rules.support.tolist()
    best = frame.loc[frame.pca_confidence.idxmax()]
    assert f"{best.relation}(h, t) ⇐ {best.body}" in str(rules)
    unknown = RuleSet.build(["a", "b"], head=[1], steps=[[0]]).to_frame()
    assert unknown.support.isna().all()


def test_the_model_says_what_it_has(model):
    rows = Texts(model._repr_html_()).rows
    assert [row[0] for row in rows[1:]] == list(model.experts)
    assert "calibrated" in model._repr_html_()


def test_complete_says_why_there_is_nothing(model, tmp_path):
    towns = torch.arange(2, 14)
    facts = (towns, torch.zeros_like(towns), towns % 2)
    names = [f"e{i}" for i in range(14)]
    answered = KBLRN.from_data(make_kb(names, ["in"], facts), "l", 4)
    answered.save(tmp_path / "answered.pt")
    done = run("kblrn", "complete", tmp_path / "answered.pt", "--format", "csv")
    assert len(done.out.splitlines()) == 1
    assert "single-valued relations get no second answer" in done.err
    model.save(tmp_path / "model.pt")
    words = ("kblrn", "complete", tmp_path / "model.pt", "--k", 5)
    done = run(*words, "--min-probability", 1)
    assert "--min-probability 1 keeps 0 of the 5 best triples" in done.err
    assert run(*words).err == ""
