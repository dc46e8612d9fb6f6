"""The JSON interface: right answers, exact reasons, and nothing else gets in."""

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
import torch
from scripts import REPOSITORY, run
from served import HOSTILE, RELATIONS, make_data, make_model

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("httpx2", reason="httpx2 is not installed")

from fastapi.testclient import TestClient

from kblrn_pyg.app import Engine, create_app
from kblrn_pyg.app import engine as engine_module
from kblrn_pyg.app.engine import Query
from kblrn_pyg.app.histograms import histograms
from kblrn_pyg.app.search import NameIndex
from kblrn_pyg.app.slots import Slots
from kblrn_pyg.data import flat_triples
from kblrn_pyg.nn.calibration import Calibration

STATIC = REPOSITORY / "kblrn_pyg" / "app" / "static"
PERSON = "Person 7"


def client_of(model, **options):
    return TestClient(create_app(model, **options), base_url="http://localhost")


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def client(model):
    return client_of(model, title="A <b>title</b>")


def ask(client, path, status=200, **query):
    found = client.get(f"/api/{path}", params=query)
    assert found.status_code == status, found.text
    return found.json()


# --- answers ----------------------------------------------------------------------


@pytest.mark.parametrize("novel", [False, True])
@pytest.mark.parametrize("side", ["tail", "head"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_answers_are_those_of_the_model(model, client, relation, side, novel):
    query = {"entity": PERSON, "relation": relation, "side": side, "novel": novel}
    found = ask(client, "answers", k=36, **query)
    if side == "tail":
        wanted = model.predict_tails(PERSON, relation, k=36, novel=novel)
    else:
        wanted = model.predict_heads(relation, PERSON, k=36, novel=novel)
    assert len(found["answers"]) == len(wanted)
    for row, one in zip(found["answers"], wanted):
        assert row["entity"]["id"] == (one.tail_id if side == "tail" else one.head_id)
        assert (row["rank"], row["known"]) == (one.rank, one.known)
        assert row["rank_of_all"] == row["rank"]
        assert row["score"] == pytest.approx(one.score, abs=1e-4)
        assert row["probability"] == pytest.approx(one.probability, abs=1e-5)
        assert sum(row["parts"].values()) == pytest.approx(row["score"])
    assert found["question"]["side"] == side
    assert found["question"]["relation"]["identifier"] == relation


def test_experts_can_be_switched_off(model, client):
    query = {"entity": PERSON, "relation": "parent_of", "k": 36}
    every = ask(client, "answers", **query)
    place = {row["entity"]["id"]: row["rank"] for row in every["answers"]}
    for name in model.experts:
        others = [one for one in model.experts if one != name]
        found = ask(client, "answers", experts=",".join(others), **query)
        wanted = model.without(name).predict_tails(PERSON, "parent_of", k=36)
        assert found["experts"] == others
        assert [row["entity"]["id"] for row in found["answers"]] == [
            one.tail_id for one in wanted
        ]
        for row in found["answers"]:
            assert row["rank_of_all"] == place[row["entity"]["id"]]
            assert row["score"] == pytest.approx(
                sum(row["parts"][one] for one in others)
            )
    alone = ask(client, "alone", entity=PERSON, relation="parent_of", k=4)
    for one in alone:
        found = ask(client, "answers", **query | {"k": 4}, experts=one["expert"])
        assert one["answers"] == found["answers"]


@pytest.mark.parametrize("side", ["tail", "head"])
def test_calibrated_probabilities(client, side):
    model = make_model(reciprocal=True)
    slope = torch.linspace(0.1, 1, len(RELATIONS))
    count = torch.ones(len(RELATIONS), dtype=torch.long)
    model.calibration = Calibration(slope, slope - 1, count)
    asked = client_of(model)
    query = {"entity": PERSON, "relation": RELATIONS[1], "side": side}
    found = ask(asked, "answers", **query)
    if side == "tail":
        wanted = model.predict_tails(PERSON, RELATIONS[1])
    else:
        wanted = model.predict_heads(RELATIONS[1], PERSON)
    for row, one in zip(found["answers"], wanted):
        assert row["calibrated"] == pytest.approx(one.calibrated, abs=1e-5)
        assert row["probability"] == pytest.approx(one.probability, abs=1e-5)
    best = found["answers"][0]
    why = ask(asked, "explanation", answer=best["entity"]["key"], **query)
    assert why["calibrated"] == best["calibrated"]
    assert found["measure"] == "that the triple is true, calibrated"
    table = asked.get("/api/answers.csv", params=query).text.splitlines()
    assert float(table[1].split(",")[-1]) == pytest.approx(best["calibrated"])
    # A calibration is about all experts together.
    for one in (
        ask(asked, "answers", experts="latent", **query),
        ask(client, "answers", **query),
    ):
        assert {row["calibrated"] for row in one["answers"]} == {None}
        assert "not calibrated" in one["measure"]


def test_lifts_are_above_the_average(model, client):
    found = ask(client, "answers", entity=PERSON, relation="parent_of", k=36)
    for name in model.experts:
        rows = found["answers"]
        assert sum(row["lifts"][name] for row in rows) == pytest.approx(0, abs=1e-4)
        gaps = [row["parts"][name] - row["lifts"][name] for row in rows]
        assert max(gaps) - min(gaps) < 1e-5


@pytest.mark.parametrize("settings", [{}, {"reciprocal": True}])
@pytest.mark.parametrize("side", ["tail", "head"])
def test_reasons_are_exact(side, settings):
    model = make_model(**settings)
    client = client_of(model)
    query = {"entity": PERSON, "relation": "parent_of", "side": side}
    for answer in ("Person 8", "twin/2", HOSTILE[0]):
        found = ask(client, "explanation", answer=answer, **query)
        ends = (PERSON, answer) if side == "tail" else (answer, PERSON)
        wanted = model.explain(ends[0], "parent_of", ends[1])
        standing = wanted.tail_query if side == "tail" else wanted.head_query
        assert found["rank"] == standing.rank
        assert found["num_candidates"] == standing.num_candidates
        assert found["probability"] == pytest.approx(standing.probability, abs=1e-5)
        assert found["known"] == (found["answer"]["id"] in known_answers(model, query))
        total = sum(expert["score"] for expert in found["experts"])
        assert found["score"] == pytest.approx(total)
        for expert in found["experts"]:
            parts = [reason["contribution"] for reason in expert["reasons"]]
            assert sum(parts) + expert["rest"] == pytest.approx(
                expert["score"], abs=1e-4
            )
            assert expert["rank_without"] == standing.without[expert["name"]]
            alone = model
            for other in model.experts:
                if other != expert["name"]:
                    alone = alone.without(other)
            ranked = alone.explain(ends[0], "parent_of", ends[1])
            ranked = ranked.tail_query if side == "tail" else ranked.head_query
            assert expert["rank_alone"] == ranked.rank


def known_answers(model, query):
    entity = model.vocabulary.entities.resolve(query["entity"])
    relation = model.vocabulary.relations.resolve(query["relation"])
    asked = Query(entity, relation, query["side"])
    return Engine(model).known_answers(asked).tolist()


def test_reasons_of_chosen_experts(client):
    query = {"entity": PERSON, "relation": "parent_of", "answer": "Person 8"}
    found = ask(client, "explanation", experts="latent,evidence", **query)
    asked = {expert["name"]: expert["asked"] for expert in found["experts"]}
    assert asked == {
        "latent": True,
        "relational": False,
        "numerical": False,
        "evidence": True,
    }
    total = sum(expert["score"] for expert in found["experts"] if expert["asked"])
    assert found["score"] == pytest.approx(total)
    without = {expert["name"]: expert["rank_without"] for expert in found["experts"]}
    assert without["relational"] is None
    assert without["latent"] is not None


def test_table_is_that_of_the_command(model, client):
    query = {"entity": PERSON, "relation": "parent_of", "k": 5}
    found = client.get("/api/answers.csv", params=query)
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    wanted = model.predict_tails(PERSON, "parent_of", k=5).to_csv().splitlines()
    got = found.text.splitlines()
    assert got[0] == wanted[0]
    assert [line.split(",")[:6] for line in got] == [
        line.split(",")[:6] for line in wanted
    ]
    table = client.get("/api/answers.csv", params=query | {"k": 36}).text
    assert ",'=1+1," in table  # no formula


@pytest.mark.parametrize(
    ("experts", "settings"),
    [
        ("n", {}),
        ("n", {"numerical": "sign"}),
        ("n", {"numerical": "layer"}),
    ],
)
def test_histograms(experts, settings):
    model = make_model(experts, **settings)
    data, (expert,) = model.kb, model.experts.values()
    head, rel, tail = (column.tolist() for column in flat_triples(data))
    num_drawn = 0
    for triple in list(zip(head, rel, tail))[:40]:
        parts = [one.contribution for one in expert.parts(*triple)]
        for one in histograms(expert, data, triple):
            num_drawn += 1
            assert one.contribution in parts
            assert sum(one.counts) + one.num_outside == one.num_triples
            assert len(one.edges) == len(one.counts) + 1
            if one.value is None:
                continue
            inside = one.curve_x[0] <= one.value <= one.curve_x[-1]
            near = np.interp(one.value, one.curve_x, one.curve_y)
            steep = np.abs(np.diff(one.curve_y)).max()
            if inside:
                assert near == pytest.approx(one.contribution, abs=steep + 1e-3)
    assert num_drawn > 20
    assert histograms(make_model("l").experts["latent"], data, (0, 0, 1)) == []


# --- names ------------------------------------------------------------------------


def test_every_name_leads_back(client):
    for i, name in enumerate([*HOSTILE, PERSON]):
        found = ask(client, "entity", entity=f"id:{i if i < len(HOSTILE) else 17}")
        thing = found["entity"]
        assert thing["name"] == name
        again = ask(client, "entity", entity=thing["key"])
        assert again["entity"] == thing
    # What looks like an id is one, even if it is also a name.
    assert ask(client, "entity", entity="id:3")["entity"]["id"] == 3
    named = ask(client, "entities", q="id:3")[0]
    assert (named["name"], named["key"]) == ("id:3", f"id:{HOSTILE.index('id:3')}")


def test_names_that_are_not_clear(client):
    found = ask(client, "entity", status=404, entity="Twin")
    assert [one["identifier"] for one in found["nearest"]] == ["twin/1", "twin/2"]
    assert "several" in found["detail"]
    found = ask(client, "entity", status=404, entity="person 1")
    assert "Person 1" in [one["name"] for one in found["nearest"]]
    for wrong in ("id:36", "id:-1", "id:1.0", "id:", "id:" + "9" * 30, "id:１"):
        ask(client, "entity", status=404, entity=wrong)
    ask(client, "answers", status=404, entity=PERSON, relation="parent")


def naive_find(names, weight, letters, number):
    """Sorts all names by how well they fit."""

    def fold(text):
        return re.sub("[\n_/]", " ", text.casefold())

    wanted, rows = fold(letters).strip(), []
    for i, name in enumerate(map(fold, names)):
        kinds = [name == wanted, name.startswith(wanted), f" {wanted}" in name]
        if wanted and wanted in name:
            rows.append((*(not kind for kind in kinds), -weight[i], i))
    # A beginning of the name counts more than one of a word.
    rows.sort(key=lambda row: (row[0], row[1], row[2] and row[1], row[3], row[4]))
    return [row[-1] for row in rows][:number]


def test_completion_against_a_search_of_all():
    rng = np.random.default_rng(0)
    letters = np.array(list("aB _ß/\n"))
    for _ in range(300):
        names = ["".join(rng.choice(letters, rng.integers(0, 7))) for _ in range(12)]
        weight = rng.integers(0, 5, len(names))
        wanted = "".join(rng.choice(letters, rng.integers(1, 4)))
        index = NameIndex(names, weight)
        for number in (1, 3, 99):
            found = index.find(wanted, number)
            assert found == naive_find(names, weight, wanted, number), (names, wanted)
    assert NameIndex([], np.empty(0, np.int64)).find("a", 5) == []


def test_completion(client):
    found = ask(client, "entities", q="PERSON 1", limit=4)
    assert found[0]["name"] == "Person 1"
    assert len(found) == 4
    assert all(one["name"].startswith("Person 1") for one in found)
    twins = ask(client, "entities", q="twin/")
    assert {one["name"] for one in twins} == {"Twin (twin/1)", "Twin (twin/2)"}
    assert ask(client, "entities", q="") == []
    assert ask(client, "entities", q="no such letters") == []
    assert [one["identifier"] for one in ask(client, "relations", q="liv")] == [
        "/people/person/lives_in"
    ]
    assert len(ask(client, "relations")) == len(RELATIONS)


# --- relations that make sense ----------------------------------------------------


def test_relations_of_an_entity(client):
    data = make_data()
    facts = list(zip(*(column.tolist() for column in flat_triples(data))))
    having = {}
    for h, r, t in facts:
        having.setdefault(h, {}).setdefault((r, "tail"), []).append(t)
        having.setdefault(t, {}).setdefault((r, "head"), []).append(h)
    for i in range(36):
        page = ask(client, "entity", entity=f"id:{i}")
        known = {
            (one["relation"]["id"], one["side"]): one
            for one in page["relations"]
            if one["num_known"]
        }
        assert {slot: one["num_known"] for slot, one in known.items()} == {
            slot: len(answers) for slot, answers in having[i].items()
        }
        for slot, one in known.items():
            near = [thing["id"] for thing in one["neighbours"]]
            assert near == having[i][slot][:5]
        assert page["entity"]["num_facts"] == sum(map(len, having[i].values()))
        # Known ones come first, then likely ones, the likeliest first.
        order = [(one["num_known"] == 0, -one["likely"]) for one in page["relations"]]
        assert order == sorted(order)
        assert len(page["numbers"]) == 2 - (i % 7 == 0)


def test_what_others_of_the_kind_have():
    data = make_data()
    slots = Slots(data)
    facts = list(zip(*(column.tolist() for column in flat_triples(data))))
    own = {}
    for h, r, t in facts:
        own.setdefault(h, set()).add((r, "tail"))
        own.setdefault(t, set()).add((r, "head"))
    for i in range(36):
        for one in slots.of(i):
            slot = (one.relation, one.side)
            if one.num_known:
                continue
            fractions = []
            for shared in own[i]:
                alike = [j for j in own if shared in own[j]]
                fractions.append(sum(slot in own[j] for j in alike) / (len(alike) + 3))
            assert slot not in own[i]
            assert one.likely == pytest.approx(max(fractions))


def test_model_and_examples(client, model):
    found = ask(client, "model")
    assert found["title"] == "A <b>title</b>"
    assert [one["name"] for one in found["experts"]] == list(model.experts)
    assert found["num_facts"] == len(flat_triples(model.kb)[0])
    assert found["examples"]
    for one in found["examples"]:
        query = {"entity": one["entity"]["key"], "relation": one["relation"]["key"]}
        assert ask(client, "answers", **query)["num_known"] > 0


# --- many readers -----------------------------------------------------------------


def test_several_readers_at_once(client):
    queries = [
        {"entity": f"Person {i}", "relation": r, "side": side, "k": 5}
        for i in range(6)
        for r in RELATIONS
        for side in ("head", "tail")
    ]
    wanted = [ask(client, "answers", **query) for query in queries]
    fresh = client_of(make_model())
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: ask(fresh, "answers", **query), queries))
    assert found == wanted


