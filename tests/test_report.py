"""The page about a run: complete, harmless, and it works in a real browser."""

import itertools
import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from scripts import run

from kblrn_pyg.evaluation import RankTable, Report, evaluate
from kblrn_pyg.explain import explain
from kblrn_pyg.nn import INSTANCES, KBLRN, Expert
from kblrn_pyg.report import (
    Context,
    Section,
    choose_rows,
    expert_section,
    report_page,
)
from kblrn_pyg.report.examples import find_example, kinds
from kblrn_pyg.report.html import Html, Scale, element, join
from kblrn_pyg.report.measures import FIGURES, figure_text
from kblrn_pyg.report.reasons import reasons_table
from kblrn_pyg.runs import load_run

SCRIPT = "<script>alert(1)</script>"
EVIL = ["<img src=x onerror=alert(2)>", "</script><b>&amp;", 'O\'Hara "Q"']
RELATIONS = ["parent_of", "spouse", "/people/person/lives_in", SCRIPT, "a&b's", "ääm"]
CELLS = {"th", "td"}
VOID = {"meta", "link", "img", "input", "wbr"}
WORDS = "--hidden-channels 4 --num-negatives 5 --epochs 2 --validate-every 1"


class Page(HTMLParser):
    """Elements and texts; fails where elements are not nested."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts, self.rows = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        elif tag in CELLS:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        if self.open and self.open[-1][0] not in {"script", "style"}:
            self.texts.append(data)
            if any(tag in CELLS for tag, _ in self.open):
                self.rows[-1][-1] += data

    @property
    def text(self):
        return "".join(self.texts).replace("\N{NO-BREAK SPACE}", " ")

    def values(self, attribute):
        return [a[attribute] for _, a in self.elements if a.get(attribute)]


def make_kb(folder):
    """A knowledge base with rules, numbers and names that are HTML."""
    rng = random.Random(0)
    names = [*EVIL, *(f"<i>Person</i> {i}" for i in range(33))]
    triples = []
    for i, name in enumerate(names):
        for step, relation in enumerate(RELATIONS, start=1):
            for far, chance in ((step, 0.8), (step + 7, 0.3)):
                if rng.random() < chance:
                    triples.append((name, relation, names[(i + far) % len(names)]))
    rng.shuffle(triples)
    parts = {"train": triples[:-40], "valid": triples[-40:-20], "test": triples[-20:]}
    for part, rows in parts.items():
        text = "".join("\t".join(row) + "\n" for row in rows)
        (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    numbers = [f"{name}\tborn <i> year\t{1900 + i}\n" for i, name in enumerate(names)]
    (folder / "numbers.tsv").write_text("".join(numbers), encoding="utf-8")
    files = [(f"--{part}", folder / f"{part}.tsv") for part in parts]
    files += [("--numerical", folder / "numbers.tsv"), ("--out", folder / "kb")]
    done = run("kblrn", "import", *itertools.chain(*files))
    assert done.code == 0, done.err
    return folder / "kb"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trains an instance, once."""
    folder = tmp_path_factory.mktemp("report")
    kb, made = make_kb(folder), {}

    def train(experts, *more):
        if (experts, *more) not in made:
            path = folder / f"run{len(made)}"
            words = ["--experts", experts, *WORDS.split(), *more, "--out", path]
            done = run("kblrn", "train", kb, *words)
            assert done.code == 0, done.err
            made[experts, *more] = path
        return made[experts, *more]

    return train


@pytest.fixture(scope="module")
def report(trained):
    path = trained("lrn")
    done = run("kblrn", "report", path)
    assert done.code == 0, done.err
    assert done.out == f"saved {path / 'report.html'}\n"
    return path / "report.html"


@pytest.fixture(scope="module")
def page(report):
    return Page(report.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def loaded(trained):
    model, splits, _ = load_run(str(trained("lrn")))
    return model, splits, evaluate(model, splits["test"], [splits["val"]])


def test_needs_nothing_but_itself(page):
    assert Counter(page.values("id")).most_common(1)[0][1] == 1
    for value in page.values("src") + page.values("href"):
        assert value.startswith(("data:", "#"))
    ids = set(page.values("id"))
    links = [v[1:] for v in page.values("href") if v.startswith("#")]
    assert links
    assert set(links) <= ids
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "form", "base"}
        assert not any(name.startswith("on") for name in attributes)
    assert all(a["alt"] for tag, a in page.elements if tag == "img")


