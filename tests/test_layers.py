"""The numerical expert with layers: scores agree, gradients are right."""

import math
import random
from contextlib import nullcontext
from dataclasses import replace

import naive_layers
import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.backend import plain_torch
from kblrn_pyg.data import PairAttribute, flat_triples, layer_features, pair_attributes
from kblrn_pyg.data.layers import find_knots, left_out
from kblrn_pyg.data.pairs import compare_rows
from kblrn_pyg.data.queries import Queries
from kblrn_pyg.nn import Expert, LayerExpert

KINDS = {
    "plain": [PairAttribute("a", "difference", 0, 0)],
    "two columns": [PairAttribute("age", "difference", 0, 1)],
    "ratio": [PairAttribute("c", "log_ratio", 2, 2)],
    "ratio of two": [PairAttribute("c", "log_ratio", 2, 3)],
    "signed": [PairAttribute("b", "signed_log", 1, 1, 0.5)],
    "distance": [PairAttribute("distance", "haversine", 3, 4)],
}
KINDS["all"] = [one for (one,) in KINDS.values()]


@pytest.fixture(scope="module")
def kb():
    """Has unknown numbers on either side, equal ones, and an outlier."""
    rng, num_entities = random.Random(3), 12
    triples = {
        (rng.randrange(12), rng.randrange(2), rng.randrange(12)) for _ in range(70)
    }
    kb = as_kb(sorted(triples), num_entities, 3)  # the last relation is empty
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(num_entities, 5, generator=generator, dtype=torch.double)
    x[:, 0] = x[:, 0].mul(3).round()
    x[:, 2] = x[:, 2].exp()
    x[:, 3], x[:, 4] = 30 * x[:, 3].clamp(-2.9, 2.9), 60 * x[:, 4].clamp(-2.9, 2.9)
    x[0, 1] = 1e9
    unknown = torch.rand(x.shape, generator=generator) < 0.2
    kb["entity"].x = x.masked_fill(unknown, torch.nan)
    kb.attribute_names = [*"abc", "latitude", "longitude"]
    return kb


def make(kb, kind="all", threshold=0.1, ignore_unknown=False):
    features = layer_features(kb, threshold, KINDS[kind])
    expert = LayerExpert(kb, features, ignore_unknown)
    torch.manual_seed(1)
    torch.nn.init.normal_(expert.weight)
    if not ignore_unknown:
        torch.nn.init.normal_(expert.missing)
    return expert


def every_triple(kb):
    n, r = kb["entity"].num_nodes, len(kb.edge_types)
    return torch.cartesian_prod(torch.arange(n), torch.arange(r), torch.arange(n)).t()


