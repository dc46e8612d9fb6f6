"""Scores of some entities that all queries share, against the slow default."""

import itertools

import numpy as np
import pytest
import torch

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples, make_kb
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import losses, softmax
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.losses import draw_distinct
from kblrn_pyg.rules import mine_rules

NUM_NODES, NUM_RELATIONS = 40, 3


def random_kb(seed):
    """Few entities: with self-loops, a hub, and paths that meet themselves."""
    rng = np.random.default_rng(seed)
    size = 150
    head, tail = rng.integers(NUM_NODES, size=(2, size))
    rel = rng.integers(NUM_RELATIONS, size=size)
    tail[:40] = 0  # a hub
    tail[-8:] = head[-8:]
    x = torch.from_numpy(rng.normal(size=(NUM_NODES, 2)))
    x[::3, 0] = torch.nan
    triples = tuple(torch.from_numpy(i) for i in (head, rel, tail))
    names = [f"e{i}" for i in range(NUM_NODES)]
    relations = [f"r{i}" for i in range(NUM_RELATIONS)]
    return make_kb(names, relations, triples, x, ["size", "age"])


def all_queries():
    entity = torch.arange(NUM_NODES).repeat(NUM_RELATIONS)
    rel = torch.arange(NUM_RELATIONS).repeat_interleave(NUM_NODES)
    return [Queries(entity, rel, side) for side in SIDES]


def columns_of(size, seed=0):
    return torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(seed))[
        :size
    ]


@pytest.mark.parametrize(
    ("equal_ends", "equal_middle", "self_loops", "parallel"),
    list(itertools.product([True, False], repeat=4)),
)
def test_columns_equal_the_default(equal_ends, equal_middle, self_loops, parallel):
    for seed in range(3):
        data = random_kb(seed)
        rules = mine_rules(
            data,
            min_support=1,
            min_head_coverage=0,
            equal_ends=equal_ends,
            equal_middle=equal_middle,
            self_loops=self_loops,
            parallel=parallel,
        )
        assert len(rules) > 20
        model = KBLRN.from_data(data, "rn", rules=rules, threshold=0.1).double()
        for queries, (name, expert) in itertools.product(
            all_queries(), model.experts.items()
        ):
            for size in (1, 17, NUM_NODES):
                columns = columns_of(size, seed)
                zeros = torch.zeros(len(queries), size, dtype=torch.double)
                fast = expert.add_to(zeros.clone(), queries, columns)
                slow = Expert.add_to(expert, zeros, queries, columns)
                torch.testing.assert_close(fast, slow, msg=f"{name} {size}")
                seen = torch.rand_like(fast)
                by_fast, by_slow = (
                    torch.autograd.grad((scores * seen).sum(), expert.weight)[0]
                    for scores in (fast, slow)
                )
                torch.testing.assert_close(by_fast, by_slow)


@pytest.mark.parametrize("scorer", ["distmult", "complex", "transe", "rescal"])
def test_columns_of_a_model(scorer):
    data = random_kb(0)
    model = KBLRN.from_data(data, "lrn", 8, scorer=scorer, threshold=0.5).eval()
    columns = columns_of(11)
    for queries in all_queries():
        torch.testing.assert_close(
            model.score_all(queries, columns), model.score_all(queries)[:, columns]
        )


def test_columns_that_do_not_exist():
    model = KBLRN.from_data(random_kb(0), "rn", threshold=0.5)
    for queries, expert in itertools.product(all_queries(), model.experts.values()):
        with pytest.raises(ValueError, match=r"ids of (entities|candidates) must lie"):
            expert.score_all(queries, NUM_NODES, torch.tensor([0, NUM_NODES]))


