"""Generated knowledge bases of several kinds, on which recipes are compared.

Each function returns facts (head, relation, tail) and numbers (entity, attribute,
value), drawn from a generator of random numbers.
"""

import random
from collections.abc import Callable
from math import cos, hypot, radians

Facts = list[tuple[str, str, str]]
Numbers = list[tuple[str, str, float]]


def cities(rng: random.Random) -> tuple[Facts, Numbers]:
    """Cities and countries with coordinates: numbers say much about facts."""
    facts: set[tuple[str, str, str]] = set()
    numbers: Numbers = []
    country_places, city_places, country_of = {}, {}, {}
    for i in range(60):
        country = f"country{i}"
        place = rng.uniform(-55, 65), rng.uniform(-170, 170)
        country_places[country] = place
        facts.add((country, "in_continent", _continent(place)))
        facts.add((country, "speaks", f"language{rng.randrange(18)}"))
        numbers.append((country, "area", round(10 ** rng.uniform(3, 7))))
        numbers.append((country, "population", round(10 ** rng.uniform(5, 9))))
    for one, place in country_places.items():
        for other in _nearest(place, country_places, 4)[1:]:
            facts |= {(one, "borders", other), (other, "borders", one)}
    for i in range(700):
        city = f"city{i}"
        country = f"country{min(int(rng.expovariate(0.06)), 59)}"
        latitude, longitude = country_places[country]
        place = latitude + rng.gauss(0, 3), longitude + rng.gauss(0, 4)
        city_places[city], country_of[city] = place, country
        facts.add((city, "located_in", country))
        if rng.random() < 0.5:
            facts.add((city, "in_time_zone", f"zone{round(longitude / 15)}"))
        if rng.random() < 0.9:  # not everything is known
            numbers.append((city, "population", round(10 ** rng.uniform(3.5, 7))))
        if rng.random() < 0.95:
            numbers.append((city, "latitude", round(place[0], 3)))
            numbers.append((city, "longitude", round(place[1], 3)))
    for country, (latitude, longitude) in country_places.items():
        numbers.append((country, "latitude", round(latitude, 3)))
        numbers.append((country, "longitude", round(longitude, 3)))
    capitals: dict[str, str] = {}
    for city, country in country_of.items():
        capitals.setdefault(country, city)
    for country, city in capitals.items():
        facts.add((city, "capital_of", country))
    for city, place in city_places.items():
        for other in _nearest(place, city_places, 3)[1:]:
            facts.add((city, "near", other))
        if rng.random() < 0.3:
            facts.add((city, "twinned_with", f"city{rng.randrange(700)}"))
    return _shuffled(facts, rng), numbers


def people(rng: random.Random) -> tuple[Facts, Numbers]:
    """A small graph of 1,840 facts: people, teams, projects and tools."""
    facts: set[tuple[str, str, str]] = set()
    numbers: Numbers = []
    team_of, site_of, uses = {}, {}, {}
    for i in range(30):
        team = f"team{i}"
        site_of[team] = f"site{rng.randrange(6)}"
        uses[team] = [f"tool{int(rng.betavariate(1, 3) * 40)}" for _ in range(3)]
        facts.add((team, "based_in", site_of[team]))
        facts.add((team, "part_of", f"division{i % 5}"))
    for i in range(260):
        person = f"person{i}"
        team = team_of[person] = f"team{rng.randrange(30)}"
        facts.add((person, "member_of", team))
        facts.add((person, "works_in", site_of[team]))
        facts |= {(person, "knows", tool) for tool in uses[team]}
        numbers.append((person, "age", round(rng.gauss(41, 10))))
    teams: dict[str, list[str]] = {}
    for person, team in team_of.items():
        teams.setdefault(team, []).append(person)
    for team, members in teams.items():
        facts.add((members[0], "leads", team))
        facts |= {(person, "reports_to", members[0]) for person in members[1:]}
    while len(facts) < 1840:
        one = f"person{rng.randrange(260)}"
        members = teams[team_of[one]]
        if rng.random() < 0.7 and len(members) > 1:
            facts.add((one, "works_with", rng.choice(members)))
        else:
            facts.add((one, "works_with", f"person{rng.randrange(260)}"))
    return _shuffled(facts, rng)[:1840], numbers