def test_memory_is_bounded(monkeypatch):
    engine = Engine(make_model())
    first = Query(0, 0, "tail")
    size = engine.rows(first).nbytes
    monkeypatch.setattr(engine_module, "_MAX_BYTES", 3 * size)
    before = engine.rows(first).copy()
    for i in range(1, 10):
        engine.rows(Query(i, 0, "tail"))
        engine.rows(first)  # what is asked again stays
    assert len(engine._rows) == 3
    assert first in engine._rows
    engine._rows.clear()
    assert np.allclose(engine.rows(first), before)


# --- refused ----------------------------------------------------------------------

GOOD = "/api/answers?entity=Person+7&relation=parent_of"


@pytest.mark.parametrize(
    "path",
    [
        "/api/answers",
        "/api/answers?entity=Person+7",
        f"{GOOD}&k=0",
        f"{GOOD}&k=201",
        f"{GOOD}&k=ten",
        f"{GOOD}&k=1e1",
        f"{GOOD}&side=both",
        f"{GOOD}&novel=perhaps",
        f"{GOOD}&experts=",
        f"{GOOD}&experts=latent,magic",
        f"{GOOD}&experts={'x' * 600}",
        "/api/answers?entity=&relation=parent_of",
        f"/api/entities?q={'x' * 300}",
        "/api/entities?q=a&limit=1000",
        f"/api/entity?entity={'x' * 2500}",
        f"/api/alone?{GOOD.split('?')[1]}&k=21",
    ],
)
def test_wrong_questions(client, path):
    found = client.get(path)
    assert found.status_code == 422
    assert len(found.text) < 1000
    assert found.json()["detail"]


