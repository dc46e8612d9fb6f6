"""Inputs that are too long, too large or endless: refused by line, in little memory."""

import gzip
import io
import math
import subprocess
import sys
import time

import pytest

from kblrn_pyg.data import DataError, lines, read_kb
from kblrn_pyg.data.dates import decimal_year
from kblrn_pyg.recipes import read_recipe
from kblrn_pyg.rules import read_rules
from kblrn_pyg.training import Run

XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.mark.parametrize("digits", [16, 400, 5000])
def test_years_of_many_digits_are_no_dates(digits):
    for text in ("9" * digits, "-" + "9" * digits, f"{'9' * digits}-01-01"):
        assert math.isnan(decimal_year(text))
    assert decimal_year("9" * 15) == 10.0**15 - 1


def test_a_year_of_many_digits_is_skipped_in_a_file(tmp_path):
    pytest.importorskip("pyoxigraph")
    year = f'<x:a> <x:n> "{"9" * 400}"^^<{XSD}gYear> .\n'
    (tmp_path / "a.nt").write_text(f"<x:a> <x:r> <x:b> .\n{year}")
    _, report = read_kb(tmp_path / "a.nt")
    assert report.num_other_literals == 1


@pytest.mark.parametrize(
    "count", ["1e300", "-5", "nan", "inf", "-inf", "1e16", "9" * 400]
)
def test_counts_of_rules_must_be_counts(count):
    with pytest.raises(DataError, match=r"<lines>:1: .* is not a count"):
        read_rules([f"{count}\t1\t0.5\tr(X,Y) <= a(X,Y)"], ["r", "a"])
    amie = f"?a  a  ?b   => ?a  r  ?b\t0.5\t0.5\t0.5\t1\t{count}\t2"
    with pytest.raises(DataError, match=r"<lines>:1: .* is not a count"):
        read_rules([amie], ["r", "a"])


@pytest.mark.parametrize(
    "body",
    [
        "(" * 50_000,
        "a(" * 50_000,
        f"a({' ' * 50_000}(",
        f"a(X{' ' * 50_000}Y)",
        "a(X,A), " * 100_000 + "b(A,Y)",
        "a(X," * 50_000 + ")",
    ],
)
@pytest.mark.parametrize("entities", [None, ["e"]])
def test_long_lines_of_rules_take_time_by_their_length(body, entities):
    """A line of 4,000 brackets took seconds, and one of 100,000 atoms a minute."""
    start = time.process_time()
    for rule in (f"9\t9\t0.5\tr(X,Y) <= {body}", f"{body} ==>r(x,z)"):
        with pytest.raises(DataError):
            read_rules([rule], ["r", "a", "b"], entities=entities)
    assert time.process_time() - start < 20  # which would be hours


def test_a_tiny_coverage_is_no_reason_to_fail():
    amie = "?a  a  ?b   => ?a  r  ?b\t1e-300\t0.5\t0.5\t1\t2\t2"
    rules, _ = read_rules([amie], ["r", "a"])
    assert rules.head_size.tolist() == [2**53]


@pytest.mark.parametrize("ending", ["tsv", "csv", "nt", "tsv.gz", "csv.gz", "nt.gz"])
@pytest.mark.parametrize("begin", ["", "first"])
def test_endless_lines_are_refused(tmp_path, monkeypatch, ending, begin):
    if ending.startswith("nt"):
        pytest.importorskip("pyoxigraph")
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 21)
    line = {"t": "a\tr\tb\n", "c": "a,r,b\n", "n": "<x:a> <x:r> <x:b> .\n"}[ending[0]]
    long = b'<x:a> <x:r> "' if ending.startswith("nt") else b""
    content = (line * 2 if begin else "").encode() + long + b"z" * (5 << 20)
    path = tmp_path / f"a.{ending}"
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    message = rf"a\.{ending}:{3 if begin else 1}: the line is longer than 2 MB"
    with pytest.raises(DataError, match=message):
        read_kb(path)


def test_endless_lines_of_rules_and_numbers_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 21)
    (tmp_path / "r.tsv").write_bytes(b"z" * (5 << 20))
    with pytest.raises(DataError, match=r"r\.tsv:1: the line is longer than 2 MB"):
        read_rules(tmp_path / "r.tsv", ["r"])
    with pytest.raises(DataError, match=r"r\.tsv:1: the line is longer than 2 MB"):
        read_kb([("a", "r", "b")], numerical=tmp_path / "r.tsv")


def test_lines_below_the_limit_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1 << 21)
    name = "é" * (1 << 19)
    (tmp_path / "a.tsv").write_text(f"{name}\tr\tb\nb\tr\t{name}\n" * 2)
    kbs, _ = read_kb(tmp_path / "a.tsv")
    assert kbs["train"]["entity"].name == [name, "b"]


BOMB = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
from kblrn_pyg.data import DataError, read_kb
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_kb(sys.argv[1])
except DataError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("kind", ["bomb.csv.gz", "/dev/zero"])
def test_a_bomb_takes_little_memory(tmp_path, kind):
    """Half a gigabyte of zeros in half a megabyte, and zeros without an end."""
    path = kind
    if kind != "/dev/zero":
        path = tmp_path / kind
        raw = io.BytesIO()
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as file:
            for _ in range(512):
                file.write(bytes(1 << 20))
        path.write_bytes(raw.getvalue())
    done = subprocess.run(
        [sys.executable, "-c", BOMB, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    message, kilobytes = done.stdout.splitlines()
    assert ":1: the line is longer than 16 MB" in message
    assert int(kilobytes) < 150_000


HUB = """
import resource, numpy as np, torch
from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import read_rules
degree, number = 100_000, 100_010
rng = np.random.default_rng(0)
spoke, hub = np.arange(degree), np.full(degree, degree)
others = rng.integers(degree, size=(2, 20_000))
head = np.concatenate([spoke, hub, others[0]])
tail = np.concatenate([hub, spoke, others[1]])
rel = np.repeat([0, 1, 2], [degree, degree, 20_000])
names = [f"e{i}" for i in range(number)]
triples = tuple(map(torch.from_numpy, (head, rel, tail)))
kb = make_kb(names, ["to", "from", "r"], triples)
rules, _ = read_rules(
    ["9\\t9\\t0.5\\tr(X,Y) <= to(X,A), from(A,Y)"], ["to", "from", "r"]
)
model = KBLRN.from_data(kb, "r", rules=rules, num_negatives=20).train()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
asked = [column[-1024:] for column in flat_triples(kb)]
model.loss(*asked).backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_hub_takes_little_memory():
    """Each query reaches a hundred thousand entities: the first loss took 12 GB."""
    words = [sys.executable, "-c", HUB]
    done = subprocess.run(
        words, capture_output=True, text=True, check=True, timeout=600
    )
    assert int(done.stdout) < 1_000_000  # kilobytes


@pytest.mark.parametrize("name", ["recipe.json", "recipe.toml", "settings.json"])
def test_settings_without_an_end(tmp_path, monkeypatch, name):
    """They were read until there was no memory left."""
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 2 << 20)
    path = tmp_path / name

    def read():
        return Run(tmp_path).read_settings() if "sett" in name else read_recipe(path)

    path.write_bytes(b" " * (3 << 20))
    with pytest.raises(DataError, match=f"{name}: is longer than 2 MB"):
        read()
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(DataError, match=f"{name}: is longer than 2 MB"):
        read()
