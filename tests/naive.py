"""Slow, obviously correct reference implementations ("naive twins") for the tests.

A knowledge base is a list of triples (h, r, t), treated as a set. A step code is
2 * r + d: over it one steps from u to v iff (u, r, v) is a fact (d = 0) or (v, r, u)
is one (d = 1). A body is ("path", codes) or ("parallel", (c1, c2)) with c1 < c2; a
rule is (head_relation, body). Standard library only, brute force over all entities.
"""

import itertools
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

Triple = tuple[int, int, int]
Body = tuple[str, tuple[int, ...]]
Rule = tuple[int, Body]
Measures = dict[str, int]


class Choices(NamedTuple):
    """What counts as a rule, a pair and a grounding; the defaults agree with AMIE."""

    equal_ends: bool = True
    equal_middle: bool = True
    self_loops: bool = True
    head_in_body: bool = True


# ---------------------------------------------------------------------------
# Random knowledge bases
# ---------------------------------------------------------------------------


def _random_pairs(rng: random.Random, active: list[int], count: int) -> set:
    """Up to `count` random pairs of active entities, self-loops included."""
    return {(rng.choice(active), rng.choice(active)) for _ in range(count)}


def _noisy(rng: random.Random, pairs: set, active: list[int]) -> set:
    """Drop a few pairs and add a few random ones (sometimes neither)."""
    drop = rng.choice([0.0, 0.1, 0.3])
    kept = {pair for pair in sorted(pairs) if rng.random() >= drop}
    return kept | _random_pairs(rng, active, rng.choice([0, 0, 1, 2]))


def _inverse(pairs: set) -> set:
    return {(t, h) for h, t in pairs}


def _compose(first: set, second: set) -> set:
    return {(h, t) for h, x in first for y, t in second if x == y}


def _derived_pairs(rng: random.Random, active: list[int], earlier: list[set]) -> set:
    """A noisy copy, inverse or composition of earlier relations."""
    first, second = rng.choice(earlier), rng.choice(earlier)
    if rng.random() < 0.5:
        second = _inverse(second)
    how = rng.choice(["copy", "inverse", "compose", "compose", "intersect"])
    if how == "copy":
        return _noisy(rng, first, active)
    if how == "inverse":
        return _noisy(rng, _inverse(first), active)
    if how == "compose":
        return _noisy(rng, _compose(first, second), active)
    return _noisy(rng, first & second, active)


def _fresh_pairs(rng: random.Random, active: list[int]) -> set:
    """A relation of its own: sparse, dense, one-to-many, or around a hub."""
    how = rng.choice(["sparse", "sparse", "dense", "functional", "hub"])
    if how == "sparse":
        return _random_pairs(rng, active, rng.randint(1, len(active) + 1))
    if how == "dense":
        return _random_pairs(rng, active, 3 * len(active))
    if how == "functional":
        pairs = {(entity, rng.choice(active)) for entity in active}
        return pairs if rng.random() < 0.5 else _inverse(pairs)
    hub = rng.choice(active)
    spokes = {(hub, entity) for entity in active if rng.random() < 0.8}
    return spokes if rng.random() < 0.5 else _inverse(spokes)


def random_kb(rng: random.Random) -> tuple[list[Triple], int, int]:
    """A small random knowledge base: (triples, num_entities, num_relations)."""
    num_entities = max(rng.randint(1, 12), rng.randint(1, 12))
    num_relations = max(rng.randint(1, 6), rng.randint(1, 6))
    if rng.random() < 0.04:
        return [], num_entities, num_relations
    active = list(range(num_entities))
    if rng.random() < 0.5:  # the other entities stay isolated
        active = rng.sample(active, rng.randint(1, num_entities))
    relations: list[set] = []
    for _ in range(num_relations):
        if rng.random() < 0.12:
            relations.append(set())
        elif relations and rng.random() < 0.5:
            relations.append(_derived_pairs(rng, active, relations))
        else:
            relations.append(_fresh_pairs(rng, active))
    if rng.random() < 0.3:
        loop = rng.choice(active)
        rng.choice(relations).add((loop, loop))
    if rng.random() < 0.25:
        relations = [{(h, t) for h, t in pairs if h != t} for pairs in relations]
    rng.shuffle(relations)
    triples = [(h, r, t) for r, pairs in enumerate(relations) for h, t in sorted(pairs)]
    if triples and rng.random() < 0.5:
        triples += rng.choices(triples, k=rng.randint(1, 5))
    rng.shuffle(triples)
    return triples, num_entities, num_relations


