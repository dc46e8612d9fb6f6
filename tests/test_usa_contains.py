"""The list of places in the USA, and the figures of the query that asks for it."""

import os
import re
from pathlib import Path

import pytest
import torch
from reproduction import usa_contains as usa
from scripts import run

from kblrn_pyg.data import ask, make_kb

SCRIPT = "benchmarks/usa_contains.py"

COUNTS = {
    "FB15k-237": 954,
    "FB15k": 96,
    "containment": 497,
    "coordinates": 51,
    "address": 5,
    "description": 4,
    "by eye": 2,
}

HERE = """
    /m/02_286 New York City
    /m/01n7q California
    /m/0rh6k Washington, D.C.
    /m/0hhjk Museum of Modern Art
    /m/06pwq Stanford University
    /m/04lyk Los Angeles International Airport
    /m/01z_jj National Gallery of Art
    /m/0rt80 Macon
    /m/0bwfn New York University
    /m/0trv Arizona State University
    /m/08qnnv Indiana University
"""
ELSEWHERE = """
    /m/04jpl London
    /m/05qtj Paris
    /m/0h7h6 Toronto
    /m/080h2 Vancouver
    /m/0pswc Tijuana
    /m/071_8 Simon Fraser University
    /m/081m_ Warsaw
    /m/0d0kn Georgia
    /m/0d060g Canada
    /m/059g4 North America
    /m/04kbn Lake Erie
    /m/01n86 Columbia River
    /m/05r7t Puerto Rico
    /m/09c7w0 United States of America
"""
NO_PLACES = """
    /m/0f6lx Charlie Parker
    /m/02wlk Frank Lloyd Wright
    /m/04sv4 Microsoft
    /m/03s7h Intel
    /m/05qd_ Paramount Pictures
    /m/07751 Sundance Film Festival
    /m/0fjzsy Ohio State Buckeyes football
    /m/07t31 United States Congress
    /m/01h1bf Today
"""


def lines(text):
    return [line.strip().split(" ", 1) for line in text.strip().splitlines()]


@pytest.fixture(scope="module")
def evidence(paper_data):
    path = Path(os.environ["KBLRN_DATA"], "FB15k", "entity2wikidata.json")
    return usa.Evidence(paper_data("FB15k"), path)


@pytest.fixture(scope="module")
def sources(paper_data, evidence):
    return usa.usa_sources(paper_data("FB15k-237"), evidence)


@pytest.mark.data
def test_counts(sources):
    assert {source: len(names) for source, names in sources.items()} == COUNTS
    assert len(set().union(*sources.values())) == sum(COUNTS.values()) == 1609


def test_counts_are_those_of_the_docstring():
    for source, count in COUNTS.items():
        assert re.search(rf"^{source} +{count}  ", usa.__doc__, re.MULTILINE)


@pytest.mark.data
def test_known_answers_are_in_it(sources):
    """Read from the raw files, all of them."""
    found = set().union(*sources.values())
    for name, expected in (("FB15k-237", 954), ("FB15k", 1050)):
        known = set()
        for split in ("train", "valid", "test"):
            path = Path(os.environ["KBLRN_DATA"], name, f"{split}.txt")
            for line in path.read_text(encoding="utf-8").splitlines():
                head, relation, tail = line.split("\t")
                if (head, relation) == (usa.USA, usa.CONTAINS):
                    known.add(tail)
        assert len(known) == expected
        assert known <= found


@pytest.mark.data
@pytest.mark.parametrize(
    ("text", "is_in_it"), [(HERE, True), (ELSEWHERE, False), (NO_PLACES, False)]
)
def test_who_is_in_it(sources, evidence, text, is_in_it):
    found = set().union(*sources.values())
    for identifier, label in lines(text):
        assert evidence.words[identifier][0] == label
        assert (identifier in found) == is_in_it, label


@pytest.mark.data
def test_no_person_or_film_is_in_it(sources, evidence):
    found = set().union(*sources.values())
    persons = {head for head, _ in evidence.pairs["/people/person/gender"]}
    films = {head for head, _ in evidence.pairs["/film/film/genre"]}
    assert len(persons) > 4000
    assert len(films) > 1800
    assert not found & (persons | films)


