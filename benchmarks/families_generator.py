"""Rewrites the files of the small embedded data set *Families*.

    python benchmarks/families_generator.py

The world is invented.  Six countries lie on a map of 48 regions; every region has a
capital at its centre and five towns clearly further off.  Five generations of people
marry, have children, move house, learn a craft from elder members of their guild and
like songs, dishes and games.  Each relation is there for at least one expert:

* **relational** (paths): ``grandparent_of`` is ``parent_of`` after ``parent_of``,
  siblings share parents, spouses share children and a home, ``born_in`` is mostly
  where the parents live, ``member_of`` is often a parent's guild, and ``located_in``
  chains from town to region to country.
* **latent** (embeddings): ``likes`` follows hidden taste groups, which no file names;
  no path of one or two hops leads from a person to the other things of their group.
* **numerical** (head minus tail): ``spouse`` joins people of like ``birth_year``, also
  where no child tells a couple from other people of their town; ``parent_of`` bridges
  about 32 years; ``influenced_by`` leads to members of the same guild born 25 to 45
  years earlier; ``capital_of`` and ``neighbour_of`` follow the coordinates.

The files ``*_num.tsv`` are relations of the same people and towns that need more than
one difference of two numbers, see ``families_numbers.py``.

``height`` and ``population`` are missing too often to pass the rule that 90 % of a
relation's training triples carry the attribute on both sides; they test that rule.
Symmetric relations are written once per pair, in a random direction, so that nothing
leaks.  Nothing iterates over a set, and numbers are rounded before they are compared
or written, so that the text is the same on every platform.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from random import Random

from families_numbers import number_triples
from families_world import (
    FAMILY_FIRST,
    TASTE_GROUPS,
    Person,
    Place,
    Society,
    combine,
    draw_regions,
    draw_towns,
    find_neighbours,
    rounded_gauss,
)

from kblrn_pyg.datasets import families

DIRECTORY = Path(families.__file__).parent

Row = tuple[str, str, str]  # a triple, or an entity, an attribute and its value

INFLUENCE_GAP = (35.0, 2.0, 25, 45)
ELDERS_PER_PERSON = 3
GUILD_RECORDED_RATE = 0.9
LIKES_EACH = 4
LIKES_RECORDED_RATE = 0.6
LIKES_WITHIN_GROUP_RATE = 0.9
SYMMETRIC = ("neighbour_of", "sibling_of", "spouse")
HELD_OUT_SHARE = 0.09  # of each relation, once for valid and once for test
MISSING_RATES = dict(
    birth_year=0.03, height=0.3, latitude=0.015, longitude=0.015, population=0.1
)
THING_SECOND = "Waltz Lullaby Ballad Dumplings Stew Pancakes Dice Checkers".split()


def enclosing(place: Place) -> list[Place]:
    return [place.within, *enclosing(place.within)] if place.within else []


def place_triples(regions: list[Place], towns: list[Place]) -> list[Row]:
    triples: dict[Row, None] = {}  # a dict keeps the order, a set would not
    for place in [*regions, *towns]:
        for larger in enclosing(place):
            triples[place.name, "located_in", larger.name] = None
            if place.is_capital and larger in regions:
                triples[place.name, "capital_of", larger.name] = None
        for other in place.neighbours:
            if (other.name, "neighbour_of", place.name) not in triples:
                triples[place.name, "neighbour_of", other.name] = None
    return list(triples)


def family_triples(people: list[Person]) -> list[Row]:
    triples: dict[Row, None] = {}
    for person in people:
        name, spouse = person.name, person.spouse
        triples[name, "born_in", person.birthplace.name] = None
        triples[name, "lives_in", person.home.name] = None
        if spouse and (spouse.name, "spouse", name) not in triples:
            triples[name, "spouse", spouse.name] = None
        for number, child in enumerate(person.children):
            triples[name, "parent_of", child.name] = None
            for other in person.children[:number]:
                triples[other.name, "sibling_of", child.name] = None
            for grandchild in child.children:
                triples[name, "grandparent_of", grandchild.name] = None
    return list(triples)


def influence_triples(rng: Random, people: list[Person]) -> list[Row]:
    """Joins people to the elders of their guild whose age best fits a drawn gap."""
    low, high = INFLUENCE_GAP[2:]
    triples = []
    for person in people:
        elders = [
            other
            for other in people
            if other.guild == person.guild
            and low <= person.birth_year - other.birth_year <= high
        ]
        for _ in range(min(ELDERS_PER_PERSON, len(elders))):
            gap = rounded_gauss(rng, *INFLUENCE_GAP)
            misfits = [abs(person.birth_year - e.birth_year - gap) for e in elders]
            elder = elders.pop(misfits.index(min(misfits)))
            triples.append((person.name, "influenced_by", elder.name))
    return triples


def interest_triples(rng: Random, people: list[Person]) -> list[Row]:
    """Writes down the guilds of most people, and what many like but not why."""
    things = combine(FAMILY_FIRST, THING_SECOND, " ")
    # Shuffled, so that a taste group cannot be read off the names of its things.
    rng.shuffle(things)
    triples: dict[Row, None] = {}
    for person in people:
        if rng.random() < GUILD_RECORDED_RATE:
            triples[person.name, "member_of", f"Guild of {person.guild}"] = None
        if rng.random() < LIKES_RECORDED_RATE:
            for thing in rng.sample(things[person.taste :: TASTE_GROUPS], LIKES_EACH):
                if rng.random() >= LIKES_WITHIN_GROUP_RATE:
                    thing = rng.choice(things)
                triples[person.name, "likes", thing] = None
    return list(triples)


def split(
    rng: Random, triples: list[Row], known: Iterable[str] = ()
) -> dict[str, list[Row]]:
    """Splits every relation by itself, then gives train what it must know besides."""
    by_relation: dict[str, list[Row]] = {}
    for triple in triples:
        by_relation.setdefault(triple[1], []).append(triple)
    splits: dict[str, list[Row]] = {"train": [], "valid": [], "test": []}
    for group in by_relation.values():
        rng.shuffle(group)
        size = round(HELD_OUT_SHARE * len(group))
        splits["valid"] += group[:size]
        splits["test"] += group[size : 2 * size]
        splits["train"] += group[2 * size :]
    known = {*known, *(e for h, _, t in splits["train"] for e in (h, t))}
    for name in ("valid", "test"):
        group, splits[name] = splits[name], []
        for triple in group:
            is_known = triple[0] in known and triple[2] in known
            splits[name if is_known else "train"].append(triple)
            known.update((triple[0], triple[2]))
    return splits


def numerical_rows(rng: Random, places: list[Place], people: list[Person]) -> list[Row]:
    """Lists all values but some that are left out at random."""
    rows: list[Row] = []
    for place in places:
        rows.append((place.name, "latitude", f"{place.latitude:.3f}"))
        rows.append((place.name, "longitude", f"{place.longitude:.3f}"))
        if place.population:
            rows.append((place.name, "population", str(place.population)))
    for person in people:
        rows.append((person.name, "birth_year", str(person.birth_year)))
        rows.append((person.name, "height", str(person.height)))
    return [row for row in rows if rng.random() >= MISSING_RATES[row[1]]]


def to_text(rows: list[Row]) -> str:
    return "".join("\t".join(row) + "\n" for row in sorted(rows))


def generate(seed: int = 0) -> dict[str, str]:
    """Invents the world and writes it down.

    Args:
        seed (int, optional): The seed; the committed files have seed 0.
            (default: :obj:`0`)

    Returns:
        dict[str, str]: The exact text of every file by its name.
    """
    rng = Random(seed)
    regions = draw_regions(rng)
    towns = draw_towns(rng, regions)
    for town in towns:
        town.neighbours = find_neighbours(town, towns)
    people = Society(rng, towns).people
    triples = place_triples(regions, towns) + family_triples(people)
    triples += influence_triples(rng, people) + interest_triples(rng, people)
    triples = [
        triple[::-1] if triple[1] in SYMMETRIC and rng.random() < 0.5 else triple
        for triple in triples
    ]
    countries = dict.fromkeys(r.within for r in regions if r.within)
    rows = numerical_rows(rng, [*countries, *regions, *towns], people)
    splits = split(rng, triples)
    known = [entity for head, _, tail in splits["train"] for entity in (head, tail)]
    # Drawn apart, so that all other files are what they would be without them.
    rng = Random(f"numbers {seed}")
    more = split(rng, number_triples(rng, towns, people, rows), known)
    return {
        **{f"{name}.tsv": to_text(facts) for name, facts in splits.items()},
        "numerical.tsv": to_text(rows),
        **{f"{name}_num.tsv": to_text(facts) for name, facts in more.items()},
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=DIRECTORY,
        help="the directory to write to (default: where the package has the files)",
    )
    parser.add_argument("--seed", type=int, default=0, help="(default: 0)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    for name, text in generate(args.seed).items():
        path = args.out / name
        # Bytes, because a text file would get other line ends on Windows.
        path.write_bytes(text.encode("utf-8"))
        print(f"{path}: {text.count(chr(10)):,} lines")


if __name__ == "__main__":
    main()
