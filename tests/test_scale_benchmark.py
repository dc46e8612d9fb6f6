"""The generator of large knowledge bases, and the benchmark that uses it."""

import os

import numpy as np
import pytest
import scale
import scale_generator as generator
import scale_parts
import torch
from scale_generator import Size, relation_of

from kblrn_pyg.data import make_kb, numerical_features, read_kb
from kblrn_pyg.rules import mine_rules

SIZE = Size.of(1000)
NUM_GROUPS = 3


@pytest.fixture(scope="module")
def generated():
    return generator.generate(SIZE)


@pytest.fixture(scope="module")
def kb(generated):
    known = tuple(map(torch.from_numpy, generated.train))
    entities = [f"e{i}" for i in range(SIZE.num_entities)]
    relations = [f"r{i}" for i in range(SIZE.num_relations)]
    attributes = [f"n{i}" for i in range(generator.NUM_ATTRIBUTES)]
    x = torch.from_numpy(generated.x)
    return make_kb(entities, relations, known, x, attributes)


@pytest.fixture(scope="module")
def coverage(kb):
    """The head coverage of each rule, by its head and the codes of its body."""
    rules = mine_rules(kb, confidences=False)
    return {
        (head, *codes): covered
        for head, (_, codes), covered in zip(
            rules.head.tolist(), rules.bodies(), rules.head_coverage.tolist()
        )
    }


def pairs_of(generated, relation):
    head, rel, tail = generated.train
    chosen = rel == relation
    return set(zip(head[chosen].tolist(), tail[chosen].tolist()))


@pytest.mark.parametrize(
    ("num_entities", "num_triples", "num_relations"),
    [(15_000, 85_500, 16), (150_000, 855_000, 16), (4_600_000, 20_600_000, 822)],
)
def test_sizes(num_entities, num_triples, num_relations):
    size = Size.of(num_entities)
    assert size == Size(num_entities, num_triples, num_relations)


def test_too_small():
    with pytest.raises(ValueError, match=r"'num_entities' must be .* \(got 10\)"):
        Size.of(10)


def test_numbers_of_triples(generated):
    assert len(generated.train[0]) == SIZE.num_triples
    assert len(generated.valid[0]) == len(generated.test[0]) == SIZE.num_held
    splits = [np.stack(getattr(generated, s)) for s in ("train", "valid", "test")]
    triples = np.concatenate(splits, axis=1)
    assert np.unique(triples, axis=1).shape == triples.shape
    assert (triples[0] != triples[2]).all()
    assert (generated.valid[1] != generator.KIND).all()


def test_the_seed_decides():
    one, other, third = (generator.generate(SIZE, seed) for seed in (1, 1, 2))
    for mine, same in zip(one.train, other.train):
        np.testing.assert_array_equal(mine, same)
    np.testing.assert_array_equal(one.x, other.x)
    assert not np.array_equal(one.train[0], third.train[0])


