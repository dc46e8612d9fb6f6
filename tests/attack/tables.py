"""Attacks on what is not a model and takes ids: facts, ranks, names, files, the page.

Each call takes one id. If that exists, it must be answered; else it must be refused by
a ValueError, never be answered for another one, as -1 is the last one in Python.
"""

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import torch
from attack.ids import BAD, NUM_NODES, NUM_RELATIONS, small_kb, small_model, small_rules
from hypothesis import strategies as st

import kblrn_pyg
from kblrn_pyg import data as kbs
from kblrn_pyg import evaluation, explain, predict
from kblrn_pyg.app import Engine
from kblrn_pyg.app.engine import Query
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.loader import TripleLoader
from kblrn_pyg.nn.calibration import Calibration
from kblrn_pyg.rules import body_text, constant_rule_text, mine_constants, rule_text

Call = Callable[[Any], Any]


def _one(i: Any) -> Any:
    return np.array([i])


def _zero() -> Any:
    return np.zeros(1, np.int64)


def _queries(entity: Any, relation: Any, side: str = "tail") -> Queries:
    return Queries(torch.tensor([entity]), torch.tensor([relation]), side)


def _triples(head: Any, rel: Any, tail: Any) -> Any:
    names = [f"e{i}" for i in range(NUM_NODES)]
    return kbs.NamedTriples(names, ["a", "b", "c"], *map(_one, (head, rel, tail)))


def _values(entity: Any, attribute: Any) -> Any:
    names = [f"e{i}" for i in range(NUM_NODES)]
    ids = _one(entity), _one(attribute)
    return kbs.NamedValues(names, ["born", "height"], *ids, np.ones(1))


def _ranks(relation: Any, side: Any) -> Any:
    ids = _one(relation), _one(side), _zero(), _zero()
    one = np.ones(1, np.int64)
    return evaluation.RankTable(["a", "b", "c"], *ids, one.astype(float), 5 * one, one)


def _flat(*ids: Any) -> Any:
    return tuple(torch.tensor([i]) for i in ids)


@cache
def calls() -> dict[str, tuple[int, Call]]:
    """Returns each call, and how many of the ids that it takes exist."""
    kb, model, rules = small_kb(), small_model("lrne", "all"), small_rules()
    facts, names = kbs.KnownFacts(kb), kbs.Vocabulary.of(kb)
    engine, first = Engine(model), Query(0, 0, "tail")
    columns = torch.ones(NUM_RELATIONS), torch.zeros(NUM_RELATIONS)
    calibration = Calibration(*columns, torch.ones(NUM_RELATIONS, dtype=torch.long))
    observed = kbs.Candidates(kb, "observed")
    layers, radial = kbs.layer_features(kb, 0.1), kbs.numerical_features(kb, 0.1)
    intervals = kbs.Intervals(["a"], np.array([0, 2]), *np.array([[0, 1], [1, 2.0]]))
    row, constants = np.zeros((1, NUM_NODES)), mine_constants(kb, min_support=1)
    experts = model.experts
    entity: dict[str, Call] = {
        "KnownFacts.answers": lambda i: facts.answers(_queries(i, 0)),
        "KnownFacts.contains": lambda i: facts.contains(_one(i), _zero(), _zero()),
        "KnownFacts.contains tail": lambda i: facts.contains(_zero(), _zero(), _one(i)),
        "Engine.answers": lambda i: engine.answers(Query(i, 0, "head"), 3),
        "Engine.rows": lambda i: engine.rows(Query(i, 0, "tail")),
        "Engine.known_answers": lambda i: engine.known_answers(Query(i, 0, "tail")),
        "Engine.standing": lambda i: engine.standing(first, i),
        "Engine.parts": lambda i: engine.parts(first, i),
        "triple_scores": lambda i: evaluation.triple_scores(
            model, _one(i), _zero(), _zero()
        ),
        "expert_scores": lambda i: evaluation.expert_scores(
            model, _zero(), _zero(), _one(i)
        ),
        "KBLRN.score_experts": lambda i: model.score_experts(*_flat(0, 0, i)),
        "KBLRN.predict_tails": lambda i: model.predict_tails(i, 0),
        "predict_tails": lambda i: predict.predict_tails(model, [0, i], [0, 1]),
        "KBLRN.explain": lambda i: model.explain(0, 0, i),
        "explain": lambda i: explain.explain(model, i, 0, 0),
        "query_auc": lambda i: evaluation.query_auc(model, kb, 0, head=i, answers=[0]),
        "query_auc answers": lambda i: evaluation.query_auc(
            model, kb, 0, tail=0, answers=[i]
        ),
        "rank_one_query": lambda i: evaluation.rank_one_query(row, _one(i), _zero()),
        "rank_one_query known": lambda i: evaluation.rank_one_query(
            row, _zero(), _one(i)
        ),
        "score_rows": lambda i: evaluation.score_rows(
            model, _queries(i, 0), ["a", "b", "c"]
        ),
        "Names.unique": names.entities.unique,
        "Names.find": names.entities.find,
        "ask": lambda i: kbs.ask(kb, _flat(i, 0, 0)),
        "make_kb": lambda i: kbs.make_kb(
            kb["entity"].name, ["a", "b", "c"], _flat(0, 0, i)
        ),
        "update_kb": lambda i: kbs.update_kb(kb, _triples(0, 0, i)),
        "update_kb values": lambda i: kbs.update_kb(kb, values=_values(i, 0)),
        "build_kb": lambda i: kbs.build_kb({"train": _triples(i, 0, 0)}),
    }
    relation: dict[str, Call] = {
        "KnownFacts.answers relation": lambda i: facts.answers(_queries(0, i, "head")),
        "KnownFacts.contains relation": lambda i: facts.contains(
            _zero(), _one(i), _zero()
        ),
        "Engine.answers relation": lambda i: engine.answers(Query(0, i, "head"), 3),
        "Engine.parts relation": lambda i: engine.parts(Query(0, i, "head"), 3),
        "Calibration.probability": lambda i: calibration.probability(
            torch.zeros(1), torch.tensor([i])
        ),
        "Candidates.of": lambda i: observed.of(i, "head"),
        "Candidates.mask": lambda i: observed.mask(i, "tail"),
        "KBLRN.predict_heads": lambda i: model.predict_heads(i, 0),
        "predict_heads": lambda i: predict.predict_heads(model, i, 0),
        "KBLRN.explain relation": lambda i: model.explain(0, i, 0),
        "complete": lambda i: predict.complete(model, k=2, relations=[i]),
        "evaluate": lambda i: evaluation.evaluate(model, kb, relations=[i]),
        "query_auc relation": lambda i: evaluation.query_auc(
            model, kb, i, head=0, answers=[0]
        ),
        "mean_lifts": lambda i: explain.mean_lifts(model, kb, i),
        "differences": lambda i: kbs.differences(kb, i, 0),
        "LayerFeatures.of": layers.of,
        "NumericalFeatures.of": radial.of,
        "RuleSet.of": rules.of,
        "ConstantRuleSet.of": constants.of,
        "FeatureExpert.speaks_of": experts["relational"].speaks_of,
        "ask relation": lambda i: kbs.ask(kb, _flat(0, i, 0)),
        "update_kb relation": lambda i: kbs.update_kb(kb, _triples(0, i, 0)),
        "RankTable.mask": lambda i: _ranks(0, 0).mask([i]),
        "RankTable.select": lambda i: _ranks(0, 0).select([i]),
        "RankTable relation": lambda i: _ranks(i, 0),
    }
    others: dict[str, tuple[int, Call]] = {
        "differences attribute": (2, lambda i: kbs.differences(kb, 0, i)),
        "Intervals.around": (1, lambda i: intervals.around(i, 0)),
        "Intervals.around interval": (2, lambda i: intervals.around(0, i)),
        "RankTable side": (len(SIDES), lambda i: _ranks(0, i)),
        "update_kb attribute": (2, lambda i: kbs.update_kb(kb, values=_values(0, i))),
        "rule_text": (len(rules), lambda i: rule_text(rules, i)),
        "body_text": (len(rules), lambda i: body_text(rules, i)),
        "constant_rule_text": (
            len(constants),
            lambda i: constant_rule_text(constants, i),
        ),
    }
    return (
        {name: (NUM_NODES, call) for name, call in entity.items()}
        | {name: (NUM_RELATIONS, call) for name, call in relation.items()}
        | others
    )