@pytest.mark.parametrize("ignore_unknown", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_follow_the_definition_in_every_way(kb, kind, ignore_unknown):
    expert = make(kb, kind, ignore_unknown=ignore_unknown).double()
    assert len(expert.features) > 0
    table, missing = expert.table().tolist(), expert.missing.tolist()
    head, rel, tail = every_triple(kb)
    x = kb["entity"].x.tolist()
    expected = torch.tensor(
        [
            naive_layers.score(expert.features, x, table, missing, triple)
            for triple in zip(head.tolist(), rel.tolist(), tail.tolist())
        ],
        dtype=torch.double,
    )
    torch.testing.assert_close(expert(head, rel, tail), expected)
    num_nodes = kb["entity"].num_nodes
    some = torch.arange(num_nodes).flip(0)[::2].contiguous()
    for side, known, answer in (("tail", head, tail), ("head", tail, head)):
        queries = Queries(known, rel, side)
        for is_plain in (False, True):
            if is_plain:
                with plain_torch():
                    found = _three_ways(expert, queries, answer, num_nodes, some)
            else:
                found = _three_ways(expert, queries, answer, num_nodes, some)
            for one in found[:2]:
                torch.testing.assert_close(one, expected)
            torch.testing.assert_close(found[3], found[2][:, some])


def _three_ways(expert, queries, answer, num_nodes, some):
    of_all = expert.score_all(queries, num_nodes)
    return (
        expert.score_candidates(queries, answer[:, None]).squeeze(1),
        of_all.gather(1, answer[:, None]).squeeze(1),
        of_all,
        expert.score_all(queries, num_nodes, some),
    )


@pytest.mark.parametrize("kind", ["all", "distance", "ignoring"])
@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize("way", ["forward", "candidates", "all"])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_gradients(kb, kind, way, side, is_plain):
    expert = make(kb, kind) if kind in KINDS else make(kb, ignore_unknown=True)
    expert.double()
    head, rel, tail = (index[:25] for index in flat_triples(kb))
    queries = Queries(head if side == "tail" else tail, rel, side)
    candidates = torch.randint(kb["entity"].num_nodes, (25, 4))
    factor = torch.randn(25, kb["entity"].num_nodes, dtype=torch.double)

    def score(weight, missing):
        values = {"expert.weight": weight, "expert.missing": missing}
        return torch.func.functional_call(_Call(expert, ways[way]), values)

    ways = {
        "forward": lambda: expert(head, rel, tail),
        "candidates": lambda: expert.score_candidates(queries, candidates),
        "all": lambda: expert.score_all(queries, factor.size(1)) * factor,
    }
    values = [one.detach().requires_grad_() for one in (expert.weight, expert.missing)]
    with plain_torch() if is_plain else nullcontext():
        assert torch.autograd.gradcheck(score, values, atol=1e-6, fast_mode=True)


class _Call(torch.nn.Module):
    def __init__(self, expert, way):
        super().__init__()
        self.expert, self.way = expert, way

    def forward(self):
        return self.way()


def test_no_nan_reaches_a_gradient(kb):
    for num_negatives in (20, None):
        model = KBLRN.from_data(
            kb, "n", numerical="layer", threshold=0.1, num_negatives=num_negatives
        )
        loss = model.loss(*flat_triples(kb))
        loss.backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad.isfinite().all(), name
            assert parameter.grad.any(), name
        assert loss.isfinite()


def test_only_what_numbers_are_counts_if_unknown_ones_are_ignored(kb):
    expert = make(kb, "plain", ignore_unknown=True).double()
    assert len(expert.features) > 1
    before = expert.table()
    # The first weight of a layer is that of a constant, which would tell entities
    # that have a number from those that have none.
    _, first = np.unique(_layers_of_weights(expert), return_index=True)
    with torch.no_grad():
        expert.weight[torch.from_numpy(first)] += 5
    torch.testing.assert_close(expert.table(), before)
    # The mean over pairs of entities is zero: here, those of all heads and tails of
    # a relation that have numbers with all entities that have one.
    known = kb["entity"].x[:, 0].isfinite()
    head, _, tail = every_triple(kb)
    for rel in expert.features.relations.tolist():
        ends = kb[kb.edge_types[rel]].edge_index
        ends = ends[:, known[ends].all(dim=0)]
        others = known.nonzero().flatten()
        pairs = [*torch.cartesian_prod(ends[0], others).tolist()]
        pairs += torch.cartesian_prod(others, ends[1]).tolist()
        one, other = torch.tensor(pairs).t()
        scores = expert(one, torch.full_like(one, rel), other)
        assert scores.abs().max() > 0.1
        assert scores.mean().item() == pytest.approx(0, abs=1e-12)
    is_unknown = ~(known[head] & known[tail])
    scores = expert(*every_triple(kb))
    assert not scores[is_unknown].any()
    assert scores[~is_unknown].any()


def _layers_of_weights(expert):
    knot, weight = expert.basis_index
    size = expert.knot_ptr.diff()
    layer_of_knot = torch.arange(len(size)).repeat_interleave(size)
    layer = torch.zeros(expert.weight.numel(), dtype=torch.long)
    layer[weight] = layer_of_knot[knot]
    return layer.numpy()


def test_parts_sum_to_the_score(kb):
    expert = make(kb).double()
    for head, rel, tail in every_triple(kb).t().tolist()[::23]:
        parts = expert.parts(head, rel, tail)
        index = (torch.tensor([one]) for one in (head, rel, tail))
        total = sum(part.contribution for part in parts)
        assert total == pytest.approx(expert(*index).item(), abs=1e-9)


def test_explanations_are_in_the_units_of_attributes():
    kb = as_kb([(i, 0, i + 6) for i in range(6)], 13, 1)
    x = torch.full((13, 5), torch.nan, dtype=torch.double)
    x[:6, 0], x[6:12, 0] = torch.arange(6.0) + 1950, torch.arange(6.0) * 2 + 1920
    x[:6, 1], x[6:12, 1] = 10.0 ** torch.arange(6), 2 * 10.0 ** torch.arange(6)
    x[:12, 2], x[:12, 3] = torch.arange(12.0), torch.arange(12.0)
    kb["entity"].x = x
    kb.attribute_names = ["birth_year", "people", "latitude", "longitude", "x"]
    attributes = [
        PairAttribute("birth_year", "difference", 0, 0),
        PairAttribute("people", "log_ratio", 1, 1),
        PairAttribute("distance", "haversine", 2, 3),
    ]
    model = KBLRN(
        13, 1, {"numerical": LayerExpert(kb, layer_features(kb, 0.5, attributes))}
    )
    model.kb = kb
    year, people, distance = model.explain(0, 0, 6).parts["numerical"]
    assert year.text == "birth_year"
    assert year.note_text == "1950 − 1920 = 30, usually 25.5 to 29.5"
    assert people.note_text == "1 / 2 = 0.500, usually 0.500 to 0.500"
    assert distance.text == "distance"
    # acos(cos² 6°) on a sphere
    assert distance.note_text == "943 km apart, usually 939 to 942"
    unknown = model.explain(0, 0, 12).parts["numerical"]
    assert [one.note_text for one in unknown] == [
        "1950 and unknown",
        "1 and unknown",
        "known and unknown",
    ]


def test_knots_ignore_outliers_and_find_frequent_values():
    rng = np.random.default_rng(0)
    true, arbitrary = rng.normal(size=1000), 10 * rng.normal(size=1000)
    knots = find_knots(true, arbitrary)
    assert (np.diff(knots) > 0).all()
    with_outlier = find_knots(np.append(true, 1e9), arbitrary)
    # One outlier moves one knot, and nothing else by more than a rank.
    inner = with_outlier[with_outlier < 1e8]
    assert len(inner) >= len(knots) - 1
    assert np.abs(inner[:20] - knots[:20]).max() < 0.2
    half = np.where(np.arange(1000) % 2, 0.0, true)
    knots = find_knots(half, arbitrary)
    place = int(np.searchsorted(knots, 0.0))
    assert knots[place] == 0
    distinct = np.unique(np.concatenate([half, arbitrary]))
    inside = (distinct > knots[place - 1]) & (distinct < knots[place + 1])
    assert distinct[inside].tolist() == [0.0]


def test_an_equality_is_learned_exactly():
    """Pairs of equal numbers, which one radial function of a wide spread misses."""
    rng = random.Random(0)
    values = [float(rng.randrange(50)) for _ in range(200)]
    triples = [
        (i, 0, j) for i in range(100) for j in range(100, 200) if values[i] == values[j]
    ]
    kb = as_kb(triples, 200, 1)
    kb["entity"].x = torch.tensor(values, dtype=torch.double)[:, None]
    kb.attribute_names = ["a"]
    features = layer_features(kb)
    place = features.knot.tolist().index(0.0)
    below, above = features.knot[[place - 1, place + 1]].tolist()
    assert -1 < below < 0 < above < 1


def test_attributes_that_cannot_inform_are_left_out(kb, caplog):
    kb = kb.clone()
    few = torch.full((kb["entity"].num_nodes, 2), torch.nan, dtype=torch.double)
    few[:4, 0], few[:, 1] = torch.arange(4.0), 7.0
    kb["entity"].x = torch.cat([kb["entity"].x, few], dim=1)
    kb.attribute_names = [*kb.attribute_names, "few", "constant"]
    assert left_out(kb) == {
        "few": "fewer than 5 entities have it",
        "constant": "it is 7 wherever it is known",
    }
    assert not {"few", "constant"} & {one.name for one in pair_attributes(kb)}
    with caplog.at_level("INFO"):
        layer_features(kb)
    assert "the attribute few is left out: fewer than 5 entities have it" in caplog.text


def test_heavy_tails_are_compared_by_logarithms():
    kb = as_kb([(0, 0, 1)], 1000, 1)
    rng = np.random.default_rng(0)
    columns = {
        "year": rng.normal(1950, 20, 1000),
        "people": rng.lognormal(12, 3, 1000),
        "debt": rng.lognormal(12, 3, 1000) * rng.choice([-1, 1], 1000),
        "zero": np.zeros(1000),
    }
    kb["entity"].x = torch.tensor(np.stack(list(columns.values()), axis=1))
    kb.attribute_names = list(columns)
    kinds = [(one.name, one.kind) for one in pair_attributes(kb)]
    assert kinds == [
        ("year", "difference"),
        ("people", "difference"),
        ("people", "log_ratio"),
        ("debt", "difference"),
        ("debt", "signed_log"),
    ]


@pytest.mark.parametrize("attribute", KINDS["all"], ids=lambda one: one.kind)
def test_comparisons_equal_the_naive_ones(kb, attribute):
    x = kb["entity"].x.numpy()
    pairs = [(i, j) for i in range(len(x)) for j in range(len(x))]
    head, tail = (x[[pair[side] for pair in pairs]] for side in (0, 1))
    found = compare_rows(attribute.side(head, False), attribute.side(tail, True))
    for i, one in enumerate(found.tolist()):
        expected = naive_layers.compared(attribute, head[i].tolist(), tail[i].tolist())
        if expected is None:
            assert math.isnan(one)
        else:
            assert one == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.9])