def test_draw_distinct():
    torch.manual_seed(0)
    for num_nodes, number in ((10, 20), (10, 10), (10, 4), (1000, 100), (5000, 1000)):
        counts = torch.zeros(num_nodes)
        for _ in range(400):
            drawn = draw_distinct(num_nodes, number, torch.device("cpu"))
            assert drawn.numel() == min(number, num_nodes)
            assert (drawn.diff() > 0).all()
            counts[drawn] += 1
        # Every entity is as likely as the others: within five deviations.
        share = min(number, num_nodes) / num_nodes
        spread = 5 * (400 * share * (1 - share)) ** 0.5
        assert (counts - 400 * share).abs().max() <= max(spread, 1e-6)


def naive_shared_loss(model, triples, drawn, side):
    """The cross-entropy of each triple over the answer and what was drawn, once."""
    losses = []
    for head, rel, tail in zip(*triples):
        queries = Queries.of_triples(head[None], rel[None], tail[None], side)
        answer = head if side == "head" else tail
        others = drawn[drawn != answer]
        candidates = torch.cat([answer[None], others])[None]
        scores = model.score_candidates(queries, candidates)
        own = model.own_evidence(head[None], rel[None], tail[None])
        scores = torch.cat([scores[:, :1] - own, scores[:, 1:]], dim=1)
        losses.append(torch.nn.functional.cross_entropy(scores, torch.tensor([0])))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("experts", ["l", "r", "lrn"])
def test_shared_loss_equals_a_loop(experts, monkeypatch):
    data = random_kb(1)
    settings = {"l": {"hidden_channels": 8}, "n": {"threshold": 0.5}}
    given = {k: v for letter in experts for k, v in settings.get(letter, {}).items()}
    model = KBLRN.from_data(
        data, experts, num_negatives=15, negatives="shared", **given
    ).double()
    kept = []
    draw = losses.draw_distinct

    def remember(*args):
        kept.append(draw(*args))
        return kept[-1]

    monkeypatch.setattr(losses, "draw_distinct", remember)
    triples = flat_triples(data)
    for side in SIDES:
        kept.clear()
        loss = model.loss(*triples, side=side)
        expected = naive_shared_loss(model, triples, kept[0], side)
        torch.testing.assert_close(loss, expected)
        found = torch.autograd.grad(loss, list(model.parameters()))
        wanted = torch.autograd.grad(expected, list(model.parameters()))
        for one, other in zip(found, wanted):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("split", [5, 3])
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("size", [1, 700, 5000])
def test_sums_part_by_part(size, overwrite, split, monkeypatch):
    """Scores of very different size, in parts that rise and fall."""
    monkeypatch.setattr(softmax, "_AT_ONCE", 2000)
    monkeypatch.setattr(softmax, "_PICKS_AT_ONCE", 2)
    torch.manual_seed(0)
    query = torch.randn(6, 5, dtype=torch.double, requires_grad=True)
    rows = (
        torch.randn(size, 5, dtype=torch.double)
        * torch.logspace(-3, 2.5, size)[:, None]
    )
    rows = rows.requires_grad_()
    base = (torch.randn(6, size, dtype=torch.double) * 50).requires_grad_()
    row, column = torch.tensor([0, 5, 5]), torch.tensor([0, size - 1, size // 2])
    for given in ((query, rows, base), (query, rows, None), (None, None, base)):
        products = 0 if given[0] is None else query @ rows.t()
        scores = products if given[2] is None else products + base
        expected = torch.logsumexp(scores, dim=1), scores[row, column]
        asked, table, added = [None if one is None else one * 1.0 for one in given]
        # In one table, or in two side by side.
        tables = [] if table is None else table.split(split, dim=1)
        found = softmax.ProductSoftmax.apply(
            asked, added, row, column, overwrite, None, *tables
        )
        leaves = [one for one in given if one is not None]
        weights = [torch.rand_like(one) for one in expected]
        for one, other in zip(found, expected):
            torch.testing.assert_close(one, other)
        by_found, by_expected = (
            torch.autograd.grad(
                sum((w * o).sum() for w, o in zip(weights, outputs)), leaves
            )
            for outputs in (found, expected)
        )
        for one, other in zip(by_found, by_expected):
            torch.testing.assert_close(one, other)