def test_other_requests(client):
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"):
        assert client.request(method, GOOD).status_code == 405, method
    assert client.request("GET", GOOD, content=b"x").status_code == 413
    assert client.request("GET", GOOD, content=iter([b"x"])).status_code == 413
    assert client.get(f"/api/entities?q={'x' * 9000}").status_code == 414
    assert client.get(f"/{'x' * 300}").status_code == 414
    assert client.get("/api/entity?entity=%ff%fe").status_code == 404
    assert client.get("/api/entity?entity=a%00b").status_code == 404


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8237", 200),
        ("127.0.0.1:99", 200),
        ("[::1]:8237", 200),
        ("evil.example", 421),
        ("evil.example:8237", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("evil.example#localhost", 421),
        ("", 421),
        ("192.168.0.7", 421),
    ],
)
def test_host(client, host, status):
    assert client.get("/api/model", headers={"host": host}).status_code == status


def test_further_hosts(model):
    client = client_of(model, hosts=["kb.example"])
    assert client.get("/", headers={"host": "kb.example"}).status_code == 200
    assert client.get("/").status_code == 421


def test_only_files_of_the_page(client):
    for path in (
        "/static/../api.py",
        "/static/..%2fapi.py",
        "/static/%2e%2e/api.py",
        "/static/..%5capi.py",
        "/static//etc/passwd",
        f"/static/{quote('/etc/passwd', safe='')}",
        "/static/",
        "/static/main.js/",
        "/static/.",
        "/static/main.js%00.html",
        "/api.py",
        "/docs/",
        "/redoc",
    ):
        found = client.get(path, follow_redirects=False)
        assert found.status_code in (404, 307), path
        assert "import" not in found.text
        assert "root:" not in found.text
    for file in STATIC.iterdir():
        found = client.get(f"/static/{file.name}")
        assert found.content == file.read_bytes()


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/openapi.json", "/static/main.js", GOOD, "/none", "/api/x"]
)
def test_headers(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "server" not in headers


def test_the_page_needs_nothing_else():
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8")
        links = re.findall(r"https?://[^\s\"'<>)]+", text)
        assert set(links) <= {"http://www.w3.org/2000/svg"}, file.name
        if file.suffix == ".html":
            assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*src=)", text)
        if file.suffix == ".js":
            for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval(", "write("):
                assert word not in text, (file.name, word)
            for source in re.findall(r'from "\./([\w.]+)"', text):
                assert (STATIC / source).exists()


def test_description(client):
    found = client.get("/openapi.json").json()
    paths = {"/api/model", "/api/entities", "/api/relations", "/api/entity"}
    paths |= {"/api/answers", "/api/answers.csv", "/api/alone", "/api/explanation"}
    assert set(found["paths"]) == paths
    for path, methods in found["paths"].items():
        assert set(methods) == {"get"}, path
        assert methods["get"]["description"]
    names = [one["name"] for one in found["paths"]["/api/answers"]["get"]["parameters"]]
    assert set(names) == {"entity", "relation", "side", "experts", "k", "novel"}
    assert "Explanation" in found["components"]["schemas"]


# --- the command ------------------------------------------------------------------


def test_mistakes(tmp_path):
    for words, message in (
        ([tmp_path / "none"], "none"),
        ([tmp_path / "none", "--port", "70000"], "--port must lie in 0 to 65535"),
    ):
        done = run("kblrn", "serve", *words)
        assert done.code == 2
        assert message in done.err
        assert len(done.err.splitlines()) == 1


@pytest.fixture
def process(tmp_path):
    """The command itself, and its port."""
    make_model("lr").save(tmp_path / "model.pt")
    words = ["serve", tmp_path / "model.pt", "--port", "0", "--no-browser"]
    paths = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    started = subprocess.Popen(
        [sys.executable, "-m", "kblrn_pyg.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    yield started, int(re.search(r":(\d+)/", started.stdout.readline())[1])
    started.kill()
    started.wait(20)


def send(port, content):
    """Returns the status that raw bytes are answered with, and what begins the answer.

    The status is 0 if the server closes the connection, or waits for more.
    """
    answer = b""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
        suppress(ConnectionError, TimeoutError),
    ):
        connection.sendall(content)
        while b"\r\n\r\n" not in answer and (more := connection.recv(65536)):
            answer += more
    found = re.match(rb"HTTP/1.1 (\d+) ", answer)
    return int(found[1]) if found else 0, answer


def test_real_server(process):
    started, port = process
    host, end = b"Host: localhost\r\n", b"\r\n"
    get = b"GET /api/model HTTP/1.1\r\n"
    status, answer = send(port, get + host + b"Connection: close\r\n" + end)
    assert status == 200
    assert b"nosniff" in answer
    assert b"erver: " not in answer
    refused = {0, 400, 404, 405, 413, 414, 421, 431}
    for content in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n" + end,
        b"\x00" * 1000,
        get + end,
        get + b"Host: evil.example\r\n" + end,
        get + host + host + end,
        get + host + b"X: " + b"x" * 40000 + end,
        get + host + b"Content-Length: 99999999999\r\n" + end,
        get + host + b"Content-Length: -1\r\n" + end,
        get + host + b"Transfer-Encoding: chunked\r\n" + end + b"zz\r\n",
        b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\n" + host + end,
        b"GET /static/../../../../../etc/passwd HTTP/1.1\r\n" + host + end,
        b"GET /static/%2e%2e%2fapi.py HTTP/1.1\r\n" + host + end,
        b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n" + end,
        b"POST /api/model HTTP/1.1\r\n" + host + b"Content-Length: 3\r\n\r\nabc",
    ):
        status, answer = send(port, content)
        assert status in refused, content[:60]
        assert b"root:" not in answer
    assert send(port, get + host + b"Connection: close\r\n" + end)[0] == 200
    started.send_signal(signal.SIGINT)
    assert started.wait(30) == 0
    assert "Traceback" not in started.stderr.read()


def test_without_the_extra(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *more: None if name == "uvicorn" else found(name, *more),
    )
    done = run("kblrn", "serve", tmp_path)
    assert done.code == 2
    assert "pip install 'kblrn_pyg[app]'" in done.err


def test_port_in_use(tmp_path):
    make_model("r").save(tmp_path / "model.pt")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("kblrn", "serve", tmp_path / "model.pt", "--port", port)
    assert done.code == 2
    assert f"cannot listen at 127.0.0.1, port {port}" in done.err
    assert Path(tmp_path / "model.pt").exists()