# ---------------------------------------------------------------------------
# Bodies and rules
# ---------------------------------------------------------------------------


def all_bodies(num_relations: int, max_hops: int, parallel: bool) -> list[Body]:
    """All paths up to `max_hops`, shortest first, then (if asked) all parallel ones."""
    codes = range(2 * num_relations)
    bodies: list[Body] = []
    for hops in range(1, max_hops + 1):
        bodies += [("path", path) for path in itertools.product(codes, repeat=hops)]
    if parallel:
        bodies += [("parallel", pair) for pair in itertools.combinations(codes, 2)]
    return bodies


def is_rule(rule: Rule, **choices: bool) -> bool:
    """Whether the body may belong to the head: not its own head, and as chosen."""
    head, (kind, codes) = rule
    if kind == "path" and codes == (2 * head,):
        return False
    if kind == "parallel" and 2 * head in codes:
        return False
    if not Choices(**choices).head_in_body:
        return all(code // 2 != head for code in codes)
    return True


# ---------------------------------------------------------------------------
# Groundings
# ---------------------------------------------------------------------------


def _body_facts(triples: Iterable[Triple], without: Triple | None, choices: Choices):
    """The set of facts that body steps may use."""
    facts = {tuple(triple) for triple in triples}
    if without is not None:
        facts.discard(tuple(without))
    if not choices.self_loops:
        facts = {(h, r, t) for h, r, t in facts if h != t}
    return facts


def _step(facts: set, u: int, code: int, v: int) -> bool:
    """Whether there is a step from u to v over the code."""
    relation, backwards = divmod(code, 2)
    return ((v, relation, u) if backwards else (u, relation, v)) in facts


def _walks(facts: set, entities: list[int], codes: tuple, h: int, t: int) -> list:
    """The middles of all walks from h to t over the codes, by trying every entity."""
    first, rest = codes[0], codes[1:]
    if not rest:
        return [()] if _step(facts, h, first, t) else []
    return [
        (x, *tail)
        for x in entities
        if _step(facts, h, first, x)
        for tail in _walks(facts, entities, rest, x, t)
    ]


def _middles(facts: set, body: Body, h: int, t: int, choices: Choices) -> list:
    """`middles`, given the facts that body steps may use."""
    kind, codes = body
    if h == t and not choices.equal_ends:
        return []
    if kind == "parallel":
        return [()] if all(_step(facts, h, code, t) for code in codes) else []
    if kind != "path":
        raise ValueError(f"unknown kind of body: {kind!r}")
    entities = sorted({h for h, _, _ in facts} | {t for _, _, t in facts})
    found = _walks(facts, entities, codes, h, t)
    if not choices.equal_middle:
        found = [middle for middle in found if h not in middle and t not in middle]
    return sorted(found)


def middles(
    triples: Iterable[Triple],
    body: Body,
    h: int,
    t: int,
    *,
    without: Triple | None = None,
    **choices: bool,
) -> list[tuple[int, ...]]:
    """The sorted middle entities that ground the body for (h, t), `without` absent.

    One-hop and parallel bodies have no middles: [()] if they hold, else [].
    """
    chosen = Choices(**choices)
    return _middles(_body_facts(triples, without, chosen), body, h, t, chosen)


def holds(
    triples: Iterable[Triple],
    body: Body,
    h: int,
    t: int,
    *,
    without: Triple | None = None,
    **choices: bool,
) -> bool:
    """Whether the body holds for (h, t) when the fact `without` is absent."""
    return bool(middles(triples, body, h, t, without=without, **choices))


def body_pairs(
    triples: Iterable[Triple],
    num_entities: int,
    body: Body,
    *,
    without: Triple | None = None,
    **choices: bool,
) -> set[tuple[int, int]]:
    """All pairs (h, t) of entities for which the body holds."""
    chosen = Choices(**choices)
    facts = _body_facts(triples, without, chosen)
    every_pair = itertools.product(range(num_entities), repeat=2)
    return {(h, t) for h, t in every_pair if _middles(facts, body, h, t, chosen)}


# ---------------------------------------------------------------------------
# Measures and mining
# ---------------------------------------------------------------------------


def _measure_pairs(triples: Iterable[Triple], head: int, pairs: set) -> Measures:
    """The measures of a rule, given the pairs for which its body holds."""
    head_pairs = {(h, t) for h, r, t in triples if r == head}
    heads = {h for h, _ in head_pairs}
    tails = {t for _, t in head_pairs}
    if len(heads) >= len(tails):
        pca_pairs = {(h, t) for h, t in pairs if h in heads}
    else:
        pca_pairs = {(h, t) for h, t in pairs if t in tails}
    return {
        "support": len(pairs & head_pairs),
        "head_size": len(head_pairs),
        "body_size": len(pairs),
        "pca_body_size": len(pca_pairs),
    }


def measure(
    triples: Iterable[Triple], num_entities: int, rule: Rule, **choices: bool
) -> Measures:
    """The measures of a rule, whether or not `is_rule` would admit it."""
    head, body = rule
    triples = list(triples)
    pairs = body_pairs(triples, num_entities, body, **choices)
    return _measure_pairs(triples, head, pairs)


def exact(number) -> Fraction:
    """The number as it is written in decimals: 0.01 is one hundredth."""
    return Fraction(str(number))


def mine(
    triples: Iterable[Triple],
    num_entities: int,
    num_relations: int,
    max_hops: int = 2,
    parallel: bool = False,
    min_head_coverage: float = 0.01,
    min_support: int = 1,
    min_confidence: float = 0.0,
    min_pca_confidence: float = 0.0,
    **choices: bool,
) -> dict[Rule, Measures]:
    """All rules that reach every threshold, with their measures."""
    triples = list(triples)
    mined = {}
    for body in all_bodies(num_relations, max_hops, parallel):
        pairs = body_pairs(triples, num_entities, body, **choices)
        for head in range(num_relations):
            if not is_rule((head, body), **choices):
                continue
            found = _measure_pairs(triples, head, pairs)
            support = found["support"]
            if (
                support >= max(1, min_support)
                and support >= exact(min_head_coverage) * found["head_size"]
                and Fraction(support, found["body_size"]) >= exact(min_confidence)
                and pca_confidence(found) >= exact(min_pca_confidence)
            ):
                mined[head, body] = found
    return mined


def pca_confidence(measures: Measures) -> Fraction:
    """The exact PCA confidence of a rule that has support."""
    return Fraction(measures["support"], measures["pca_body_size"])


def skyline(mined: dict[Rule, Measures]) -> dict[Rule, Measures]:
    """Without parallel rules no more PCA confident than a mined one-hop parent."""

    def beats_parents(rule: Rule) -> bool:
        head, (_, codes) = rule
        parents = [(head, ("path", (code,))) for code in codes]
        return all(
            pca_confidence(mined[rule]) > pca_confidence(mined[parent])
            for parent in parents
            if parent in mined
        )

    return {
        rule: measures
        for rule, measures in mined.items()
        if rule[1][0] != "parallel" or beats_parents(rule)
    }


# ---------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------


def pair_features(
    triples: Iterable[Triple],
    bodies: list[Body],
    h: int,
    t: int,
    own: Triple | None = None,
    **choices: bool,
) -> list[int]:
    """The positions in `bodies` that hold for (h, t) when the fact `own` is absent."""
    chosen = Choices(**choices)
    facts = _body_facts(triples, own, chosen)
    return [
        position
        for position, body in enumerate(bodies)
        if _middles(facts, body, h, t, chosen)
    ]


def own_evidence(
    triples: Iterable[Triple],
    bodies: list[Body],
    h: int,
    t: int,
    own: Triple,
    **choices: bool,
) -> list[int]:
    """The positions in `bodies` that hold for (h, t) only if the fact `own` is there."""
    triples = list(triples)
    without = pair_features(triples, bodies, h, t, own, **choices)
    every = pair_features(triples, bodies, h, t, **choices)
    return [position for position in every if position not in without]


def query_features(
    triples: Iterable[Triple],
    num_entities: int,
    bodies: list[Body],
    head: int | None = None,
    tail: int | None = None,
    **choices: bool,
) -> dict[int, list[int]]:
    """Candidate -> positions in `bodies` that hold, for (head, ?) or (?, tail)."""
    if (head is None) == (tail is None):
        raise ValueError("give exactly one of head and tail")
    triples = list(triples)
    features = {}
    for candidate in range(num_entities):
        h, t = (head, candidate) if tail is None else (candidate, tail)
        positions = pair_features(triples, bodies, h, t, **choices)
        if positions:
            features[candidate] = positions
    return features
