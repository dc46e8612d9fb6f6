import math
import random

import pytest
import torch

from kblrn_pyg.data import differences, numerical_features, read_kb


def naive_features(triples, values, threshold):
    """Follows the paper's text word for word."""
    found = {}
    for relation in {r for _, r, _ in triples}:
        mine = [(h, t) for h, r, t in triples if r == relation]
        for attribute in {a for _, a in values}:
            diffs = [
                values[h, attribute] - values[t, attribute]
                for h, t in mine
                if (h, attribute) in values and (t, attribute) in values
            ]
            if diffs and len(diffs) >= threshold * len(mine) - 1e-9:
                centre = sum(diffs) / len(diffs)
                width = math.sqrt(sum((d - centre) ** 2 for d in diffs) / len(diffs))
                found[relation, attribute] = (centre, width, len(diffs))
    return found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("threshold", [0.5, 0.9, 1.0])
def test_features_equal_the_naive_ones(seed, threshold):
    rng = random.Random(seed)
    entities = [f"e{i}" for i in range(15)]
    triples = list(
        dict.fromkeys(
            (rng.choice(entities), f"r{rng.randrange(6)}", rng.choice(entities))
            for _ in range(60)
        )
    )
    values = {
        (entity, attribute): rng.gauss(0, 5)
        for entity in sorted({e for h, _, t in triples for e in (h, t)})
        for attribute, known in (("a", 0.97), ("b", 0.8), ("c", 0.3))
        if rng.random() < known
    }
    kbs, _ = read_kb(
        triples, numerical=[(e, a, v) for (e, a), v in values.items()], min_entities=1
    )
    data = kbs["train"]
    features = numerical_features(data, threshold)
    found = {}
    for relation in range(len(data.edge_types)):
        for i in range(*features.of(relation).indices(len(features))):
            attribute = int(features.attribute[i])
            key = (data.edge_types[relation][1], data.attribute_names[attribute])
            found[key] = tuple(
                float(column[i])
                for column in (features.centre, features.width, features.count)
            )
            assert differences(data, relation, attribute).mean() == pytest.approx(
                found[key][0]
            )
    expected = naive_features(triples, values, threshold)
    assert found.keys() == expected.keys()
    for key, (centre, width, count) in expected.items():
        if width > 1e-9:
            assert found[key] == pytest.approx((centre, width, count))
    assert features.relations.tolist() == [
        r
        for r, edge_type in enumerate(data.edge_types)
        if any(relation == edge_type[1] for relation, _ in expected)
    ]


def test_exactly_ninety_percent_is_enough():
    triples = [(f"h{i}", "r", f"t{i}") for i in range(10)]
    values = [(f"{side}{i}", "a", i * (side == "h")) for side in "ht" for i in range(9)]
    kbs, _ = read_kb(triples, numerical=values)
    assert len(numerical_features(kbs["train"])) == 1
    kbs, _ = read_kb([*triples, ("h9", "r", "t0")], numerical=values)
    assert len(numerical_features(kbs["train"])) == 0


def test_equal_differences_get_a_width_all_the_same():
    values = [("a", "n", 1), ("b", "n", 3), ("c", "n", 5), ("a", "k", 4), ("b", "k", 4)]
    kbs, _ = read_kb(
        [("a", "r", "b"), ("b", "r", "c")], numerical=values, min_entities=1
    )
    features = numerical_features(kbs["train"], threshold=0.5)
    assert features.centre.tolist() == [-2, 0]
    deviation = torch.tensor([1.0, 3, 5]).std(correction=0)
    assert features.width.tolist() == pytest.approx([0.01 * float(deviation), 1])


def test_threshold_is_checked():
    kbs, _ = read_kb([("a", "r", "b")])
    with pytest.raises(ValueError, match=r"'threshold' must be in \(0, 1\] \(got 0\)"):
        numerical_features(kbs["train"], threshold=0)