def test_names_are_escaped(report, page):
    text = report.read_text(encoding="utf-8")
    for name in (SCRIPT, *EVIL[:2], "<i>Person"):
        assert name not in text
    assert SCRIPT in page.text
    assert "<i>Person</i> 3" in page.text
    assert "born <i> year" in page.text
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not any(tag in {"b", "i"} and a for tag, a in page.elements)


def test_tells_settings_and_metrics(page, loaded):
    _, splits, table = loaded
    for words in ("KBLRN on kb", "hidden channels", "batch size512", "36 entities"):
        assert words in page.text
    assert "latent, relational and numerical experts" in page.text
    found = Report.of(table)
    parts = [found.overall, *found.by_side.values(), *found.by_answers.values()]
    for metrics in parts:
        cells = [figure_text(metrics, figure) for figure in FIGURES.values()]
        assert cells in [row[1:] for row in page.rows]
    titles = [row[0] for row in page.rows]
    for title in ("all", "heads, (?, r, t)", "ONE answer", "MANY answers"):
        assert titles.count(title) == len(splits) - 1


def test_lists_every_relation(page, loaded):
    by_relation = Report.of(loaded[2]).by_relation
    assert len(by_relation) > 3
    rows = {row[0]: row[1:] for row in page.rows if len(row) == 7}
    for name, metrics in by_relation.items():
        # The short name, and the whole one if it differs.
        short = {SCRIPT: "script", RELATIONS[2]: "lives_in"}.get(name)
        assert rows[f"{short}{name}" if short else name] == [
            figure_text(metrics, f) for f in FIGURES.values()
        ]


def test_tells_rules_and_numbers(page, loaded):
    model, splits, _ = loaded
    assert " ∧ " in page.text
    assert "PCA confidence" in page.text
    images = [a["alt"] for tag, a in page.elements if tag == "img"]
    assert images.count("Loss and validation by epoch") == 2
    context = Context(model, splits, max_relations=6)
    first = splits["train"].edge_types[context.relations[0]][1]
    assert any("Histogram" in text for text in images)
    assert f"{context.short[first]}(h, t) ⇐ …" in page.text
    # What experts say about themselves.
    assert f" · {len(model.experts['relational'].weight):,} rules · " in page.text
    assert (
        f" · {len(model.experts['numerical'].weight)} numerical features" in page.text
    )


def test_is_always_the_same(trained, report, tmp_path):
    before = report.read_bytes()
    out = tmp_path / "new" / "page.html"
    done = run("kblrn", "report", trained("lrn"), "--out", out)
    assert (done.code, done.out, done.err) == (0, f"saved {out}\n", "")
    assert out.read_bytes() == before
    other = tmp_path / "other.html"
    run("kblrn", "report", trained("lrn"), "--out", other, "--seed", "1")
    assert other.read_bytes() != before


SECTIONS = {"l": set(), "r": {"rules"}, "n": {"numbers"}, "e": set(), "o": set()}


@pytest.mark.parametrize("experts", [e for e in INSTANCES if e != "lrn"])
def test_every_instance(trained, tmp_path, experts):
    out = tmp_path / "page.html"
    words = ["--out", out, "--examples", "3", "--max-relations", "1"]
    done = run("kblrn", "report", trained(experts), *words)
    assert done.code == 0, done.err
    page = Page(out.read_text(encoding="utf-8"))
    assert page.values("class").count("answers") == 3
    expected = set().union(*(SECTIONS[letter] for letter in experts))
    assert {"rules", "numbers"} & set(page.values("id")) == expected
    assert page.values("class").count("weights") == ("r" in experts)
    assert ("scorer" in page.texts) == ("l" in experts)
    assert ("learn rbf" in page.texts) == ("n" in experts)
    assert ("min head coverage" in page.texts) == bool(set("re") & set(experts))


def test_other_ways_to_train(trained, tmp_path):
    out = tmp_path / "page.html"
    ways = {
        "numericalsign": ("n", "--numerical", "sign"),
        "RotatE": ("ln", "--scorer", "distmult,rotate", "--learn-rbf"),
    }
    for words, way in ways.items():
        done = run("kblrn", "report", trained(*way), "--out", out)
        assert done.code == 0, done.err
        page = Page(out.read_text(encoding="utf-8"))
        assert words in page.text


class Popularity(Expert):
    """An expert of one's own, which has only what it must have."""

    def __init__(self, num_nodes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(num_nodes))

    def forward(self, head_index, rel_type, tail_index):
        return self.weight[tail_index]


