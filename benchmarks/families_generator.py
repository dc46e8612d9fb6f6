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

``height`` and ``population`` are missing too often to pass the rule that 90 % of a
relation's training triples carry the attribute on both sides; they test that rule.
Symmetric relations are written once per pair, in a random direction, so that nothing
leaks.  Nothing iterates over a set, and numbers are rounded before they are compared
or written, so that the text is the same on every platform.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from kblrn_pyg.datasets import families

DIRECTORY = Path(families.__file__).parent

Row = tuple[str, str, str]  # a triple, or an entity, an attribute and its value

GENERATIONS = 5
FOUNDERS = 160
FOUNDER_YEARS = (1820, 1862)
MARRIAGE_RATE = 0.8
CHILDLESS_RATE = 0.4
# Differences in years: mean, standard deviation, least and most.
SPOUSE_GAP = (0.0, 3.0, -9, 9)
PARENT_GAP = (32.0, 4.5, 20, 46)
INFLUENCE_GAP = (35.0, 2.0, 25, 45)
ELDERS_PER_PERSON = 3
GUILD_RECORDED_RATE = 0.9
TASTE_GROUPS = 32
LIKES_EACH = 4
LIKES_RECORDED_RATE = 0.6
LIKES_WITHIN_GROUP_RATE = 0.9
OUTER_TOWNS = 5
CAPITAL_RADII = (0.0, 0.03)
OUTER_RADII = (0.28, 0.48)
NEIGHBOURS_PER_TOWN = 3
SYMMETRIC = ("neighbour_of", "sibling_of", "spouse")
HELD_OUT_SHARE = 0.09  # of each relation, once for valid and once for test
MISSING_RATES = dict(
    birth_year=0.03, height=0.3, latitude=0.015, longitude=0.015, population=0.1
)
COUNTRY_NAMES = "Velandria Korrenthal Ysmara Tolvesk Brannøya Quessia".split()
REGION_FIRST = "Upper Lower Old New North South East West".split()
REGION_SECOND = "Harrowmark Lindesay Óskavel Pellmoor Tarnwold Vessgard".split()
TOWN_FIRST = (
    "Al Bry Cor Dun Eld Fenn Grim Hal Ist Kar Lun Mör Nar Ost Pell Quar Rav Sil "
    "Tor Ull Varn Wes Ysk Zell"
).split()
TOWN_SECOND = "bridge burg dale field ford gate haven holm stead vik wick ås".split()
GIVEN_FIRST = "Ad Bel Cal Dor Ev Fal Gis Hed Jor Kes Lev Mir Nol Per Sel Tam".split()
GIVEN_SECOND = "a an ea en ia ic ina is o ola on ra rin ück vid wen".split()
FAMILY_FIRST = (
    "Amber Birch Crow Dusk Elder Frost Glen Hazel Iron Juniper Kestrel Lark Moss "
    "Nettle Oak Pine Quill Rook Sedge Thorn Umber Vane Willow Yarrow"
).split()
FAMILY_SECOND = "bæk by croft garth hand ley lund mere shaw ström wright".split()
GUILDS = (
    "Bakers Basketmakers Beekeepers Bellfounders Bookbinders Brewers Carvers "
    "Chandlers Clockmakers Coopers Cutlers Dyers Engravers Falconers Fletchers "
    "Furriers Gardeners Gilders Glassblowers Glovers Hatters Joiners Lacemakers "
    "Locksmiths Luthiers Masons Millers Papermakers Potters Ropemakers Saddlers "
    "Sailmakers Tanners Thatchers Tinsmiths Weavers"
).split()
THING_SECOND = "Waltz Lullaby Ballad Dumplings Stew Pancakes Dice Checkers".split()


@dataclass(eq=False)
class Place:
    """A country, a region or a town, and the larger place it lies in."""

    name: str
    latitude: float
    longitude: float
    within: Place | None = None
    is_capital: bool = False
    population: int = 0
    neighbours: list[Place] = field(default_factory=list)


@dataclass(eq=False)
class Person:
    """A person; the guild may stay unwritten, the taste group always does."""

    name: str
    birth_year: int
    birthplace: Place
    home: Place
    height: int
    guild: str
    taste: int
    parents: tuple[Person, ...] = ()
    children: list[Person] = field(default_factory=list)
    spouse: Person | None = None


def combine(firsts: list[str], seconds: list[str], joint: str = "") -> list[str]:
    return [first + joint + second for first in firsts for second in seconds]


def rounded_gauss(rng: Random, mean: float, sd: float, low: int, high: int) -> int:
    return min(max(round(rng.gauss(mean, sd)), low), high)


def draw_offset(rng: Random, radii: tuple[float, float]) -> tuple[float, float]:
    """Draws a point of a ring round the origin, without any trigonometry."""
    inner, outer = radii
    while True:
        north = round((2.0 * rng.random() - 1.0) * outer, 3)
        east = round((2.0 * rng.random() - 1.0) * outer, 3)
        if inner**2 <= north**2 + east**2 <= outer**2:
            return north, east