def test_relations_have_the_attributes_of_enough_triples(kb, threshold):
    features = layer_features(kb, threshold, KINDS["all"])
    x = kb["entity"].x.tolist()
    for rel, edge_type in enumerate(kb.edge_types):
        pairs = kb[edge_type].edge_index.t().tolist()
        expected = []
        for attribute in KINDS["all"]:
            known = [naive_layers.compared(attribute, x[h], x[t]) for h, t in pairs]
            count = sum(one is not None for one in known)
            if count >= 5 and count >= threshold * len(pairs) - 1e-9:
                expected.append((attribute.name, attribute.kind, count))
        found = [
            (one.name, one.kind, int(features.count[i]))
            for i in range(*features.of(rel).indices(len(features)))
            for one in [features.attributes[int(features.pair[i])]]
        ]
        assert found == expected


@pytest.mark.parametrize("ignore_unknown", [False, True])
def test_a_model_file_keeps_layers(kb, tmp_path, ignore_unknown):
    given = {"numerical": "layer", "ignore_unknown": ignore_unknown}
    model = KBLRN.from_data(kb, "n", **given, threshold=0.2)
    torch.nn.init.normal_(model.experts["numerical"].weight)
    if not ignore_unknown:
        torch.nn.init.normal_(model.experts["numerical"].missing)
    model.save(tmp_path / "model.pt")
    loaded = KBLRN.load(tmp_path / "model.pt")
    assert loaded.fingerprint() == model.fingerprint()
    triples = every_triple(kb)
    assert torch.equal(loaded(*triples), model(*triples))
    other = KBLRN.from_data(kb, "n", numerical="layer", threshold=0.9)
    assert other.fingerprint() != model.fingerprint()
    given["ignore_unknown"] = not ignore_unknown
    other = KBLRN.from_data(kb, "n", **given, threshold=0.2)
    assert other.fingerprint() != model.fingerprint()
    loaded.double()
    assert loaded.experts["numerical"].knot.dtype == torch.double
    loaded.half()
    assert loaded.experts["numerical"].value.dtype == torch.double


