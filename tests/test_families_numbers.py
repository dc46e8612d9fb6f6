"""The relations of Families-num are what its description says."""

from collections import Counter

import families_numbers as numbers
import pytest
from families_generator import DIRECTORY
from families_world import Place

from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import Families, FamiliesNum

SPLITS = ("train", "valid", "test")
RELATIONS = ("taught", "dances_with", "wears", "trades_with")


def read(name):
    text = (DIRECTORY / f"{name}.tsv").read_bytes().decode("utf-8")
    return [tuple(line.split("\t")) for line in text.split("\n")[:-1]]


@pytest.fixture(scope="module")
def pairs():
    """The (head, tail) pairs of all splits by relation."""
    found = {}
    for split in SPLITS:
        for head, relation, tail in read(f"{split}_num"):
            found.setdefault(relation, []).append((head, tail))
    return found


@pytest.fixture(scope="module")
def values():
    """The values of all entities by attribute."""
    found = {}
    for entity, attribute, value in read("numerical"):
        found.setdefault(attribute, {})[entity] = float(value)
    return found


def test_every_relation_is_in_every_split(pairs):
    assert set(pairs) == set(RELATIONS)
    for split in SPLITS:
        assert {relation for _, relation, _ in read(f"{split}_num")} == set(RELATIONS)
    for relation, of_relation in pairs.items():
        assert len(of_relation) > 500, relation
        assert len(set(of_relation)) == len(of_relation)
        assert all(head != tail for head, tail in of_relation)
        assert not {(t, h) for h, t in of_relation} & set(of_relation)


def test_train_knows_all_that_is_held_out():
    facts = [*read("train"), *read("train_num")]
    known = {entity for h, _, t in facts for entity in (h, t)}
    held_out = [*read("valid_num"), *read("test_num")]
    assert {entity for h, _, t in held_out for entity in (h, t)} <= known


def test_teachers_are_12_or_44_years_older(pairs, values):
    year = values["birth_year"]
    known = [(h, t) for h, t in pairs["taught"] if h in year and t in year]
    gaps = Counter(int(year[t] - year[h]) for h, t in known)
    assert set(gaps) == {11, 12, 13, 43, 44, 45}
    near = sum(gaps[gap] for gap in (11, 12, 13))
    assert 0.4 < near / len(known) < 0.65


def test_dancers_have_one_height_or_none(pairs, values):
    height = values["height"]
    both = [(h in height) + (t in height) for h, t in pairs["dances_with"]]
    assert set(both) == {0, 2}
    assert 0.65 < both.count(2) / len(both) < 0.75
    for head, tail in pairs["dances_with"]:
        assert height.get(head) == height.get(tail)


def test_sizes_follow_from_heights(pairs, values):
    least, most = {}, {}
    for person, size in pairs["wears"]:
        height = values["height"][person]
        least[size] = min(height, least.get(size, height))
        most[size] = max(height, most.get(size, height))
    order = sorted(least)
    assert order == [f"Size {i}" for i in range(1, 6)]
    assert all(most[one] < least[other] for one, other in zip(order, order[1:]))
    count = Counter(size for _, size in pairs["wears"])
    assert min(count.values()) > 0.1 * len(pairs["wears"])


def test_traders_are_about_120_kilometres_apart(pairs, values):
    latitude, longitude = values["latitude"], values["longitude"]

    def place(name):
        if name in latitude and name in longitude:
            return Place(name, latitude[name], longitude[name])
        return None

    ends = [(place(h), place(t)) for h, t in pairs["trades_with"]]
    apart = [numbers.kilometres(h, t) for h, t in ends if h and t]
    assert len(apart) > 0.9 * len(ends)
    assert min(apart) >= 115
    assert max(apart) <= 125
    # In whatever direction: neither coordinate differs by much the same everywhere.
    north = [abs(h.latitude - t.latitude) for h, t in ends if h and t]
    assert min(north) < 0.1
    assert max(north) > 1.0


def test_a_degree_is_111_kilometres():
    paris, north = Place("a", 48.0, 2.0), Place("b", 49.0, 2.0)
    assert numbers.kilometres(paris, north) == pytest.approx(111.2, abs=0.1)
    assert numbers.kilometres(paris, paris) == 0


def test_all_facts_of_families_are_there():
    def facts(data):
        names = data["entity"].name
        relations = [name for _, name, _ in data.edge_types]
        rows = zip(*(index.tolist() for index in flat_triples(data)))
        return {(names[h], relations[r], names[t]) for h, r, t in rows}

    whole, part = facts(FamiliesNum()[0]), facts(Families()[0])
    assert part < whole
    assert {relation for _, relation, _ in whole - part} == set(RELATIONS)
    assert repr(FamiliesNum(split="val")) == "FamiliesNum('val')"
