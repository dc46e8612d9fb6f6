import itertools
import random

import pytest

from kblrn_pyg.data import DataError, read_kb
from kblrn_pyg.data.kale import infer, parse_rule


def naive_closure(facts, rules, entities):
    """Tries every assignment of entities to variables until nothing changes."""
    facts = set(facts)
    while True:
        new = set()
        for body, head in rules:
            variables = sorted({v for _, *pair in body for v in pair})
            for values in itertools.product(entities, repeat=len(variables)):
                e = dict(zip(variables, values))
                if all((e[x], r, e[y]) in facts for r, x, y in body):
                    new.add((e[head[1]], head[0], e[head[2]]))
        if new <= facts:
            return facts
        facts |= new


@pytest.mark.parametrize("seed", range(10))
def test_inference_equals_the_naive_closure(seed):
    rng = random.Random(seed)
    entities, relations = [f"e{i}" for i in range(6)], ["a", "b", "c"]
    facts = {
        (rng.choice(entities), rng.choice(relations), rng.choice(entities))
        for _ in range(9)
    } | {("e0", r, "e0") for r in relations}
    lines = ["a(x,y)==>b(y,x)", "a(x,y)&&b(y,z)==>c(x,z)", "c(x,y)&&a(y,x)==>a(x,y)"]
    kbs, _ = read_kb(sorted(facts))
    names = kbs["train"]["entity"].name
    relation_names = [r for _, r, _ in kbs["train"].edge_types]
    found = {
        (names[h], relation_names[r], names[t])
        for h, r, t in infer(kbs["train"], lines)
    }
    expected = (
        naive_closure(facts, [parse_rule(line) for line in lines], entities) - facts
    )
    assert found == expected


@pytest.mark.parametrize(
    "line", ["", "a(x,y)", "a(x,y)==>", "a(x)==>b(x,y)", "a==>b(x,y)"]
)
def test_what_is_not_a_rule(line):
    with pytest.raises(DataError, match="not a rule"):
        parse_rule(line)
