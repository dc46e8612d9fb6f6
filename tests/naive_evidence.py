"""A slow, obviously correct twin of evidence by constant rules, paths and popularity.

Facts are triples (h, r, t), treated as a set; step codes are those of `naive`. An
entity x has the feature (k, d) iff there is a step from x over the code k to d, and
(k, None), "any", iff it has (k, d) for some d. A constant rule (f, g) says: who has
the feature f has the feature g. Standard library only.

Facts may come with numbers (`Numbered`): that a number is known, and each interval that
it lies in, are features, too, but nothing that rules predict.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import naive

Triple = tuple[int, int, int]


@dataclass(frozen=True)
class OfNumber:
    """A feature of entities that have a number, maybe in an interval."""

    attribute: int
    interval: int | None


Feature = Any  # (code, entity or None), or OfNumber
ConstantRule = tuple[Feature, Feature]
PathRule = tuple[int, tuple[bool | str, tuple[int, ...]], int, int]


@dataclass(frozen=True)
class Choices:
    """What counts as a rule, and how counts become numbers."""

    least: int = 2  # the least support of a constant rule
    max_degree: int | None = None  # entities with more features are not counted
    shrinkage: float = 5.0
    floor: float = 0.03
    walks: naive.Choices = naive.Choices()  # what grounds the body of a path rule


DEFAULT = Choices()


# ---------------------------------------------------------------------------
# Constant rules
# ---------------------------------------------------------------------------


class Numbered(frozenset):
    """Facts of entities that have features by their numbers."""

    features: dict[int, set[OfNumber]]
    num_attributes: int

    @classmethod
    def of(
        cls,
        facts: Iterable[Triple],
        values: Sequence[Sequence[float]],
        intervals: Sequence[Sequence[tuple[float, float]]],
    ) -> "Numbered":
        """Row x of `values` has the numbers of x, NaN for unknown; row a of
        `intervals`, the least value of each interval and what values are below."""
        made = cls(as_set(facts))
        made.features, made.num_attributes = {}, len(intervals)
        for x, row in enumerate(values):
            for a, value in enumerate(row):
                if math.isnan(value):
                    continue
                own = made.features.setdefault(x, set())
                own.add(OfNumber(a, None))
                for i, (low, high) in enumerate(intervals[a]):
                    if low <= value < high:
                        own.add(OfNumber(a, i))
        return made


def num_attributes(facts: Iterable[Triple]) -> int:
    """How many attributes entities may have."""
    return facts.num_attributes if isinstance(facts, Numbered) else 0


def as_set(facts: Iterable[Triple]) -> Any:
    """The facts, each of them once."""
    if isinstance(facts, Numbered):
        return facts
    return {(int(h), int(r), int(t)) for h, r, t in facts}


def entity_features(facts: Iterable[Triple]) -> dict[int, set[Feature]]:
    """Entity -> all its features; entities without facts are absent."""
    features: dict[int, set[Feature]] = {}
    for h, r, t in as_set(facts):
        features.setdefault(h, set()).update([(2 * r, t), (2 * r, None)])
        features.setdefault(t, set()).update([(2 * r + 1, h), (2 * r + 1, None)])
    for x, own in facts.features.items() if isinstance(facts, Numbered) else ():
        features.setdefault(x, set()).update(own)
    return features


def is_counted(
    features: Mapping[int, set[Feature]], x: int, max_degree: int | None = None
) -> bool:
    """Whether the entity has few enough features to be an example of rules."""
    return max_degree is None or len(features.get(x, set())) <= max_degree


def is_rule(f: Feature, g: Feature) -> bool:
    """Whether (f, g) may be a rule: g has an entity, and f is not part of g."""
    if isinstance(g, OfNumber):
        return False
    code, entity = g
    return entity is not None and f != g and f != (code, None)


def measure(
    features: Mapping[int, set[Feature]],
    f: Feature,
    g: Feature,
    max_degree: int | None = None,
) -> tuple[int, int]:
    """Support and body of (f, g): two counts of counted entities."""
    support = body = 0
    for x, of_x in features.items():
        if is_counted(features, x, max_degree):
            if f in of_x and g in of_x:
                support += 1
            if f in of_x and (g[0], None) in of_x:
                body += 1
    return support, body


def constant_rules(
    facts: Iterable[Triple], least: int = 2, max_degree: int | None = None
) -> dict[ConstantRule, tuple[int, int]]:
    """All rules (f, g) -> (support, body) that reach the least support."""
    features = entity_features(facts)
    rules = {}
    seen = set()
    for of_x in features.values():
        for f in of_x:
            for g in of_x:
                if not is_rule(f, g) or (f, g) in seen:
                    continue
                seen.add((f, g))
                support, body = measure(features, f, g, max_degree)
                if support >= max(1, least):
                    rules[f, g] = (support, body)
    return rules


def measured_rules(
    facts: Iterable[Triple],
    num_entities: int,
    least: int = 2,
    max_degree: int | None = None,
) -> dict[tuple[Feature | None, Feature], tuple[int, int, int]]:
    """All rules (f, g) -> (support, body, PCA body); f is None for no body.

    The body is what the standard confidence divides by, the PCA body what the PCA
    confidence divides by.
    """
    features = entity_features(facts)
    counted = [x for x in range(num_entities) if is_counted(features, x, max_degree)]
    rules: dict[tuple[Feature | None, Feature], tuple[int, int, int]] = {}
    for (f, g), (support, pca_body) in constant_rules(facts, least, max_degree).items():
        body = sum(f in features.get(x, set()) for x in counted)
        rules[f, g] = (support, body, pca_body)
    every = {g for of_x in features.values() for g in of_x}
    for g in {g for g in every if not isinstance(g, OfNumber) and g[1] is not None}:
        support = sum(g in features.get(x, set()) for x in counted)
        pca_body = sum((g[0], None) in features.get(x, set()) for x in counted)
        if support >= max(1, least):
            rules[None, g] = (support, len(counted), pca_body)
    return rules


# ---------------------------------------------------------------------------
# Evidence
# ---------------------------------------------------------------------------


def from_known(
    facts: Iterable[Triple],
    k: int,
    a: int,
    c: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> float:
    """The best confidence of a rule (f, (k, c)) whose f is a feature of a, or 0.

    With `leave_own`, and if a has (k, c): neither the asked fact nor a itself, as an
    example, counts.
    """
    features = entity_features(facts)
    of_a = features.get(a, set())
    g = (k, c)
    leave = leave_own and g in of_a
    best = 0.0
    for f in of_a:
        if not is_rule(f, g):
            continue
        if leave and a == c and f == (k ^ 1, a):  # the asked fact, from its other end
            continue
        support, body = measure(features, f, g, choices.max_degree)
        if leave and is_counted(features, a, choices.max_degree):
            support, body = support - 1, body - 1
        if support >= max(1, choices.least):
            best = max(best, support / (body + choices.shrinkage))
    return best


def kind_of(f: Feature, num_relations: int, num_attributes: int = 0) -> int:
    """What a feature is over, whatever its entity: its code, or 2R + its code.

    Those of numbers are behind all of these: that they are known, then intervals.
    """
    if isinstance(f, OfNumber):
        known = 4 * num_relations + f.attribute
        return known if f.interval is None else known + num_attributes
    code, entity = f
    return code if entity is not None else 2 * num_relations + code


def from_kinds(
    facts: Iterable[Triple],
    k: int,
    a: int,
    c: int,
    num_relations: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> dict[int, float]:
    """Kind -> the best confidence of a rule (f, (k, c)), f a feature of a of the kind.

    Kinds without a rule are absent. `leave_own` is that of `from_known`.
    """
    features = entity_features(facts)
    of_a = features.get(a, set())
    leave = leave_own and (k, c) in of_a
    best: dict[int, float] = {}
    for f in of_a:
        if not is_rule(f, (k, c)):
            continue
        support, body = measure(features, f, (k, c), choices.max_degree)
        if support < max(1, choices.least):
            continue
        if leave:
            if a == c and f == (k ^ 1, a):
                continue
            if is_counted(features, a, choices.max_degree):
                support, body = support - 1, body - 1
            if support < max(1, choices.least):
                continue
        kind = kind_of(f, num_relations, num_attributes(facts))
        confidence = support / (body + choices.shrinkage)
        best[kind] = max(best.get(kind, 0.0), confidence)
    return best


def path_confidence(support: int, pca_body: int, shrinkage: float = 5.0) -> float:
    """The confidence of a path rule, 0 if its support is unknown (-1)."""
    if support < 0:
        return 0.0
    return support / (max(pca_body, 1) + shrinkage)


def naive_body(body: tuple[bool | str, tuple[int, ...]]) -> naive.Body:
    """The body as `naive` writes it; its kind may also be "path" or "parallel"."""
    kind, codes = body
    if not isinstance(kind, str):
        kind = "parallel" if kind else "path"
    return kind, tuple(int(code) for code in codes)


def from_paths(
    facts: Iterable[Triple],
    path_rules: Iterable[PathRule],
    h: int,
    r: int,
    t: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> float:
    """The best confidence of a path rule of r whose body holds for (h, t), or 0.

    With `leave_own`, and if (h, r, t) is a fact: bodies must hold without it, and it
    does not count as an example.
    """
    known = as_set(facts)
    leave = leave_own and (h, r, t) in known
    without = (h, r, t) if leave else None
    walks = choices.walks._asdict()
    best = 0.0
    for relation, body, support, pca_body in path_rules:
        if relation != r:
            continue
        if not naive.holds(known, naive_body(body), h, t, without=without, **walks):
            continue
        if leave:
            support, pca_body = support - 1, max(pca_body - 1, 1)
            if support < 1:
                continue
        best = max(best, path_confidence(support, pca_body, choices.shrinkage))
    return best


def popularity(
    facts: Iterable[Triple],
    k: int,
    c: int,
    choices: Choices = DEFAULT,
    without: int | None = None,
) -> float:
    """The share of the entities with (k, None) that have (k, c), shrunk.

    The entity `without` does not count, if it has (k, c): this is leave-one-out.
    """
    features = entity_features(facts)
    having = {x for x in features if (k, c) in features[x]}
    able = {x for x in features if (k, None) in features[x]}
    if without in having:
        having = having - {without}
        able = able - {without}
    if not having:
        return 0.0
    return len(having) / (len(able) + choices.shrinkage)


# ---------------------------------------------------------------------------
# Triples
# ---------------------------------------------------------------------------


def triple_features(
    facts: Iterable[Triple],
    path_rules: Iterable[PathRule],
    h: int,
    r: int,
    t: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> list[float]:
    """The five features: known of h, known of t, paths, popular tail, popular head."""
    facts = as_set(facts)
    along, against = 2 * r, 2 * r + 1

    def scaled(confidence: float) -> float:
        return math.log(1 + confidence / choices.floor)

    return [
        scaled(from_known(facts, along, h, t, choices, leave_own)),
        scaled(from_known(facts, against, t, h, choices, leave_own)),
        scaled(from_paths(facts, path_rules, h, r, t, choices, leave_own)),
        popularity(facts, along, t, choices, without=h if leave_own else None),
        popularity(facts, against, h, choices, without=t if leave_own else None),
    ]


def triple_kinds(
    facts: Iterable[Triple],
    h: int,
    r: int,
    t: int,
    num_relations: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> dict[tuple[int, int], float]:
    """(Predicted code, kind) -> the strength of the best rule of the kind."""
    facts = as_set(facts)
    strength = {}
    for code, known, other in ((2 * r, h, t), (2 * r + 1, t, h)):
        found = from_kinds(facts, code, known, other, num_relations, choices, leave_own)
        for kind, confidence in found.items():
            strength[code, kind] = math.log(1 + confidence / choices.floor)
    return strength


def score(
    facts: Iterable[Triple],
    path_rules: Iterable[PathRule],
    weight: Mapping[int, Sequence[float]] | Sequence[Sequence[float]],
    h: int,
    r: int,
    t: int,
    choices: Choices = DEFAULT,
    leave_own: bool = False,
) -> float:
    """The sum of the triple's features, weighted by relation."""
    features = triple_features(facts, path_rules, h, r, t, choices, leave_own)
    return sum(float(weight[r][j]) * feature for j, feature in enumerate(features))
