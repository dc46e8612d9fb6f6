"""Rules in the loss: groundings, KALE and adversarial sets."""

import logging
import random

import naive
import numpy as np
import pytest
import torch
from test_mining import as_kb

from kblrn_pyg import KBLRN
from kblrn_pyg.data import flat_triples
from kblrn_pyg.datasets import load_dataset
from kblrn_pyg.nn import ASRPenalty, KALEPenalty
from kblrn_pyg.nn.penalties import PENALTIES
from kblrn_pyg.nn.penalties.kale import _other_relations
from kblrn_pyg.nn.scorers import make_scorer
from kblrn_pyg.nn.settings import PENALTY_NAMES
from kblrn_pyg.rules import RuleSet, Semantics, ground_rules, mine_rules
from kblrn_pyg.training import fit


def random_data(seed):
    triples, num_entities, num_relations = naive.random_kb(random.Random(seed))
    return as_kb(triples, num_entities, num_relations)


@pytest.fixture(scope="module")
def data():
    return random_data(10)


def triples_of(data):
    return {tuple(t) for t in torch.stack(flat_triples(data), dim=1).tolist()}


def naive_groundings(data, rules):
    """Tries all entities in place of all variables."""
    facts, nodes = triples_of(data), range(data["entity"].num_nodes)
    semantics, found = rules.semantics, set()

    def fact(code, begin, end):
        begin, end = (end, begin) if code & 1 else (begin, end)
        return begin, code >> 1, end

    for i in range(len(rules)):
        codes = [int(code) for code in rules.steps[i] if code >= 0]
        is_path = len(codes) == 2 and not rules.parallel[i]
        for head in nodes:
            for tail in nodes:
                for middle in nodes if is_path else [None]:
                    if is_path:
                        premise = [
                            fact(codes[0], head, middle),
                            fact(codes[1], middle, tail),
                        ]
                    else:
                        premise = [fact(code, head, tail) for code in codes]
                    if not all(one in facts for one in premise):
                        continue
                    if not semantics.equal_ends and head == tail:
                        continue
                    if not semantics.equal_middle and middle in (head, tail):
                        continue
                    if not semantics.self_loops and any(h == t for h, _, t in premise):
                        continue
                    found.add((i, *premise, (head, int(rules.head[i]), tail)))
    return found


def as_set(groundings):
    columns = groundings.rule, groundings.premise, groundings.conclusion
    return {
        (
            int(rule),
            *(tuple(p) for p in premise.tolist() if p[0] >= 0),
            tuple(conclusion.tolist()),
        )
        for rule, premise, conclusion in zip(*columns)
    }


@pytest.mark.parametrize("seed", [1, 5, 10])
@pytest.mark.parametrize(
    "semantics",
    [{}, {"equal_ends": False}, {"equal_middle": False}, {"self_loops": False}],
    ids=str,
)
def test_groundings_are_those_of_a_search(seed, semantics):
    data = random_data(seed)
    rules = mine_rules(data, parallel=True, max_rules_per_relation=9, **semantics)
    found = ground_rules(data, rules)
    assert as_set(found) == naive_groundings(data, rules)
    assert len(found) == len(as_set(found)) > 0


def test_some_groundings_are_drawn(data, caplog):
    rules = mine_rules(data)
    every = ground_rules(data, rules)
    with caplog.at_level(logging.INFO):
        some = ground_rules(data, rules, max_groundings=50)
    assert f"50 of the {len(every):,} groundings" in caplog.text
    assert as_set(some) < as_set(every)
    assert 20 < len(some) < 50 + len(rules)
    again = ground_rules(data, rules, max_groundings=50)
    assert (again.conclusion == some.conclusion).all()
    assert len(ground_rules(data, rules.select(np.zeros(len(rules), bool)))) == 0


def scorer_of(data, name, reciprocal=False):
    torch.manual_seed(0)
    sizes = data["entity"].num_nodes, len(data.edge_types), 5
    scorer = make_scorer(name, *sizes, reciprocal).double()
    for parameter in scorer.parameters():
        torch.nn.init.normal_(parameter)
    return scorer