def test_without_layers_nothing_is_added(kb):
    bare = kb.clone()
    bare["entity"].x = torch.full_like(kb["entity"].x, torch.nan)
    with pytest.warns(UserWarning, match="numerical expert adds nothing"):
        model = KBLRN.from_data(bare, "n", numerical="layer")
    head, rel, tail = flat_triples(bare)
    assert not model(head, rel, tail).any()
    assert not model.score_tails(head, rel).any()
    with plain_torch():
        assert not model.score_tails(head, rel).any()


def test_settings_that_do_not_fit():
    kb = as_kb([(0, 0, 1)], 2, 1)
    with pytest.raises(ValueError, match="'learn_rbf' must be False where 'numerical'"):
        KBLRN.from_data(kb, "n", numerical="layer", learn_rbf=True)
    with pytest.raises(ValueError, match="'ignore_unknown' must be False unless"):
        KBLRN.from_data(kb, "n", ignore_unknown=True)
    features = replace(layer_features(kb), arbitrary=None)
    with pytest.raises(ValueError, match="'features' must know arbitrary pairs"):
        LayerExpert(kb, features, ignore_unknown=True)
    with pytest.raises(ValueError, match=r"'threshold' must be in \(0, 1\]"):
        layer_features(kb, 0.0)
    with pytest.raises(ValueError, match="'kind' must be one of"):
        PairAttribute("a", "product", 0, 0)
    with pytest.raises(ValueError, match="'scale' must be positive"):
        PairAttribute("a", "signed_log", 0, 0, 0.0)


def test_ids_out_of_range(kb):
    expert = make(kb)
    n = kb["entity"].num_nodes
    queries = Queries(torch.tensor([n]), torch.tensor([0]), "tail")
    with pytest.raises((ValueError, IndexError)):
        expert.score_all(queries, n)
    assert issubclass(LayerExpert, Expert)