def attack_tables(data: st.DataObject) -> str:
    """Calls methods with ids that exist, and with others."""
    name = data.draw(st.sampled_from(tuple(calls())))
    number, call = calls()[name]
    # Where -1 has a meaning of its own, it is not wrong.
    wrong = [i for i in (*BAD, number, 0.5) if not 0 <= i < number or i == 0.5]
    if name == "Intervals.around interval":
        wrong.remove(-1)
    if data.draw(st.booleans()):
        call(data.draw(st.integers(0, number - 1)))
        return "answered"
    given = data.draw(st.sampled_from(wrong))
    try:
        call(given)
    except ValueError as error:
        assert "must" in str(error), f"{name} of {given}: {error}"
        return "refused"
    raise AssertionError(f"{name} of {given} was answered")


def attack_columns(data: st.DataObject) -> str:
    """Makes batches of columns that are of different lengths, types or shapes."""
    columns = []
    for _ in range(3):
        made = torch.arange(data.draw(st.integers(2, 3)))
        change = data.draw(st.sampled_from(_CHANGES))
        columns.append(change(made))
    is_right = all(
        isinstance(one, torch.Tensor)
        and one.shape == columns[0].shape == (len(one),)
        and not one.is_floating_point()
        and not one.is_sparse
        for one in columns
        if isinstance(columns[0], torch.Tensor) and columns[0].dim()
    ) and isinstance(columns[0], torch.Tensor)
    try:
        list(TripleLoader(*columns, batch_size=2))
    except ValueError as error:
        assert not is_right, error
        return "refused"
    assert is_right
    return "answered"


_CHANGES: tuple[Call, ...] = (
    lambda ids: ids,
    lambda ids: ids,
    lambda ids: ids,
    lambda ids: ids.double(),
    lambda ids: ids[:, None],
    lambda ids: ids.tolist(),
    lambda ids: ids.to_sparse(),
    lambda ids: ids.int(),
    lambda ids: None,
)

# What parameters that take ids are called.
_ID_NAMES = {"attribute", "answer", "entity", "head", "head_index", "interval", "query"}
_ID_NAMES |= {"queries", "rel", "rel_type", "relation", "rule", "tail", "tail_index"}


def takers_of_ids() -> Iterator[str]:
    """Finds the public functions and methods that take ids, by walking packages."""
    for found in pkgutil.walk_packages(kblrn_pyg.__path__, "kblrn_pyg."):
        if not found.ispkg:
            continue
        module = import_module(found.name)
        for name in getattr(module, "__all__", ()):
            public = getattr(module, name)
            several = [public]
            if inspect.isclass(public):
                several = [
                    one
                    for key, one in inspect.getmembers(public, inspect.isroutine)
                    if not key.startswith("_")
                ]
            for one in several:
                where = getattr(one, "__module__", None) or ""
                if not where.startswith("kblrn_pyg") or not inspect.isroutine(one):
                    continue
                if _ID_NAMES & set(inspect.signature(one).parameters):
                    yield one.__qualname__