def one_step(data):
    """One rule along its relation, and one against it."""
    return RuleSet.build(
        [str(i) for i in range(len(data.edge_types))], head=[0, 2], steps=[[2], [3]]
    )


def score(kge, rel, head, tail):
    """A score by embeddings of entities that are given."""
    if hasattr(kge, "rel_emb_im"):
        factor = torch.complex(kge.rel_emb.weight[rel], kge.rel_emb_im.weight[rel])
        return (factor * head * tail.conj()).sum().real
    return (kge.rel_emb.weight[rel] * head.real * tail.real).sum()


@pytest.mark.parametrize("name", ["distmult", "complex"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_no_entity_violates_rules_more_than_the_closed_form(data, name, reciprocal):
    scorer, size = scorer_of(data, name, reciprocal), len(data.edge_types)
    kge, rules = scorer.kge, one_step(data)
    is_complex, total = name == "complex", 0.0

    def violation(i, head, tail):
        """By how much the body of a rule is above its head, for each side."""
        rel, code = int(rules.head[i]), int(rules.steps[i, 0])
        body, is_against = code >> 1, code & 1
        if not reciprocal:
            ends = (tail, head) if is_against else (head, tail)
            return [score(kge, body, *ends) - score(kge, rel, head, tail)]
        # (head, r, ?) of the body is asked by its relation, or by its inverse one;
        # the same for (?, r, tail), from the other end.
        forth, back = (body + size, body) if is_against else (body, body + size)
        return [
            score(kge, forth, head, tail) - score(kge, rel, head, tail),
            score(kge, back, tail, head) - score(kge, rel + size, tail, head),
        ]

    def unit():
        parts = torch.randn(2, 5, dtype=torch.double)
        vector = torch.complex(parts[0], parts[1] * is_complex)
        return vector / vector.norm()

    with torch.no_grad():
        for i in range(len(rules)):
            alone = ASRPenalty(data, rules.select(np.arange(2) == i))
            worst = float(alone(scorer, 1))
            total += worst
            drawn = [violation(i, unit(), unit()) for _ in range(300)]
            assert max(sum(max(0.0, float(v)) for v in one) for one in drawn) <= worst
            # The worst entities have one entry that is not zero.
            found = [0.0] * (1 + reciprocal)
            phases = torch.linspace(0, 2 * torch.pi, 721 if is_complex else 3)
            turned = torch.polar(torch.ones_like(phases), phases).to(torch.cdouble)
            for k in range(5):
                for phase in turned:
                    head, tail = torch.zeros(2, 5, dtype=torch.cdouble)
                    head[k], tail[k] = phase, 1
                    values = violation(i, head, tail)
                    found = [max(f, float(v)) for f, v in zip(found, values)]
            assert sum(found) == pytest.approx(worst, rel=1e-4)
        assert float(ASRPenalty(data, rules, 3.0)(scorer, 1)) == pytest.approx(
            3 * total
        )


@pytest.mark.parametrize("name", ["transe", "unit-transe"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_kale_is_that_of_a_loop(data, name, reciprocal):
    scorer, size = scorer_of(data, name, reciprocal), len(data.edge_types)
    rules = mine_rules(data, parallel=True, max_rules_per_relation=4)
    penalty = KALEPenalty(data, rules, weight=2.0, margin=0.3)
    premise, conclusion = penalty.groundings
    premise, conclusion = premise[::7], conclusion[::7]
    assert (premise[:, 1, 0] < 0).any()
    assert (premise[:, 1, 0] >= 0).any()
    rows = scorer.table(None).detach()
    moves = scorer.kge.rel_emb.weight.detach()

    def truth(triple, side):
        head, rel, tail = triple
        if reciprocal and side == "head":
            head, rel, tail = tail, rel + size, head
        apart = rows[head] + moves[rel] - rows[tail]
        return 1 - float(apart.abs().sum()) / (3 * 5**0.5)

    torch.manual_seed(7)
    found = penalty.loss(scorer, premise, conclusion)
    torch.manual_seed(7)
    drawn = torch.rand(len(conclusion), dtype=torch.double).tolist()
    losses = []
    for side in ("head", "tail") if reciprocal else ("tail",):
        for body, triple, one in zip(premise.tolist(), conclusion.tolist(), drawn):
            head, rel, tail = triple
            # A fact of the body, or the conclusion, is not what is wrong to follow.
            used = {rel} | {fact[1] for fact in body}
            others = [r for r in range(size) if r not in used]
            other = head, others[int(one * len(others))], tail
            of_body = 1.0
            for one in body:
                if one[0] >= 0:
                    of_body *= max(0.0, truth(one, side))
            true, false = (of_body * (truth(t, side) - 1) + 1 for t in (triple, other))
            losses.append(max(0.0, 0.3 - true + false))
    assert max(losses) > 0
    assert float(found) == pytest.approx(sum(losses) / len(losses))
    torch.manual_seed(3)
    whole = float(penalty(scorer, 50))
    torch.manual_seed(3)
    drawn = torch.randint(len(penalty.groundings[0]), (50,))
    some = penalty.loss(scorer, *(one[drawn] for one in penalty.groundings))
    assert whole == pytest.approx(2 * float(some))


@pytest.mark.parametrize(
    ("name", "penalty", "settings"),
    [
        ("transe", "kale", {}),
        ("unit-transe", "kale", {"reciprocal": True}),
        ("complex", "asr", {}),
        ("distmult", "asr", {"reciprocal": True}),
        ("complex", "asr", {"num_negatives": 9, "negatives": "shared", "sparse": True}),
        ("transe", "kale", {"num_negatives": 9, "negatives": "shared", "sparse": True}),
    ],
)
def test_penalties_are_in_the_loss_and_in_files(
    data, name, penalty, settings, tmp_path
):
    rules = mine_rules(data, max_hops=1 + (penalty == "kale"))
    settings = {"num_negatives": None, **settings}
    values = []
    for weight in (None, 0.0, 2.0):
        torch.manual_seed(0)
        given = {} if weight is None else {"penalty": penalty, "penalty_weight": weight}
        if weight is not None:
            given["rules"] = rules
        model = KBLRN.from_data(data, "l", 6, scorer=name, **settings, **given)
        torch.manual_seed(5)
        values.append(model.loss(*flat_triples(data)))
    if penalty == "asr" or settings["num_negatives"] is None:
        # Otherwise groundings are drawn before entities, which are others then.
        assert float(values[0]) == pytest.approx(float(values[1]))
    assert values[2] > values[1] + 1e-3
    optimizer = "adagrad" if settings.get("sparse") else "adam"
    result = fit(model, data, epochs=4, lr=0.05, validate_every=1, optimizer=optimizer)
    assert result.history[-1]["loss"] < result.history[0]["loss"]
    model.save(tmp_path / "model.pt")
    again = KBLRN.load(tmp_path / "model.pt")
    assert torch.equal(again(*flat_triples(data)), model(*flat_triples(data)))
    kept = again.experts["latent"].rule_penalty
    assert isinstance(kept, PENALTIES[penalty])
    assert (len(kept.rules), kept.weight) == (len(rules), 2.0)


def test_relations_that_could_not_follow():
    """If a grounding has all relations, only that of its conclusion is another."""
    torch.manual_seed(0)
    cases = [((0, -1), 1, 2), ((0, 0), 1, 3), ((2, 3), 0, 4), ((1, 0), 2, 3)]
    for body, rel, size in cases:
        premise = torch.zeros(300, 2, 3, dtype=torch.long)
        premise[..., 1] = torch.tensor(body)
        conclusion = torch.tensor([[5, rel, 6]]).expand(300, 3)
        found = set(_other_relations(premise, conclusion, size).tolist())
        expected = set(range(size)) - {*body, rel}
        assert found == (expected or set(range(size)) - {rel})


def test_rules_are_learned_from_a_penalty_alone():
    """No fact of a relation is known: only the rule tells."""
    facts = [(i, 0, i + 1) for i in range(0, 40, 2)]
    facts += [(i, 2, (i * 7 + 3) % 40) for i in range(40)]
    data = as_kb(facts, 42, 3)
    rules = RuleSet.build(["r0", "r1", "r2"], head=[1], steps=[[0]])
    held_out = torch.tensor([[i, 1, i + 1] for i in range(20, 40, 2)]).t()
    for scorer, penalty, weight in (("transe", "kale", 20.0), ("complex", "asr", 5.0)):
        scores = []
        for given in (
            {},
            {"penalty": penalty, "penalty_weight": weight, "rules": rules},
        ):
            torch.manual_seed(0)
            model = KBLRN.from_data(
                data, "l", 8, scorer=scorer, num_negatives=None, **given
            )
            fit(model, data, epochs=40, lr=0.05, batch_size=32)
            every = model.score_tails(held_out[0], held_out[1])
            true = every.gather(1, held_out[2][:, None])
            scores.append(float((every > true).sum(dim=1).double().mean()))
        assert scores[1] < scores[0] - 0.5, (scorer, scores)


def test_what_a_penalty_cannot_do_is_said(data):
    assert tuple(PENALTIES) == PENALTY_NAMES
    rules = mine_rules(data)
    for scorer, penalty in (("rescal", "asr"), ("rotate", "asr"), ("distmult", "kale")):
        with pytest.raises(ValueError, match=f"'penalty' must not be {penalty} for sc"):
            KBLRN.from_data(data, "l", 4, scorer=scorer, penalty=penalty, rules=rules)
    with pytest.raises(ValueError, match="'penalty' must be kale or asr"):
        KBLRN.from_data(data, "l", 4, penalty="fuzzy")
    with pytest.warns(
        UserWarning, match=r"rules are not in the penalty: only bodies of"
    ):
        KBLRN.from_data(data, "l", 4, penalty="asr", rules=rules)
    long = rules.select(rules.num_steps == 2)
    with pytest.raises(ValueError, match="'rules' must have bodies of one step"):
        KBLRN.from_data(data, "l", 4, penalty="asr", rules=long)
    with pytest.warns(
        UserWarning, match="'penalty_weight' has no effect without a pen"
    ):
        KBLRN.from_data(data, "l", 4, penalty_weight=2.0)
    with pytest.warns(
        UserWarning, match="'penalty' has no effect without the expert l"
    ):
        KBLRN.from_data(data, "r", penalty="asr", rules=rules)
    empty = as_kb([(0, 0, 1)], 3, 2)
    rule = RuleSet.build(["r0", "r1"], head=[0], steps=[[2]])
    model = KBLRN.from_data(empty, "l", 4, scorer="transe", penalty="kale", rules=rule)
    with pytest.warns(
        UserWarning, match="the penalty adds nothing: no rule has a known"
    ):
        model.loss(*flat_triples(empty))


@pytest.mark.parametrize(
    ("scorer", "penalty"), [("transe", "kale"), ("complex", "asr")]
)
def test_a_penalty_needs_rules(scorer, penalty):
    data = as_kb([(0, 0, 1), (2, 1, 3)], 4, 2)  # from which nothing is mined
    given = {"scorer": scorer, "penalty": penalty}
    with pytest.raises(ValueError, match="'rules' must contain a rule for a penalty"):
        KBLRN.from_data(data, "l", 4, **given)
    rules = mine_rules(data)
    with pytest.raises(ValueError, match="'rules' must contain a rule for a penalty"):
        KBLRN.from_data(data, "l", 4, rules=rules, **given)


def test_mined_rules_are_the_default():
    train = load_dataset("Families")["train"]
    model = KBLRN.from_data(train, "l", 4, scorer="transe", penalty="kale")
    penalty = model.experts["latent"].rule_penalty
    assert len(penalty.rules) == len(mine_rules(train, confidences=False))
    assert penalty.rules.semantics == Semantics()