def packages(rng: random.Random) -> tuple[Facts, Numbers]:
    """Software packages: a few that everybody depends on, and no numbers."""
    facts: set[tuple[str, str, str]] = set()
    depends: dict[str, list[str]] = {}
    topics, languages = {}, {}
    popularity: dict[str, list[str]] = {}
    for i in range(900):
        package = f"package{i}"
        language = languages[package] = f"language{min(int(rng.expovariate(0.9)), 5)}"
        topic = topics[package] = f"topic{rng.randrange(25)}"
        facts.add((package, "written_in", language))
        facts.add((package, "has_topic", topic))
        licence = int(language[-1]) if rng.random() < 0.6 else rng.randrange(8)
        facts.add((package, "licensed_under", f"licence{licence}"))
        owner = f"owner{(int(topic[5:]) * 7 + rng.randrange(7)) % 120}"
        facts.add((package, "maintained_by", owner))
        pool = popularity.setdefault(language, [])
        near = [one for one in pool if topics[one] == topic]
        depends[package] = []
        for _ in range(rng.randrange(1, 5)):
            source = near if near and rng.random() < 0.5 else pool
            if source:
                depends[package].append(rng.choice(source))
        for other in depends[package]:
            facts.add((package, "depends_on", other))
            # What a dependency needs is often named, too.
            for further in depends[other]:
                if rng.random() < 0.3:
                    facts.add((package, "depends_on", further))
        pool += [package, *depends[package]]
        if near and rng.random() < 0.3:
            facts.add((package, "replaces", rng.choice(near)))
    return _shuffled(facts, rng), []


def words(rng: random.Random) -> tuple[Facts, Numbers]:
    """Word senses: a deep tree, relations that are symmetric, and few facts each."""
    facts: set[tuple[str, str, str]] = set()
    parent: dict[str, str] = {}
    nouns = ["noun0"]
    for i in range(1, 2200):
        noun = f"noun{i}"
        # Children of what was added lately make the tree deep.
        above = rng.choice(nouns[-200:] if rng.random() < 0.7 else nouns)
        parent[noun] = above
        facts.add((noun, "hypernym", above))
        nouns.append(noun)
    domains = rng.sample(nouns, 15)
    for noun in nouns:
        if rng.random() < 0.35:
            verb = f"verb{noun[4:]}"
            facts.add((noun, "derivationally_related", verb))
            facts.add((verb, "derivationally_related", noun))
            above = parent.get(noun)
            if above is not None and rng.random() < 0.7:
                facts.add((verb, "hypernym", f"verb{above[4:]}"))
        if rng.random() < 0.15:
            facts.add((noun, "has_part", rng.choice(nouns)))
        if rng.random() < 0.1:
            sibling = f"noun{rng.randrange(2200)}"
            facts |= {(noun, "similar_to", sibling), (sibling, "similar_to", noun)}
        if rng.random() < 0.15:
            facts.add((noun, "in_domain", rng.choice(domains)))
    return _shuffled(facts, rng), []


GRAPHS: dict[str, Callable[[random.Random], tuple[Facts, Numbers]]] = {
    "cities": cities,
    "people": people,
    "packages": packages,
    "words": words,
}


def _continent(place: tuple[float, float]) -> str:
    latitude, longitude = place
    return f"continent{3 * (latitude > 10) + int((longitude + 170) // 114)}"


def _nearest(
    place: tuple[float, float], places: dict[str, tuple[float, float]], number: int
) -> list[str]:
    """Returns the nearest, of which the first one may be the place of its own."""

    def distance(name: str) -> float:
        latitude, longitude = places[name]
        width = cos(radians(place[0]))
        return hypot(latitude - place[0], (longitude - place[1]) * width)

    return sorted(places, key=distance)[:number]


def _shuffled(facts: set[tuple[str, str, str]], rng: random.Random) -> Facts:
    """Brings a set into an order that depends on the random numbers alone."""
    listed = sorted(one for one in facts if one[0] != one[2])
    rng.shuffle(listed)
    return listed
