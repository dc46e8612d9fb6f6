"""The invented world of *Families*: places on a map, and generations of people.

Numbers are rounded before they are compared, so that the world is the same on every
platform.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

GENERATIONS = 5
FOUNDERS = 160
FOUNDER_YEARS = (1820, 1862)
MARRIAGE_RATE = 0.8
CHILDLESS_RATE = 0.4
# Differences in years: mean, standard deviation, least and most.
SPOUSE_GAP = (0.0, 3.0, -9, 9)
PARENT_GAP = (32.0, 4.5, 20, 46)
TASTE_GROUPS = 32
OUTER_TOWNS = 5
CAPITAL_RADII = (0.0, 0.03)
OUTER_RADII = (0.28, 0.48)
NEIGHBOURS_PER_TOWN = 3
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
