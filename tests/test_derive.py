"""Derived numbers: of one entity, and of two entities together."""

import math

import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.cli.main import main
from kblrn_pyg.data import DataError, add_attribute, derive, pair_attributes
from kblrn_pyg.data.pairs import compare_rows, in_own_unit
from kblrn_pyg.datasets import load_dataset


@pytest.fixture
def kb():
    kb = as_kb([(i, 0, (i + 1) % 8) for i in range(8)], 8, 1)
    x = torch.arange(32, dtype=torch.double).view(8, 4) + 1
    x[3, 1] = torch.nan
    kb["entity"].x = x
    kb.attribute_names = ["people", "area", "lat", "lon"]
    return kb


def compared(kb, name, head, tail):
    (one,) = [one for one in pair_attributes(kb) if one.name == name]
    x = kb["entity"].x.numpy()
    rows = one.side(x[[head]], False), one.side(x[[tail]], True)
    return float(in_own_unit(one.kind, compare_rows(*rows))[0])


def test_functions_of_two_entities(kb):
    kb = derive(kb, "crowd=difference(people, area)", " ratio = log_ratio( area ) ")
    kb = derive(kb, "way=haversine(lat,lon)")
    assert compared(kb, "crowd", 2, 0) == 9 - 2
    assert compared(kb, "ratio", 2, 0) == pytest.approx(10 / 2)
    assert math.isnan(compared(kb, "crowd", 0, 3))
    (a, b), (c, d) = (map(math.radians, row) for row in ((3, 4), (11, 12)))
    cosine = math.sin(a) * math.sin(c) + math.cos(a) * math.cos(c) * math.cos(b - d)
    assert compared(kb, "way", 0, 2) == pytest.approx(6371 * math.acos(cosine))
    assert compared(kb, "way", 2, 0) == compared(kb, "way", 0, 2)


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("distance", "expected NAME=FUNCTION"),
        ("=difference(people)", "expected NAME=FUNCTION"),
        ("a=product(people, area)", "unknown function 'product', expected one of"),
        ("a=haversine(lat)", "haversine takes two attributes"),
        ("a=difference(lat, lon, lat)", "difference takes one or two attributes"),
        ("a=difference()", "difference takes one or two attributes"),
        ("a=difference(height)", "unknown attribute 'height'"),
        ("people=difference(area)", "there is an attribute 'people' already"),
        ("a=haversine(big, lon)", "latitudes must lie in −90 to 90"),
    ],
)
def test_what_cannot_be_derived(kb, declaration, message):
    kb = add_attribute(kb, "big", lambda people: 100 * people, ["people"])
    with pytest.raises(DataError, match=message):
        derive(kb, declaration)


def test_the_distance_is_found_by_names(kb):
    kb.attribute_names = ["people", "area", "/geo/Latitude", "/geo/Longitude"]
    assert pair_attributes(kb)[-1].name == "distance"
    declared = derive(kb, "way=haversine(/geo/Latitude, /geo/Longitude)")
    assert [one.name for one in pair_attributes(declared)].count("distance") == 0
    kb["entity"].x[0, 2] = 91.0
    assert pair_attributes(kb)[-1].name != "distance"


def test_another_number_may_be_called_distance(kb):
    kb.attribute_names = ["people", "area", "latitude", "longitude"]
    assert "distance" in [one.name for one in pair_attributes(kb)]
    kb = derive(kb, "distance=difference(people)")
    assert compared(kb, "distance", 2, 0) == 9 - 1


def test_any_function_of_columns(kb):
    more = add_attribute(kb, "density", np.divide, ["people", "area"])
    x = kb["entity"].x
    torch.testing.assert_close(
        more["entity"].x[:, 4], x[:, 0] / x[:, 1], equal_nan=True
    )
    assert kb["entity"].x.size(1) == 4
    with pytest.raises(DataError, match="must return one number for each entity"):
        add_attribute(kb, "mean", lambda people: people.mean(), ["people"])
    with pytest.raises(DataError, match="must be finite"):
        add_attribute(kb, "log", lambda people: people * np.inf, ["people"])
    with pytest.raises(DataError, match="there is an attribute 'area' already"):
        add_attribute(kb, "area", np.log, ["people"])


def test_files_keep_what_is_derived(kb, tmp_path):
    kb = derive(kb, "way=haversine(lat, lon)")
    model = KBLRN.from_data(kb, "n", numerical="layer")
    torch.nn.init.normal_(model.experts["numerical"].weight)
    model.save(tmp_path / "model.pt")
    loaded = KBLRN.load(tmp_path / "model.pt")
    assert "way" in [one.text for one in loaded.explain(0, 0, 1).parts["numerical"]]
    assert loaded.kb.derived == ["way=haversine(lat, lon)"]
    with pytest.warns(UserWarning, match="derived attributes have no effect unless"):
        KBLRN.from_data(kb, "n")


def test_import_derives(tmp_path, capsys):
    facts, numbers = tmp_path / "facts.tsv", tmp_path / "numbers.tsv"
    facts.write_text("".join(f"e{i}\tnear\te{(i + 1) % 40}\n" for i in range(40)))
    values = ((f"e{i}", a, i + j) for i in range(40) for j, a in enumerate("ab"))
    numbers.write_text("".join("\t".join(map(str, row)) + "\n" for row in values))
    words = ["import", "--train", str(facts), "--numerical", str(numbers)]
    words += ["--holdout", "0.1", "--derive"]
    out = tmp_path / "kb"
    assert main([*words, "far=haversine(a, b)", "--out", str(out)]) == 0
    kbs = load_dataset(str(out))
    assert all(kb.derived == ["far=haversine(a, b)"] for kb in kbs.values())
    assert main(["data", str(out)]) == 0
    assert "derived: far (haversine of a and b)" in capsys.readouterr().out
    assert main([*words, "far=haversine(a)", "--out", str(tmp_path / "no")]) == 2
    assert "haversine takes two attributes" in capsys.readouterr().err