@pytest.mark.data
def test_no_answer_lies_far_from_the_usa(sources, evidence):
    found = set().union(*sources.values()) & evidence.points.keys()
    outside = {place for place in found if not evidence._is_in_regions(place)}
    # The University of Virginia School of Law, whose longitude lacks its sign.
    assert outside == {"/m/05qgd9"}


@pytest.mark.data
def test_ids(paper_data, sources):
    splits = paper_data("FB15k-237")
    path = Path(os.environ["KBLRN_DATA"], "FB15k", "entity2wikidata.json")
    ids = usa.usa_answers(splits, fb15k=paper_data("FB15k"), wikidata_path=path)
    assert ids == sorted(set(ids))
    names = splits["train"]["entity"].identifier
    assert {names[i] for i in ids} == set().union(*sources.values())


@pytest.mark.data
def test_command(monkeypatch, paper_data):
    loaded = {name: paper_data(name) for name in ("FB15k", "FB15k-237")}
    monkeypatch.setattr(
        "kblrn_pyg.datasets.load_dataset", lambda name, root: loaded[name]
    )
    done = run("python", SCRIPT)
    assert done.code == 0, done.err
    assert "together       1,609, in the paper 1,619" in done.out
    done = run("python", SCRIPT, "--list")
    assert len(done.out.splitlines()) == 1609
    assert "/m/0hhjk\tcoordinates\tMuseum of Modern Art\t" in done.out


class Scores:
    """A model that gives the scores it was made of."""

    num_relations, training = 2, False

    def __init__(self, of_tails):
        self.of_tails, self.num_nodes = of_tails, len(of_tails)

    def parameters(self):
        return iter(())

    def train(self, mode=True):
        return self

    def score_tails(self, head_index, rel_type):
        assert rel_type.tolist() == [1]
        assert head_index.tolist() == [4]
        return self.of_tails[None]


def tiny_splits():
    names = [f"/m/{i}" for i in range(9)]
    names[4] = usa.USA
    triples = (torch.tensor([4, 0]), torch.tensor([1, 0]), torch.tensor([2, 3]))
    train = make_kb(names, ["/other", usa.CONTAINS], triples)
    asked = (torch.tensor([4]), torch.tensor([1]), torch.tensor([7]))
    return {"train": train, "val": train, "test": ask(train, asked)}


def naive_figures(scores, answers):
    others = [scores[i] for i in range(len(scores)) if i not in answers]
    ranks = [
        1 + sum(o > scores[a] for o in others) + sum(o == scores[a] for o in others) / 2
        for a in answers
    ]
    area, found = 0.0, 0
    for level in sorted(set(scores), reverse=True):
        taken = [i for i, score in enumerate(scores) if score >= level]
        hits = sum(i in answers for i in taken)
        area += (hits - found) / len(answers) * hits / len(taken)
        found = hits
    return {
        "auc_pr": area,
        "mr": sum(ranks) / len(ranks),
        "mrr": sum(1 / rank for rank in ranks) / len(ranks),
        "count": len(answers),
    }


@pytest.mark.parametrize("seed", range(5))
def test_figures(seed):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(5, (9,), generator=generator).float()  # with ties
    answers = torch.randperm(9, generator=generator)[:4].tolist()
    found = usa.usa_figures(Scores(scores), tiny_splits(), answers)
    assert found == pytest.approx(naive_figures(scores.tolist(), answers))


def test_perfect_figures():
    scores = torch.tensor([0.0, 0, 3, 0, 0, 2, 0, 1, 0])
    found = usa.usa_figures(Scores(scores), tiny_splits(), [2, 5, 7])
    assert found == {"auc_pr": 1, "mr": 1, "mrr": 1, "count": 3}


def test_reach():
    steps = {"a": {"b", "c"}, "b": {"a", "d"}, "c": {"e"}}
    assert usa._reach({"a"}, steps) == {"a", "b", "c", "d", "e"}
    assert usa._reach({"a"}, steps, never={"b"}) == {"c", "e"}
    assert usa._reversed(steps)["d"] == {"b"}
