"""Relations of *Families* that ask more of numbers than one difference with one peak.

* ``taught`` leads to people about 12 years younger, whom a journeyman taught, or about
  44, whom a master taught: two peaks, with nobody in the middle. One radial function
  has its centre there; a *layer* of functions has both.
* ``dances_with`` joins people of the same height, as far as the dancing school has
  measured them, and those whom it has not measured among themselves. Three of ten
  pairs have no heights: a *lower threshold* than 90 % is needed, and that a height is
  *unknown* says something.
* ``wears`` is the size of measured people's clothes, which follows from the height of
  one side: *bins*.
* ``trades_with`` joins towns about 120 kilometres apart, in whatever direction:
  neither latitudes nor longitudes tell, a *derived* distance does.

Nothing else is drawn here: who is who, and what is recorded, is given.
"""

from __future__ import annotations

import math
from bisect import bisect
from random import Random

from families_world import Person, Place

Row = tuple[str, str, str]  # a triple, or an entity, an attribute and its value

TAUGHT_RATE = 0.7
# Years between a teacher and a pupil: by how much, more or less.
TEACHING_GAPS = ((12, 1), (44, 1))
DANCING_RATE = 0.8
SIZE_FROM = (163, 168, 174, 180)  # the least height of each size but the first
TRADE_KILOMETRES = (115.0, 125.0)
PARTNERS_PER_TOWN = 4
EARTH_RADIUS = 6371.0


def teaching(rng: Random, people: list[Person]) -> list[Row]:
    """Joins most people to somebody of the right age to teach them."""
    by_year: dict[int, list[Person]] = {}
    for person in people:
        by_year.setdefault(person.birth_year, []).append(person)
    triples: list[Row] = []
    for pupil in people:
        gap, about = rng.choice(TEACHING_GAPS)
        year = pupil.birth_year - gap - rng.randint(-about, about)
        if year in by_year and rng.random() < TAUGHT_RATE:
            teacher = rng.choice(by_year[year])
            triples.append((teacher.name, "taught", pupil.name))
    return triples


def dancing(rng: Random, people: list[Person], heights: dict[str, int]) -> list[Row]:
    """Joins people of one height, and people that nobody has measured."""
    by_height: dict[int | None, list[Person]] = {}
    for person in people:
        by_height.setdefault(heights.get(person.name), []).append(person)
    triples: dict[Row, None] = {}  # a dict keeps the order, a set would not
    for person in people:
        partner = rng.choice(by_height[heights.get(person.name)])
        pair = [person.name, partner.name]
        is_there = (pair[1], "dances_with", pair[0]) in triples
        if partner is person or is_there or rng.random() >= DANCING_RATE:
            continue
        triples[pair[0], "dances_with", pair[1]] = None
    return list(triples)


def sizes(people: list[Person], heights: dict[str, int]) -> list[Row]:
    """Says which size those wear who have been measured."""
    return [
        (person.name, "wears", f"Size {1 + bisect(SIZE_FROM, heights[person.name])}")
        for person in people
        if person.name in heights
    ]


def kilometres(one: Place, other: Place) -> float:
    """Returns the distance of two places, rounded: the last digits may differ."""
    south, west, north, east = (
        math.radians(degrees)
        for degrees in (one.latitude, one.longitude, other.latitude, other.longitude)
    )
    square = (
        math.sin((north - south) / 2) ** 2
        + math.cos(south) * math.cos(north) * math.sin((east - west) / 2) ** 2
    )
    return round(2 * EARTH_RADIUS * math.asin(math.sqrt(square)), 3)


def trade(rng: Random, towns: list[Place]) -> list[Row]:
    """Joins each town to some at the right distance, which no third town says."""
    low, high = TRADE_KILOMETRES
    triples: dict[Row, None] = {}
    for town in towns:
        partners = [o for o in towns if low <= kilometres(town, o) <= high]
        rng.shuffle(partners)
        for partner in partners[:PARTNERS_PER_TOWN]:
            if (partner.name, "trades_with", town.name) not in triples:
                triples[town.name, "trades_with", partner.name] = None
    return list(triples)


def number_triples(
    rng: Random, towns: list[Place], people: list[Person], recorded: list[Row]
) -> list[Row]:
    """Lists the triples of all these relations.

    Args:
        rng (Random): What to draw from.
        towns (list): The towns.
        people (list): The people.
        recorded (list): The numbers that are written down.
    """
    heights = {name: int(value) for name, what, value in recorded if what == "height"}
    return [
        *teaching(rng, people),
        *dancing(rng, people, heights),
        *sizes(people, heights),
        *trade(rng, towns),
    ]
