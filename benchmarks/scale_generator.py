"""Knowledge bases of any size with skewed degrees, hubs, rules and numbers.

    python benchmarks/scale_generator.py 150000 DIRECTORY [--seed 0]

writes ``train.csv``, ``valid.csv``, ``test.csv`` and ``numerical.csv``. Relation 0
says of which kind each entity is, and two in five entities are of the same one,
which is a hub. The others come in groups of five, ever smaller ones:

``base``
    connects popular entities with others; in every other group, heads with tails
    whose number is less by about the same;
``inverse``
    holds the other way round, for most of its facts;
``onward``
    leaves from where ``base`` arrives, for half of its facts;
``composed``
    follows from ``base`` and then ``onward``, for most of its facts;
``symmetric``
    holds both ways, for most of its facts.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Pairs = tuple[Ids, Ids]  # heads and tails

KIND = 0
HUB = 0.4  # the fraction of entities of the most common kind
# The fraction of a group's facts that each of its relations has.
ROLES = {
    "base": 0.3,
    "inverse": 0.2,
    "onward": 0.2,
    "composed": 0.15,
    "symmetric": 0.15,
}
NUM_ATTRIBUTES, KNOWN, LARGEST = 4, 0.4, 9999
# Facts are drawn with some to spare, as repeated ones are dropped.
SPARE = 1.1
ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Size:
    r"""How large a knowledge base is to be.

    Args:
        num_entities (int): The number of entities.
        num_triples (int): The number of training triples.
        num_relations (int): The number of relations.
        num_held (int): The number of validation triples, and of test triples.
    """

    num_entities: int
    num_triples: int
    num_relations: int
    num_held: int = 1000

    @classmethod
    def of(cls, num_entities: int) -> "Size":
        """Chooses the rest as other knowledge bases of about the size have it."""
        if num_entities < 200:
            raise ValueError(f"'num_entities' must be 200 or more (got {num_entities})")
        # The last one is that of Wikidata5M.
        density, num_relations = 5.7, 16
        for least, *others in ((1_000_000, 4.9, 200), (4_000_000, 20.6 / 4.6, 822)):
            if num_entities >= least:
                density, num_relations = others
        num_triples = round(density * num_entities)
        held = min(cls.num_held, num_triples // 50)
        return cls(num_entities, num_triples, num_relations, held)


@dataclass(frozen=True)
class Generated:
    r"""A knowledge base in numbers; rows are in random order.

    Args:
        size (Size): Its size.
        train (tuple): The heads, relations and tails of the training triples.
        valid (tuple): Those of the validation triples.
        test (tuple): Those of the test triples.
        x (numpy.ndarray): The numbers of each entity, NaN where unknown.
    """

    size: Size
    train: tuple[Ids, Ids, Ids]
    valid: tuple[Ids, Ids, Ids]
    test: tuple[Ids, Ids, Ids]
    x: NDArray[np.float64]


def relation_of(group: int, role: str) -> int:
    """Returns the relation of a role in a group."""
    return 1 + len(ROLES) * group + list(ROLES).index(role)


def generate(size: Size, seed: int = 0) -> Generated:
    r"""Makes a knowledge base.

    Args:
        size (Size): Its size; there may be a little fewer triples.
        seed (int, optional): The seed of all random numbers.
            (default: :obj:`0`)
    """
    rng = np.random.default_rng(seed)
    n = size.num_entities
    x = _numbers(rng, n)
    world = _World(rng, n, x)
    keys = [
        (relation * n + head) * n + tail
        for relation, (head, tail) in world.relations(size)
    ]
    key = np.concatenate(keys)
    keys.clear()
    key = np.unique(key[(key // n) % n != key % n])  # no self-loops, nothing twice
    return Generated(size, *_split(rng, key, size), x)


def _split(
    rng: np.random.Generator, key: Ids, size: Size
) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Holds out triples, and leaves out those that are too many."""
    n, held = size.num_entities, size.num_held
    key = rng.permutation(key)
    # Every entity keeps its kind, so that training has seen them all.
    others = np.flatnonzero(key // n // n != KIND)
    excess = max(0, len(key) - size.num_triples - 2 * held)
    is_train = np.ones(len(key), bool)
    is_train[others[: excess + 2 * held]] = False
    held_out = others[excess : excess + 2 * held]
    for rows in (is_train, held_out[:held], held_out[held:]):
        pair, tail = np.divmod(key[rows], n)
        relation, head = np.divmod(pair, n)
        yield head, relation, tail


def _numbers(rng: np.random.Generator, num_entities: int) -> NDArray[np.float64]:
    shape = num_entities, NUM_ATTRIBUTES
    x = rng.integers(0, 1000 * LARGEST, shape) / 1000  # as many digits as files have
    x[rng.random(shape) >= KNOWN] = np.nan
    return x


@dataclass(frozen=True)
class _World:
    """Draws facts."""

    rng: np.random.Generator
    num_entities: int
    x: NDArray[np.float64]

    def relations(self, size: Size) -> Iterator[tuple[int, Pairs]]:
        """Returns every relation with its facts."""
        yield KIND, self._kinds()
        num_groups = -(-(size.num_relations - 1) // len(ROLES))
        weight = np.arange(1, num_groups + 1) ** -1.3
        total = SPARE * (size.num_triples + 2 * size.num_held - size.num_entities)
        for group, share in enumerate(total * weight / weight.sum()):
            for role, facts in self._group(group, share).items():
                if (relation := relation_of(group, role)) < size.num_relations:
                    yield relation, facts

    def _kinds(self) -> Pairs:
        number, hub = self.num_entities, self.num_entities - 1
        entity = np.arange(number)
        # The last entities are kinds, as the first ones are popular anyway.
        kind = hub - 1 - self._popular(number, 0, max(3, number // 1000))
        kind[self.rng.random(number) < HUB] = hub
        own = kind == entity
        kind[own] = np.where(entity[own] == hub, hub - 1, hub)
        return entity, kind

    def _group(self, group: int, share: float) -> dict[str, Pairs]:
        size = {role: max(4, int(share * part)) for role, part in ROLES.items()}
        # Where the entities begin that are popular in this group.
        near, middle, far = self.rng.integers(self.num_entities, size=3)
        base = self._pairs(size["base"], near, middle)
        if group % 2 == 0:
            by_number = self._by_number(size["base"], group // 2 % NUM_ATTRIBUTES)
            base = self._noisy(by_number, 0.95, size["base"], near, middle)
        onward = self._pairs(size["onward"], middle, far)
        onward[0][::2] = self.rng.choice(base[1], len(onward[0][::2]))
        paths = self._paths(base, onward, size["composed"])
        one_way = self._pairs(int(size["symmetric"] / 1.9), near, near)
        return {
            "base": base,
            "inverse": self._noisy(base[::-1], 0.8, size["inverse"], middle, near),
            "onward": onward,
            "composed": self._noisy(paths, 0.8, size["composed"], near, far),
            "symmetric": _join(one_way, self._some(one_way[::-1], 0.9)),
        }

    def _popular(self, count: int, start: int, number: int) -> Ids:
        """Draws ids, of which the i-th from the start comes up like 1 / sqrt(i)."""
        drawn = (number * self.rng.random(count) ** 2).astype(np.int64)
        return (start + drawn) % number

    def _pairs(self, count: int, head_start: int, tail_start: int) -> Pairs:
        starts = head_start, tail_start
        head, tail = (self._popular(count, i, self.num_entities) for i in starts)
        return head, tail

    def _by_number(self, count: int, attribute: int) -> Pairs:
        """Draws heads, and tails whose number is less by about the same."""
        less = self.rng.uniform(0.05, 0.2) * LARGEST
        order = np.argsort(self.x[:, attribute])
        order = order[: np.count_nonzero(~np.isnan(self.x[:, attribute]))]
        value = self.x[order, attribute]
        # Heads whose number is so small that there is no such tail are left out.
        first = int(np.searchsorted(value, 1.5 * less))
        place = self._popular(count, self.rng.integers(len(order)), len(order) - first)
        wanted = value[first + place] - less * self.rng.normal(1, 0.1, count)
        tail = np.clip(np.searchsorted(value, wanted), 0, len(order) - 1)
        return order[first + place], order[tail]

    def _paths(self, base: Pairs, onward: Pairs, count: int) -> Pairs:
        """Draws pairs that are connected by two steps."""
        order = np.argsort(onward[0], kind="stable")
        start = onward[0][order]
        begin, end = (np.searchsorted(start, base[1], s) for s in ("left", "right"))
        first = self.rng.choice(np.flatnonzero(end > begin), count)
        second = order[self.rng.integers(begin[first], end[first])]
        return base[0][first], onward[1][second]

    def _some(self, facts: Pairs, fraction: float) -> Pairs:
        kept = self.rng.random(len(facts[0])) < fraction
        return facts[0][kept], facts[1][kept]

    def _noisy(
        self,
        facts: Pairs,
        fraction: float,
        count: int,
        head_start: int,
        tail_start: int,
    ) -> Pairs:
        """Takes facts for a fraction of the count, and draws the rest."""
        rows = self.rng.permutation(len(facts[0]))[: int(fraction * count)]
        chosen = facts[0][rows], facts[1][rows]
        return _join(chosen, self._pairs(count - len(rows), head_start, tail_start))


def _join(one: Pairs, other: Pairs) -> Pairs:
    head, tail = map(np.concatenate, zip(one, other))
    return head, tail


def write_csv(kb: Generated, directory: Path) -> None:
    r"""Writes a knowledge base as files to import.

    Args:
        kb (Generated): The knowledge base.
        directory (Path): Where to write; it is made.
    """
    directory.mkdir(parents=True, exist_ok=True)
    entity, relation = len(str(kb.size.num_entities)), len(str(kb.size.num_relations))
    for split in ("train", "valid", "test"):
        head, rel, tail = getattr(kb, split)
        columns = ["e", (head, entity), ",r", (rel, relation), ",e", (tail, entity)]
        _write(directory / f"{split}.csv", columns)
    bearer, attribute = np.nonzero(~np.isnan(kb.x))
    thousandths = np.rint(1000 * kb.x[bearer, attribute]).astype(np.int64)
    whole, rest = np.divmod(thousandths, 1000)
    columns = ["e", (bearer, entity), ",n", (attribute, 1), ",", (whole, 4)]
    _write(directory / "numerical.csv", [*columns, ".", (rest, 3)])


def _write(path: Path, columns: list[str | tuple[Ids, int]]) -> None:
    """Writes rows of constant text, and of numbers with so many digits each."""
    numbers = [column for column in columns if isinstance(column, tuple)]
    with open(path, "wb") as file:
        for begin in range(0, len(numbers[0][0]), ROWS_AT_ONCE):
            rows = slice(begin, begin + ROWS_AT_ONCE)
            parts = [
                _letters(one) if isinstance(one, str) else _digits(one[0][rows], one[1])
                for one in [*columns, "\n"]
            ]
            height = max(map(len, parts))
            wide = [np.broadcast_to(part, (height, part.shape[1])) for part in parts]
            file.write(np.concatenate(wide, axis=1).tobytes())


def _letters(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)[None]


def _digits(numbers: Ids, width: int) -> NDArray[np.uint8]:
    out = np.empty((len(numbers), width), np.uint8)
    for place in reversed(range(width)):
        numbers, out[:, place] = np.divmod(numbers, 10)
    return out + np.uint8(ord("0"))


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("num_entities", type=int)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    write_csv(generate(Size.of(options.num_entities), options.seed), options.directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