def draw_regions(rng: Random) -> list[Place]:
    """Draws the regions on a grid, eight to a country, with a little jitter."""
    names = combine(REGION_FIRST, REGION_SECOND, " ")
    rng.shuffle(names)
    regions = []
    for number, country_name in enumerate(COUNTRY_NAMES):
        south, west = 44.0 + 2.0 * (number // 2), 4.0 + 4.0 * (number % 2)
        country = Place(country_name, south + 0.5, west + 1.5)
        for cell in range(8):
            latitude = round(south + cell // 4 + 0.2 * (rng.random() - 0.5), 3)
            longitude = round(west + cell % 4 + 0.2 * (rng.random() - 0.5), 3)
            regions.append(Place(names.pop(), latitude, longitude, country))
    return regions


def draw_towns(rng: Random, regions: list[Place]) -> list[Place]:
    """Draws for every region a capital at its centre and a ring of other towns."""
    names = combine(TOWN_FIRST, TOWN_SECOND)
    rng.shuffle(names)
    towns = []
    for region in regions:
        for is_capital in (True, *[False] * OUTER_TOWNS):
            north, east = draw_offset(rng, CAPITAL_RADII if is_capital else OUTER_RADII)
            latitude = round(region.latitude + north, 3)
            longitude = round(region.longitude + east, 3)
            # Multiplying two draws makes most of the outer towns small.
            size = 4.0 if is_capital else 0.5 + 4.0 * rng.random() * rng.random()
            people = 100 * round(100.0 * size * (0.8 + 0.4 * rng.random()))
            name = names.pop()
            towns.append(Place(name, latitude, longitude, region, is_capital, people))
    return towns


def squared_distance(one: Place, other: Place) -> float:
    north, east = one.latitude - other.latitude, one.longitude - other.longitude
    return round(north**2 + east**2, 6)


def find_neighbours(town: Place, towns: list[Place]) -> list[Place]:
    by_distance = sorted(towns, key=lambda other: squared_distance(town, other))
    return by_distance[1 : 1 + NEIGHBOURS_PER_TOWN]  # the first is the town itself


class Society:
    """The people of a map, drawn generation by generation."""

    def __init__(self, rng: Random, towns: list[Place]) -> None:
        self.rng = rng
        self.people: list[Person] = []
        self.given_names = combine(GIVEN_FIRST, GIVEN_SECOND)
        self.family_names = combine(FAMILY_FIRST, FAMILY_SECOND)
        self.used_names: set[str] = set()
        # A town stands here once per 1,000 inhabitants, so that large towns fill up.
        self.addresses = [t for t in towns for _ in range(1 + t.population // 1000)]
        generation = []
        for _ in range(FOUNDERS):
            year = rng.randrange(*FOUNDER_YEARS)
            generation.append(self.add(year, rng.choice(self.addresses)))
        for _ in range(GENERATIONS - 1):
            couples = self.marry(generation)
            generation = [child for pair in couples for child in self.bring_up(pair)]
        self.marry(generation)

    def draw_name(self, family_name: str) -> str:
        """Draws a full name that nobody has as yet."""
        while True:
            name = f"{self.rng.choice(self.given_names)} {family_name}"
            if name not in self.used_names:
                self.used_names.add(name)
                return name

    def add(self, year: int, home: Place, parents: tuple[Person, ...] = ()) -> Person:
        """Adds a person, whose parents are not known if none are given."""
        rng = self.rng
        family_names, guilds = self.family_names, GUILDS
        nest, nest_rate, mean_height = home, 0.3, 171.0
        if parents:
            family_names = [parents[0].name.split()[1]]
            guilds = rng.choice(([parent.guild for parent in parents], GUILDS))
            nest, nest_rate = parents[0].home, 0.85
            mean_height = sum(parent.height for parent in parents) / len(parents)
        cradles = [nest] if rng.random() < nest_rate else self.addresses
        person = Person(
            name=self.draw_name(rng.choice(family_names)),
            birth_year=year,
            birthplace=rng.choice(cradles),
            home=home,
            height=rounded_gauss(rng, mean_height, 7.0, 145, 205),
            guild=rng.choice(guilds),
            # Tastes are not inherited, or paths through the family would tell them.
            taste=rng.randrange(TASTE_GROUPS),
            parents=parents,
        )
        for parent in parents:
            parent.children.append(person)
        self.people.append(person)
        return person

    def marry(self, generation: list[Person]) -> list[tuple[Person, Person]]:
        """Marries people of like age in the same town, to newcomers if need be."""
        couples = []
        for person in generation:
            if person.spouse is not None or self.rng.random() >= MARRIAGE_RATE:
                continue
            year = person.birth_year + rounded_gauss(self.rng, *SPOUSE_GAP)
            matches = [
                other
                for other in generation
                if other is not person
                and other.spouse is None
                and other.home is person.home
                and other.birth_year == year
                and not (person.parents and other.parents == person.parents)
            ]
            spouse = matches[0] if matches else self.add(year, person.home)
            person.spouse, spouse.spouse = spouse, person
            couples.append((person, spouse))
        return couples

    def bring_up(self, parents: tuple[Person, Person]) -> list[Person]:
        """Draws the children of a couple, often none."""
        if self.rng.random() < CHILDLESS_RATE:
            return []
        nest = parents[0].home
        homes = ([nest], [nest], nest.neighbours, self.addresses)
        mean_year = (parents[0].birth_year + parents[1].birth_year) // 2
        children = []
        for _ in range(self.rng.choice((1, 2, 2, 3, 4))):
            year = mean_year + rounded_gauss(self.rng, *PARENT_GAP)
            home = self.rng.choice(self.rng.choice(homes))
            children.append(self.add(year, home, parents))
        return children


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


def split(rng: Random, triples: list[Row]) -> dict[str, list[Row]]:
    """Splits every relation by itself, then gives train what it must know."""
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
    known = {entity for head, _, tail in splits["train"] for entity in (head, tail)}
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
    files = {f"{name}.tsv": to_text(t) for name, t in split(rng, triples).items()}
    return {**files, "numerical.tsv": to_text(rows)}


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