class Telling(Popularity):
    def extra_repr(self):
        return "<b>numbers</b>"


@expert_section.register
def _(expert: Telling, context: Context) -> Section:
    name = context.short[RELATIONS[2]]
    return Section(
        "metrics", "Own <section>", element("p", f"{name} {len(expert.weight)}")
    )


def test_experts_of_ones_own(trained):
    _, splits, settings = load_run(str(trained("lrn")))
    data, sizes = splits["train"], {"num_nodes": splits["train"]["entity"].num_nodes}
    experts = ["l", "r", Popularity(**sizes), Telling(**sizes)]
    model = KBLRN.from_data(data, experts, hidden_channels=4).eval()
    settings["model"] = model.config
    page = Page(report_page(trained("lrn"), model, splits, settings, num_examples=2))
    assert "latent, relational, popularity and telling experts" in page.text
    assert " · <b>numbers</b> · " in page.text
    assert "popularity expertwithout it, rank" in page.text
    assert "latent expert (DistMult)" in page.text
    ids = page.values("id")
    assert {"rules", "metrics", "metrics-2"} <= set(ids)
    assert "numbers" not in ids
    assert "Own <section>lives_in 36" in page.text
    assert "scorer" in page.texts
    assert not {"learn rbf", "threshold"} & set(page.texts)


def test_reasons_have_all_parts(loaded):
    model, splits, _ = loaded
    rows = list(
        zip(
            *(
                c.tolist()
                for c in splits["train"][splits["train"].edge_types[0]].edge_index
            )
        )
    )
    some = [explain(model, head, 0, tail) for head, tail in rows[:20]]
    most = max(some, key=lambda one: len(one.parts["relational"]))
    short = Context(model, splits, 0).short
    page = Page(reasons_table(most, "tail", Scale.of([1.0]), short))
    for parts in most.parts.values():
        for part in parts[:5]:
            assert part.note_text in page.text
    bodies = most.parts["relational"]
    assert len(bodies) > 5
    total = sum(part.contribution for part in bodies[5:])
    assert [f"{total:+.3f}".replace("-", "−"), f"{len(bodies) - 5} more"] in page.rows
    assert "without it, rank" in page.text
    assert ("by this fact itself" in page.text) == any(b.own for b in bodies[:5])


def test_settings_say_what_they_are(page, trained):
    titles = {a.get("title") for tag, a in page.elements if tag == "dt"}
    assert {"the embedding size", "the learning rate"} <= titles
    model, splits, settings = load_run(str(trained("lrn")))
    settings["model"]["num_negatives"] = None
    text = Page(report_page(trained("lrn"), model, splits, settings, 0, 0)).text
    assert "num negativesall" in text
    assert "num negatives5" in page.text


def test_other_logs(trained, tmp_path):
    path = shutil.copytree(trained("l"), tmp_path / "run")
    for log, words in (
        ('{"epoch": 7, "loss": 2.5}\n', "Epochs: 7. There was no validation."),
        ("", None),
        (None, None),
    ):
        (path / "log.jsonl").unlink()
        if log is not None:
            (path / "log.jsonl").write_text(log)
        done = run("kblrn", "report", path, "--examples", "0")
        assert done.code == 0, done.err
        page = Page((path / "report.html").read_text(encoding="utf-8"))
        assert ("training" in page.values("id")) == (words is not None)
        assert (words or "Metrics") in page.text


def test_runs_that_name_no_data_set(trained, tmp_path):
    path = shutil.copytree(trained("n"), tmp_path / "run")
    settings = json.loads((path / "settings.json").read_text())
    dataset = settings.pop("dataset")
    (path / "settings.json").write_text(json.dumps(settings))
    done = run("kblrn", "report", path, "--examples", "0")
    assert done.code == 2
    assert "--dataset" in done.err
    done = run("kblrn", "report", path, "--examples", "0", "--dataset", dataset)
    assert done.code == 0, done.err
    assert (
        "KBLRN on kb" in Page((path / "report.html").read_text(encoding="utf-8")).text
    )
    model, splits, _ = load_run(path, dataset=dataset)
    assert "<h1>KBLRN</h1>" in report_page(path, model, splits, settings, 0)