def test_degrees_are_skewed():
    size = Size.of(15_000)
    head, _, tail = generator.generate(size).train
    degree = np.sort(np.bincount(np.concatenate([head, tail])))
    assert len(degree) == size.num_entities
    assert degree[0] >= 1  # all entities are in training
    busiest = degree[-size.num_entities // 100 :]
    assert busiest.sum() > 10 * 0.01 * degree.sum()
    assert degree[-1] > 0.38 * size.num_entities
    assert np.median(degree) < 0.8 * degree.mean()


def test_everything_has_one_kind(generated):
    kinds = pairs_of(generated, generator.KIND)
    assert sorted(entity for entity, _ in kinds) == list(range(SIZE.num_entities))


def test_relations_are_of_very_different_sizes(generated):
    counts = np.bincount(generated.train[1])
    assert len(counts) == SIZE.num_relations
    assert counts[1:].max() > 5 * counts[1:].min()


@pytest.mark.parametrize("group", range(NUM_GROUPS))
def test_rules_are_found(generated, coverage, group):
    """Codes are twice the relation, and one more where it is walked backwards."""
    base, inverse, onward, composed, symmetric = (
        relation_of(group, role) for role in generator.ROLES
    )
    there = pairs_of(generated, base)
    back = pairs_of(generated, inverse)
    held = sum((tail, head) in there for head, tail in back) / len(back)
    assert coverage[inverse, 2 * base + 1] == pytest.approx(held)
    assert 0.6 < held < 0.85
    assert coverage[symmetric, 2 * symmetric + 1] > 0.7
    assert coverage[composed, 2 * base, 2 * onward] > 0.5
    # What is not meant to hold does not.
    assert coverage.get((onward, 2 * base + 1), 0) < 0.1


def test_numbers(generated, kb):
    known = ~np.isnan(generated.x)
    assert known.mean(axis=0) == pytest.approx(generator.KNOWN, abs=0.06)
    features = numerical_features(kb)
    # The first group prefers differences of the first attribute, the third of
    # the second, and the middle one of none.
    assert features.relations.tolist() == [relation_of(g, "base") for g in (0, 2)]
    assert features.attribute.tolist() == [0, 1]
    for centre, relation in zip(features.centre.tolist(), features.relations.tolist()):
        head, rel, tail = generated.train
        attribute = relation // 10
        value = generated.x[:, attribute]
        gap = (value[head] - value[tail])[rel == relation]
        near = np.abs(gap[~np.isnan(gap)] - np.nanmedian(gap)) < 0.3 * centre
        assert centre > 400
        assert near.mean() > 0.9


def test_files_hold_what_was_generated(generated, tmp_path):
    generator.write_csv(generated, tmp_path)
    names = ("train", "valid", "test", "numerical")
    kbs, report = read_kb(*(tmp_path / f"{name}.csv" for name in names))
    assert report.num_triples == {
        "train": SIZE.num_triples,
        "val": SIZE.num_held,
        "test": SIZE.num_held,
    }
    assert not any(report.num_duplicates.values())
    assert not any(report.num_unseen.values())
    entity = kbs["train"]["entity"]
    original = [int(name[1:]) for name in entity.name]
    assert sorted(original) == list(range(SIZE.num_entities))
    np.testing.assert_allclose(entity.x.numpy(), generated.x[original], rtol=1e-12)
    for relation in range(SIZE.num_relations):
        edges = kbs["train"]["entity", f"r{relation:02}", "entity"].edge_index
        found = {(original[h], original[t]) for h, t in edges.t().tolist()}
        assert found == pairs_of(generated, relation)


def test_command_writes_files(tmp_path):
    assert generator.main(["300", str(tmp_path / "new")]) == 0
    first = (tmp_path / "new" / "train.csv").read_text().splitlines()[0]
    assert [len(cell) for cell in first.split(",")] == [4, 3, 4]


def test_from_one_end_to_the_other(monkeypatch, capsys):
    """In this process, as others take seconds to start."""
    monkeypatch.setattr(scale, "in_own_process", lambda run, *given: run(*given))
    monkeypatch.setattr(scale_parts, "ROUNDS", 1)
    assert scale.main(["--sizes", "1000", "--batches", "2", "--beside-busy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1,000 entities, 5,700 triples, 16 relations")
    parts = len(scale_parts.PARTS)
    for part, line in zip(scale_parts.PARTS, lines[1 : 1 + parts]):
        assert line.startswith(f"  {part} ")
        assert "peak" in line
    said = "\n".join(lines[1 + parts :])
    for ratio in ("l / its", "lrn / l", "exact l / its", "exact lrn / its", "memory"):
        assert ratio in said
    assert said.count("beside a busy process / alone") == 4


def test_only_some_parts(monkeypatch, capsys):
    monkeypatch.setattr(scale, "in_own_process", lambda run, *given: run(*given))
    scale.main(["--sizes", "300", "--only", "mine"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["300", "import", "mine", "peak"]


def test_a_process_of_its_own():
    assert scale.in_own_process(os.getpid) != os.getpid()
    assert scale.in_own_process(os._exit, 1) is None
    assert "died" in scale.line_of("l", None)


def test_ratios():
    def figures(speed, batch, products, peak):
        names = ("speed", "batch", "products", "peak")
        return dict(zip(names, (speed, batch, products, peak)))

    results = {
        15_000: {
            "l": figures(50_000, 20, 10, 1024),
            "lrn": figures(20_000, 50, 10, 2048),
            "exact l": figures(5_000, 30, 15, 512),
        },
        4_600_000: {
            "l": figures(10_000, 100, 10, 13 * 1024),
            "lrn": figures(8000, 1, 1, 14 * 1024),
        },
    }
    found = {ratio.text: ratio for ratio in scale.ratios(results)}
    assert found["l / its matrix products, 15,000 entities"][1:] == (2.0, 2.5)
    assert found["exact l / its matrix products, 15,000 entities"][1:] == (2.0, 1.5)
    assert found["lrn / l, 15,000 entities"][1:] == (2.5, 3)
    large = found["l, a triple at 4,600,000 / at 15,000 entities"]
    assert large[1:] == (5.0, 2.5)
    assert "missed" in str(large)
    assert found["lrn, a triple at 4,600,000 / at 15,000 entities"].value == 2.5
    assert found["peak memory in GB, 15,000 entities"][1:] == (2.0, 12)
    assert found["peak memory in GB, 4,600,000 entities"].value == 14
    assert "l / its matrix products, 4,600,000 entities" not in found


def test_parts_by_size():
    assert scale_parts.parts_for(150_000) == list(scale_parts.PARTS)
    assert {"exact l", "exact lrn"}.isdisjoint(scale_parts.parts_for(1_000_000))
    assert "confidences" not in scale_parts.parts_for(4_600_000)
