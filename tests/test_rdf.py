import gzip
import math
import tracemalloc

import pytest

from kblrn_pyg.data import DataError, decimal_year, read_kb

pytest.importorskip("pyoxigraph")

from kblrn_pyg.data import read_ntriples

XSD = "http://www.w3.org/2001/XMLSchema#"
FREEBASE = "http://rdf.freebase.com/ns/"

TEXT = f"""# a comment
<x:ada> <x:spouse> <x:ben> .
<x:ada> <x:born> "1950-07-02"^^<{XSD}date> .
<x:ben> <x:born> "1948"^^<{XSD}gYear> .
<x:ada> <x:height> "1.7"^^<{XSD}double> .
<x:ada> <x:count> "3"^^<{XSD}integer> .
<x:ada> <x:seen> "2000-01-01T12:00:00Z"^^<{XSD}dateTime> .
<x:ada> <x:founded> "1900-01"^^<{FREEBASE}type.datetime> .
<x:ada> <x:weight> "61.5"^^<{FREEBASE}type.float> .
<x:ada> <x:name> "Ada"@en .
<x:ada> <x:note> "5" .
<x:ada> <x:height> "tall"^^<{XSD}double> .
<x:ada> <x:height> "INF"^^<{XSD}double> .
<x:loner> <x:height> "2"^^<{XSD}float> .
_:b1 <x:knows> <x:ada> .
<x:ada> <x:spouse> <x:ben> .
"""


@pytest.fixture(params=["kb.nt", "kb.nt.gz"])
def path(request, tmp_path):
    path = tmp_path / request.param
    data = TEXT.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_entities_become_triples_and_numbers_become_values(path):
    content = read_ntriples(path)
    assert content.triples.entities == ["x:ada", "x:ben", "_:b1"]
    assert content.triples.relations == ["x:spouse", "x:knows"]
    assert content.triples.head.tolist() == [0, 2]
    assert content.triples.tail.tolist() == [1, 0]
    assert content.triples.num_duplicates == 1
    assert content.num_other_literals == 4
    values = content.values
    found = {
        (values.entities[e][2:], values.attributes[a][2:]): v
        for e, a, v in zip(values.entity, values.attribute, values.value)
    }
    assert found == {
        ("ada", "born"): 1950.5,
        ("ben", "born"): 1948.0,
        ("ada", "height"): 1.7,
        ("ada", "count"): 3.0,
        ("ada", "seen"): 2000 + 0.5 / 366,
        ("ada", "founded"): 1900 + 15.5 / 365,
        ("ada", "weight"): 61.5,
        ("loner", "height"): 2.0,
    }


def test_only_wanted_entities(path):
    content = read_ntriples(path, entities={"x:ada", "x:ben"})
    assert content.triples.entities == ["x:ada", "x:ben"]
    assert "x:loner" not in content.values.entities


def test_whole_knowledge_base(path):
    kbs, report = read_kb(path, numerical=[("x:ben", "x:height", 1.8)], min_entities=2)
    data = kbs["train"]
    assert data.attribute_names == ["born", "height"]
    assert data["entity"].x[:2].tolist() == [[1950.5, 1.7], [1948.0, 1.8]]
    assert report.num_other_literals == 4
    assert report.num_foreign_values == 1


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"<x:a> <x:b> <x:c> .\nfoo\n", 2),
        (b'<x:a> <x:b> "\xff" .\n', 1),
        (b"<x:a> <x:b> <x:c>\n", 2),  # where the parser misses the dot
        (b"", 1),
    ],
)
def test_broken_files(tmp_path, content, line):
    path = tmp_path / "a.nt"
    path.write_bytes(content)
    with pytest.raises(DataError, match="expected N-Triples") as caught:
        read_ntriples(path)
    assert caught.value.line == line


def test_memory_grows_with_what_is_kept(tmp_path):
    """Ten times the statements that are skipped need no more memory."""

    def peak(num_skipped):
        path = tmp_path / f"{num_skipped}.nt"
        with open(path, "w") as file:
            for i in range(num_skipped):
                file.write(f'<x:e{i}> <x:name> "entity number {i}" .\n')
                file.write(f"<x:e{i}> <x:knows> <x:e{i + 1}> .\n")
            file.write("<x:ada> <x:spouse> <x:ben> .\n")
        tracemalloc.start()
        content = read_ntriples(path, entities={"x:ada", "x:ben"})
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(content.triples) == 1
        return most

    peak(100)  # warms up
    assert peak(100_000) < 1.2 * peak(10_000) + 50_000


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("2026-07-02", 2026.5),
        ("2026", 2026.0),
        ("-0044", -44.0),
        ("2024-12-31", 2024 + 365.5 / 366),
        ("2026-01-01T00:00:00", 2026.0),
        ("2026-01-01T24:00:00+01:00", 2026 + 1 / 365),
        ("2026-02", 2026 + (31 + 14) / 365),
        ("2026-07-02Z", 2026.5),
    ],
)
def test_dates(text, year):
    assert decimal_year(text) == pytest.approx(year, abs=1e-12)


@pytest.mark.parametrize(
    "text",
    ["", "next year", "2026-13", "2023-02-29", "2026-00", "20", "T12:00", "2026-1-1"],
)
def test_no_dates(text):
    assert math.isnan(decimal_year(text))