def test_without_test_triples(trained):
    model, splits, settings = load_run(str(trained("lrn")))
    splits["test"] = test = splits["test"].clone()
    for kind in test.edge_types:
        test[kind].edge_label_index = test[kind].edge_label_index[:, :0]
    page = Page(report_page(trained("lrn"), model, splits, settings))
    ids = page.values("id")
    assert {"metrics", "rules", "numbers"} <= set(ids)
    assert not {"relations", "examples"} & set(ids)
    assert "tiles" not in page.values("class")


def test_nothing_of_what_nobody_wants(trained, tmp_path):
    out = tmp_path / "page.html"
    words = ["--out", out, "--examples", "0", "--max-relations", "0"]
    assert run("kblrn", "report", trained("lrn"), *words).code == 0
    ids = Page(out.read_text(encoding="utf-8")).values("id")
    assert not {"examples", "rules", "numbers"} & set(ids)
    assert {"metrics", "training", "relations", "settings"} <= set(ids)


def test_mistakes(trained, tmp_path):
    path, file = trained("lrn"), tmp_path / "file"
    file.write_text("")
    for words, message in (
        ([tmp_path / "none"], "settings.json: no such file"),
        ([path, "--examples", "-1"], "--examples must not be negative (got -1)"),
        ([path, "--max-relations", "-2"], "--max-relations must not be negative"),
        ([path, "--out", tmp_path], "is a directory, expected a file"),
        ([path, "--out", file / "page.html"], "file"),
    ):
        done = run("kblrn", "report", *words)
        assert done.code == 2
        assert message in done.err
        assert len(done.err.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_elements_escape():
    inner = element("b", "<&>")
    assert inner == "<b>&lt;&amp;&gt;</b>"
    assert element("p", inner, "'", title='"x"', hidden=True, lang=None) == (
        f'<p title="&quot;x&quot;" hidden>{inner}&#x27;</p>'
    )
    assert element("input", type="search") == '<input type="search">'
    assert join(["<", Html("<hr>")]) == "&lt;<hr>"


def make_table(ranks, relations, seed=0):
    """Both rows of triples that all differ."""
    number = len(ranks) // 2
    return RankTable(
        relations=[f"r{i}" for i in range(max(relations) + 1)],
        relation=np.tile(relations, 2),
        side=np.repeat([0, 1], number),
        head=np.tile(np.arange(number), 2),
        tail=np.tile(np.arange(number) + 1, 2),
        rank=ranks,
        num_candidates=np.full(2 * number, 99),
        num_answers=np.ones(2 * number, np.int64),
    )


def test_choice_is_varied():
    rng = np.random.default_rng(0)
    ranks = rng.choice([1, 1.5, 4, 10, 10.5, 70], 200)
    table = make_table(ranks, rng.choice(5, 100, p=[0.9, 0.04, 0.03, 0.02, 0.01]))
    rows = choose_rows(table, 9)
    assert kinds(table)[rows].tolist() == [0] * 3 + [1] * 3 + [2] * 3
    assert len({(table.head[row], table.relation[row]) for row in rows}) == 9
    assert set(Counter(table.relation[rows].tolist()).values()) <= {1, 2}
    assert choose_rows(table, 9) == rows
    assert choose_rows(table, 9, seed=1) != rows
    assert choose_rows(table, 0) == []


def test_choice_among_few():
    table = make_table([1, 1, 1, 1, 1, 20], [0, 0, 0])
    assert len(choose_rows(table, 9)) == 3  # no triple twice
    assert choose_rows(table, 2)[-1] == 5  # a wrong one, if there is one
    assert choose_rows(empty(), 4) == []
    loops = replace(table, tail=np.tile([0, 1, 9], 2))
    assert choose_rows(loops, 9) == [2]
    assert len(choose_rows(replace(table, tail=table.head), 9)) == 3


def empty():
    return RankTable(["r"], *([np.empty(0, np.int64)] * 7))


def test_examples_agree_with_the_ranks(loaded):
    model, splits, table = loaded
    for row in choose_rows(table, 12):
        example = find_example(Context(model, splits, 0), table, row)
        assert example.side == ("head", "tail")[table.side[row]]
        true = getattr(example.true, example.side).id
        listed = [getattr(p, f"{example.side}_id") for p in example.answers]
        scores = [p.score for p in example.answers]
        assert scores == sorted(scores, reverse=True)
        standing = getattr(example.true, f"{example.side}_query")
        assert standing.rank == example.rank
        assert standing.num_candidates == example.num_candidates
        if len(set(scores)) == len(scores) and true in listed:
            assert listed.index(true) + 1 == example.rank
        assert (example.rival is None) == (listed[0] == true)
        if example.rival is not None:
            assert example.rival.score == pytest.approx(scores[0], abs=1e-4)
            assert not example.rival.known


@pytest.fixture(scope="module")
def browser():
    pytest.importorskip("selenium", reason="selenium is not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    # The sandbox of Chromium refuses to run as root.
    for word in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    # With both paths given there is nothing that selenium would download.
    window = webdriver.Chrome(options=options, service=Service(driver))
    yield window
    window.quit()


@pytest.fixture
def window(browser, report):
    resize(browser, 1200)
    browser.get(report.as_uri())
    return browser


def resize(browser, width):
    # A window cannot be as narrow as a telephone.
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def column_of(window, place):
    return window.execute_script(
        "return [...document.querySelectorAll('table.relations tbody tr')]"
        ".filter(row => row.checkVisibility())"
        ".map(row => row.cells[arguments[0]].textContent)",
        place,
    )


def headers_of(window):
    return window.find_elements("css selector", "table.relations thead th")


def pressed(header):
    return header.find_element("css selector", "button")


@pytest.mark.browser
def test_loads_in_silence(window):
    assert window.get_log("browser") == []
    fetched = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert all(name.startswith("data:") for name in window.execute_script(fetched))
    broken = "return [...document.images].filter(i => !i.naturalWidth).length"
    assert window.execute_script(broken) == 0
    assert window.title == "KBLRN on kb"


@pytest.mark.browser
def test_sorts_both_ways(window):
    headers = headers_of(window)
    at = [header.text.rstrip("↕ ") for header in headers].index("MRR")
    unsorted = column_of(window, at)
    pressed(headers[at]).click()
    assert headers[at].get_attribute("aria-sort") == "descending"
    assert column_of(window, at) == sorted(unsorted, key=float, reverse=True)
    pressed(headers[at]).click()
    assert headers[at].get_attribute("aria-sort") == "ascending"
    assert column_of(window, at) == sorted(unsorted, key=float)
    # By keyboard, and by name.
    pressed(headers[0]).send_keys("\ue007")
    assert [h.get_attribute("aria-sort") for h in headers] == [
        "ascending",
        *["none"] * (len(headers) - 1),
    ]
    names = column_of(window, 0)
    assert names.index("a&b's") < names.index("parent_of") < names.index("spouse")
    assert window.get_log("browser") == []


@pytest.mark.browser
def test_filters(window):
    box = window.find_element("id", "filter")
    every = column_of(window, 0)
    count = window.find_element("css selector", ".filter output")
    box.send_keys("P")
    left = column_of(window, 0)
    assert left == [name for name in every if "p" in name.lower()]
    assert 0 < len(left) < len(every)
    assert count.text == f"{len(left)} of {len(every)}"
    box.send_keys("aren OFF")
    assert column_of(window, 0) == []
    box.clear()
    box.send_keys("of parent")
    assert column_of(window, 0) == ["parent_of"]
    box.clear()
    box.send_keys(SCRIPT)
    assert column_of(window, 0) == [f"script{SCRIPT}"]
    # Sorting keeps what is hidden hidden.
    pressed(headers_of(window)[1]).click()
    assert column_of(window, 0) == [f"script{SCRIPT}"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 400, 800, 1600])
def test_nothing_is_wider_than_the_window(window, width):
    resize(window, width)
    window.execute_script(
        "document.querySelectorAll('details').forEach(d => d.open = 1)"
    )
    too_wide = window.execute_script(
        "const room = document.documentElement.clientWidth;"
        "return [...document.body.querySelectorAll('*')]"
        ".filter(e => !e.parentElement.closest('.scroll'))"
        ".filter(e => e.getBoundingClientRect().right > room + 0.5)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert too_wide == []
    sizes = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    assert len(set(window.execute_script(sizes))) == 1
    # What scrolls by itself is within reach of the keyboard.
    scrolls = "return [...document.querySelectorAll('.scroll')].map(e => e.tabIndex)"
    assert set(window.execute_script(scrolls)) == {0}


@pytest.mark.browser
def test_prints_what_is_closed(window):
    closed = "return document.querySelectorAll('details:not([open])').length"
    before = window.execute_script(closed)
    assert before > 0
    window.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert window.execute_script(closed) == 0
    window.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert window.execute_script(closed) == before
    assert Path(window.current_url.removeprefix("file://")).exists()
