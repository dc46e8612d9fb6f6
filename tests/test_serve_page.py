"""The page of ``kblrn serve`` in a real browser, with a real server behind it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from scripts import REPOSITORY
from served import HOSTILE, RELATIONS, make_model

pytest.importorskip("fastapi", reason="fastapi is not installed")
pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytestmark = pytest.mark.browser

PERSON, RELATION = "Person 7", "parent_of"
ENTER, DOWN, ESCAPE, SPACE = "\ue007", "\ue015", "\ue00c", " "


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


@pytest.fixture(scope="module")
def server(browser, tmp_path_factory):
    """Runs the command, and returns the address that it prints."""
    folder = tmp_path_factory.mktemp("serve")
    make_model().save(folder / "model.pt")
    command = [sys.executable, "-m", "kblrn_pyg.cli", "serve", folder / "model.pt"]
    command += ["--port", "0", "--no-browser", "--title", HOSTILE[0]]
    paths = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": paths},
    )
    line = process.stdout.readline()
    yield re.match(r"(http://localhost:\d+)/ ", line)[1]
    process.terminate()
    process.wait(20)


@pytest.fixture
def page(browser, server):
    found = Page(browser, server)
    found.resize(1280)
    yield found
    # Neither an error nor a refused script, style or connection.
    assert browser.get_log("browser") == []


class Page:
    """The page, as a reader uses it."""

    def __init__(self, window, server):
        self.window, self.server = window, server

    def resize(self, width, dark=False):
        # A window cannot be as narrow as a telephone.
        size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        self.window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        theme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [theme]})

    def open(self, **query):
        self.window.get(f"{self.server}/?{urlencode(query)}")
        self.settle()
        return self

    def ask(self, **more):
        return self.open(entity=PERSON, relation=RELATION, **more)

    def settle(self):
        """Waits for everything that the page has asked for."""
        self.until(
            "const main = document.getElementById('main');"
            "return main.childElementCount > 0 && !main.hasAttribute('aria-busy')"
        )

    def until(self, script, *arguments):
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(self.window, 20, poll_frequency=0.05)
        return wait.until(lambda one: one.execute_script(script, *arguments))

    def all(self, selector):
        return self.window.find_elements("css selector", selector)

    def one(self, selector):
        return self.window.find_element("css selector", selector)

    def texts(self, selector):
        return self.window.execute_script(
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter(e => e.checkVisibility()).map(e => e.textContent)",
            selector,
        )

    def names(self):
        return self.texts("ol.answers .opener")

    def click(self, selector):
        self.window.execute_script("arguments[0].click()", self.one(selector))
        self.settle()

    @property
    def state(self):
        query = parse_qs(urlsplit(self.window.current_url).query)
        return {key: value[0] for key, value in query.items()}


@pytest.fixture(scope="module")
def model():
    return make_model()


def test_begins_with_examples(page):
    page.open()
    examples = page.texts(".example")
    assert len(examples) >= 3
    assert page.texts("#title") == [HOSTILE[0]]
    page.click(".example")
    assert len(page.names()) == 10
    assert {"entity", "relation"} <= set(page.state)
    fetched = page.window.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name)"
    )
    assert fetched
    assert all(name.startswith(page.server) for name in fetched)


def test_from_letters_to_answers_by_keyboard(page, model):
    page.open()
    field = page.one("#entity")
    assert field.accessible_name == "Entity"
    field.send_keys("person 7")
    page.until("return document.querySelector('#entity-list [aria-selected=true]')")
    assert page.texts("#entity-list .label")[0] == PERSON
    assert field.get_attribute("aria-expanded") == "true"
    marked = field.get_attribute("aria-activedescendant")
    assert page.one(f"#{marked}").text.startswith(PERSON)
    field.send_keys(ENTER)
    page.until("return location.search.includes('entity')")
    page.settle()
    assert page.state == {"entity": PERSON}
    assert "Known of it" in page.texts("h3")
    field = page.one("#relation")
    field.send_keys("parent")
    page.until("return document.querySelector('#relation-list [aria-selected=true]')")
    labels = page.texts("#relation-list .label")
    assert set(labels) == {"parent of ?", "? parent of"}
    for _ in range(labels.index("parent of ?")):
        field.send_keys(DOWN)
    field.send_keys(ENTER)
    page.until("return document.querySelector('ol.answers li')")
    page.settle()
    assert page.state == {"entity": PERSON, "relation": RELATION}
    wanted = [one.tail for one in model.predict_tails(PERSON, RELATION)]
    assert page.names() == wanted
    assert "10 answers" in page.one("#status").get_attribute("textContent")


def test_suggestions_close(page):
    page.open()
    field = page.one("#entity")
    field.send_keys("zzzzz")
    page.until("return document.querySelector('#entity-list .nothing')")
    field.send_keys(ESCAPE)
    assert field.get_attribute("aria-expanded") == "false"
    field.send_keys(ENTER)
    assert page.state == {}


def test_bars_are_split_by_expert(page, model):
    page.ask()
    wanted = model.predict_tails(PERSON, RELATION)
    shown = page.texts("ol.answers .probability .number")
    assert [float(text.strip("<\xa0%")) for text in shown] == pytest.approx(
        [100 * one.probability for one in wanted], abs=0.5
    )
    widths = page.window.execute_script(
        "return [...document.querySelectorAll('.filled')].map(e => e.offsetWidth)"
    )
    assert widths == sorted(widths, reverse=True)
    parts = page.all("ol.answers li:first-child .filled span")
    assert 1 <= len(parts) <= len(model.experts)
    known = [one.known for one in wanted]
    rows = page.all("ol.answers > li")
    assert [bool(row.find_elements("css selector", ".known")) for row in rows] == known


def test_why(page, model):
    page.ask()
    name = page.names()[0]
    page.one("ol.answers .opener").send_keys(SPACE)
    page.until("return document.querySelector('.why-panel .reasons')")
    assert page.one("ol.answers .opener").get_attribute("aria-expanded") == "true"
    assert page.state["open"]
    reasons = model.explain(PERSON, RELATION, name)
    assert f"Rank {reasons.tail_query.rank:g} of" in page.texts(".summary")[0]
    rows = page.texts(".reasons tbody tr")
    assert len(rows) == len(model.experts)
    for expert, score in reasons.experts.items():
        (row,) = (row for row in rows if row.startswith(expert))
        assert f"{abs(score):.2f}"[:-1] in row
    # Paths are a picture whose entities lead on, numbers are one as well.
    through = {m.name for ps in reasons.parts.values() for p in ps for m in p.middles}
    drawn = {one.get_attribute("aria-label") for one in page.all("svg.paths a")}
    assert {name.removeprefix("Ask about ") for name in drawn} & through
    assert page.all("svg.paths .lane")
    assert page.all("svg.paths .middle a")
    assert page.all("svg.histogram .column")
    assert page.one("svg.histogram").get_attribute("aria-label").startswith("Histogram")
    assert page.texts(".counts")
    cards = page.texts(".alone .card h4")
    assert cards == list(model.experts)
    page.click("ol.answers .opener")
    assert not page.all(".why-panel")


def test_switching_experts_changes_the_ranking(page, model):
    page.ask()
    before = page.names()
    chip = page.one("[data-expert=evidence]")
    assert chip.get_attribute("aria-pressed") == "true"
    chip.send_keys(SPACE)
    page.until("return location.search.includes('experts')")
    page.settle()
    wanted = model.without("evidence").predict_tails(PERSON, RELATION)
    assert page.names() == [one.tail for one in wanted]
    assert page.names() != before
    chip = page.one("[data-expert=evidence]")
    assert chip.get_attribute("aria-pressed") == "false"
    assert chip == page.window.switch_to.active_element  # the focus stays
    moved = page.texts("ol.answers .rank small")
    assert moved
    assert all(re.fullmatch(r"[▲▼]\d+", text) for text in moved)
    for name in ("latent", "relational", "numerical"):
        page.click(f"[data-expert={name}]")
    # The last one stays on.
    pressed = page.all("[data-expert][aria-pressed=true]")
    assert [one.text for one in pressed] == ["numerical"]
    assert "At least one" in page.one("#status").get_attribute("textContent")


def test_back_and_forward(page):
    page.open()
    page.open(entity=PERSON)
    page.click("a.slot")
    answers = page.names()
    page.click("ol.answers .opener")
    page.until("return document.querySelector('.reasons')")
    page.click("[data-expert=latent]")
    page.click("ol.answers .walk")
    walked = page.state["entity"]
    assert walked != PERSON
    steps = []
    for _ in range(4):
        page.window.back()
        page.settle()
        steps.append(set(page.state))
    question = {"entity", "relation"}
    assert [one - {"side"} for one in steps] == [
        question | {"open", "experts"},
        question | {"open"},
        question,
        {"entity"},
    ]
    page.window.forward()
    page.until("return document.querySelectorAll('ol.answers .opener').length")
    page.settle()
    assert page.names() == answers
    for _ in range(3):
        page.window.forward()
        page.settle()
    assert page.state == {"entity": walked}


def test_a_link_shows_the_same(page):
    page.ask(experts="latent,relational", novel=1, k=30, open="Person 3")
    page.until("return document.querySelector('.reasons')")
    assert len(page.names()) == len(set(page.names())) > 10
    assert page.one("#novel").is_selected()
    opened = page.texts(".opener[aria-expanded=true]")
    assert opened == ["Person 3"]
    pressed = [one.text for one in page.all("[data-expert][aria-pressed=true]")]
    assert pressed == ["latent", "relational"]
    assert not page.all(".chip.known")


def test_walks_on(page):
    page.ask()
    name = page.names()[0]
    page.click("ol.answers .walk")
    assert page.texts("main h2") == [name]
    near = page.texts(".near a")[0]
    page.click(".near a")
    assert page.texts("main h2") == [near]


def test_copies(page, model):
    granted = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    origin = {"origin": page.server, "permissions": granted}
    page.window.execute_cdp_cmd("Browser.grantPermissions", origin)
    page.ask(k=3)
    read = "navigator.clipboard.readText().then(arguments[arguments.length - 1])"
    page.one("#copy-csv").click()
    page.until("return document.querySelector('#copy-csv').textContent === 'Copied'")
    text = page.window.execute_async_script(read)
    assert text.splitlines()[0].startswith("head,relation,tail")
    assert len(text.splitlines()) == 4
    page.one("#copy-link").click()
    page.until("return document.querySelector('#copy-link').textContent === 'Copied'")
    assert page.window.execute_async_script(read) == page.window.current_url


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text(page, name):
    key = name if len(name) < 300 and not name.startswith("id:") else None
    page.open(entity=key or f"id:{HOSTILE.index(name)}")
    assert page.texts("main h2") == [name]
    page.click("a.slot")
    assert len(page.names()) == 10
    page.click("ol.answers .opener")
    page.until("return document.querySelector('.reasons')")
    allowed = {"/static/icon.svg"}
    sources = page.window.execute_script(
        "return [...document.images].map(e => e.getAttribute('src'))"
    )
    assert set(sources) == allowed
    assert page.window.execute_script("return document.scripts.length") == 1
    assert not page.all("main b b, main i b, main img, main script")


def test_relations_with_markup(page):
    page.open(entity=PERSON, relation=RELATIONS[2], side="head")
    # What is a path is shortened, and markup stays text.
    assert page.texts(".question .relation")
    assert page.names()


def test_unknown_names(page):
    page.open(entity="person 1")
    assert page.texts(".problem p")[0] == "No entity has this name."
    page.click(".problem li a")
    assert page.texts("main h2")
    refused = page.window.get_log("browser")  # that of the browser about the 404
    assert all("404" in one["message"] for one in refused)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [320, 390, 700, 1280])
def test_nothing_is_wider_than_the_window(page, width, dark):
    page.resize(width, dark)
    for query in (
        {},
        {"entity": PERSON},
        {"entity": PERSON, "relation": RELATION},
        {"entity": PERSON, "relation": RELATION, "open": "Person 8"},
        {"entity": "id:7", "relation": RELATIONS[1], "open": "id:7"},
    ):
        page.open(**query)
        if "open" in query:
            page.until("return document.querySelector('.reasons')")
        too_wide = page.window.execute_script(
            "const room = document.documentElement.clientWidth;"
            "return [...document.body.querySelectorAll('*')]"
            ".filter(e => e.checkVisibility() && !e.closest('.unseen, .skip'))"
            ".filter(e => e.getBoundingClientRect().right > room + 0.5)"
            ".map(e => e.outerHTML.slice(0, 80))"
        )
        assert too_wide == [], query
        sizes = page.window.execute_script(
            "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        )
        assert len(set(sizes)) == 1, query


def test_contrast_and_labels(page):
    """Every control has a name, and text stands out from its ground."""
    for dark in (False, True):
        page.resize(1280, dark)
        page.ask(open="Person 8")
        page.until("return document.querySelector('.reasons')")
        for control in page.all("button, input, a, svg[role]"):
            if control.is_displayed():
                assert control.accessible_name, control.get_attribute("outerHTML")
        faint = page.window.execute_script(CONTRAST)
        assert faint == []


# Compares the colour of each text with that of the ground below it (WCAG 2, AA).
CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
function rgba(colour) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}
function light([r, g, b]) {
  const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}
function ground(e) {
  const above = [];
  for (; e; e = e.parentElement) {
    const colour = rgba(getComputedStyle(e).backgroundColor);
    above.push(colour);
    if (colour[3] === 255) break;
  }
  return above.reverse().reduce((below, one) => below.map((v, i) => v + (one[i] - v) * one[3] / 255));
}
const found = [];
for (const e of document.querySelectorAll("body *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  if (!own || !e.checkVisibility() || e.closest(".unseen, .skip, svg, title, :disabled")) continue;
  const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.push([ratio.toFixed(2), e.outerHTML.slice(0, 90)]);
}
return found;
"""


def test_description_of_the_interface(page):
    page.window.get(f"{page.server}/docs")
    page.until("return document.querySelectorAll('#calls section').length > 8")
    assert "GET /api/answers" in page.texts("h2")
    assert Path(urlsplit(page.window.current_url).path).name == "docs"
