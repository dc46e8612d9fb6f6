"""Attacks on methods that take ids: wrong ones, too many, of other types and shapes.

What is wrong is known by the way it was drawn: it must be refused by a ValueError,
and all else must be answered as the triples one by one are.
"""

from functools import cache
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from kblrn_pyg.data import make_kb
from kblrn_pyg.data.queries import SIDES, Queries
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.rules import RuleSet, mine_rules

NUM_NODES, NUM_RELATIONS = 9, 3
# The experts of each model, and the settings that they are made with.
EXPERTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{letters: (letters, {}) for letters in ("l", "r", "n", "e", "lrne")},
    "layers": ("n", {"numerical": "layer"}),
    "signs": ("rn", {"numerical": "sign"}),
    "kinds": ("re", {"evidence_kinds": True, "evidence_bins": 2}),
    "reciprocal": ("ln", {"reciprocal": True, "scorer": "complex"}),
    "sparse": ("ln", {"sparse": True, "numerical": "layer"}),
    "transe": ("l", {"scorer": "transe"}),
}
LOSSES: dict[str, dict[str, Any]] = {
    "all": {"num_negatives": None},
    "sampled": {"num_negatives": 20},
    "shared": {"num_negatives": 4, "negatives": "shared"},
}
BAD = (-1, -2, NUM_NODES, NUM_NODES + 1, 10**6, 10**9, 2**31, -(2**62), 2**62)


@cache
def small_kb():
    drawn = torch.Generator().manual_seed(0)
    ids = [torch.randint(size, (60,), generator=drawn) for size in (9, 3, 9)]
    x = torch.randn(NUM_NODES, 2, generator=drawn, dtype=torch.double)
    x[0, 0] = torch.nan
    names = [f"e{i}" for i in range(NUM_NODES)]
    triples = torch.stack(ids).unique(dim=1)
    return make_kb(names, ["a", "b", "c"], tuple(triples), x, ["born", "height"])


@cache
def small_rules() -> RuleSet:
    return mine_rules(small_kb(), min_support=1)


@cache
def small_model(experts: str, loss: str) -> KBLRN:
    torch.manual_seed(1)
    letters, made = EXPERTS[experts]
    rules = small_rules() if set("re") & set(letters) else None
    size = {"hidden_channels": 4} if "l" in letters else {}
    made = {**made, **size, **LOSSES[loss]}
    made |= {"threshold": 0.1} if "n" in letters else {}
    if made.get("sparse") and made["num_negatives"] is None:
        made["num_negatives"] = 20  # the loss over all entities is not sparse
    return KBLRN.from_data(small_kb(), letters, rules=rules, **made).eval()


class Column:
    """A column of ids, and whether something is wrong with it."""

    def __init__(self, data: st.DataObject, number: int, size: int) -> None:
        good = st.integers(0, number - 1)
        ids = data.draw(st.lists(good, min_size=size, max_size=size))
        wrong = ["id", "float", "narrow", "dims", "length", "list", "none", "sparse"]
        self.wrong = data.draw(st.sampled_from(["", "", "", *wrong]))
        if self.wrong == "id" and size:
            too_large = [number, *(i for i in BAD if not 0 <= i < number)]
            ids[data.draw(st.integers(0, size - 1))] = data.draw(
                st.sampled_from(too_large)
            )
        elif self.wrong == "id":
            self.wrong = ""
        if self.wrong == "length":  # which matters beside other columns only
            ids, self.wrong = ids + ids[:1] if ids else [0], ""
        self.size = len(ids)
        self.ids: Any = self._shaped(torch.tensor(ids, dtype=torch.long))

    def _shaped(self, ids: Tensor) -> Any:
        return {
            "float": ids.double,
            "narrow": ids.int,
            "dims": lambda: ids[:, None],
            "list": ids.tolist,
            "none": lambda: None,
            "sparse": ids.to_sparse,
        }.get(self.wrong, lambda: ids)()


def _draw_columns(data: st.DataObject) -> tuple[Column, Column, Column]:
    size = data.draw(st.integers(0, 4))
    sizes = (NUM_NODES, NUM_RELATIONS, NUM_NODES)
    head, rel, tail = (Column(data, number, size) for number in sizes)
    return head, rel, tail


def _differ(*columns: Column) -> bool:
    sizes = {column.size for column in columns}
    return len(sizes) > 1 or any(column.wrong for column in columns)


def _refused(call: Any, is_wrong: bool) -> Any:
    """Returns what a call answers, or None if it was rightly refused."""
    try:
        found = call()
    except ValueError as error:
        assert is_wrong, f"refused: {error}"
        assert "must" in str(error)
        return None
    assert not is_wrong, "was answered"
    return found


def attack_models(data: st.DataObject) -> str:
    """Calls the public methods of models."""
    experts = data.draw(st.sampled_from(tuple(EXPERTS)))
    model = small_model(experts, data.draw(st.sampled_from(tuple(LOSSES))))
    head, rel, tail = columns = _draw_columns(data)
    h, r, t = (column.ids for column in columns)
    side = data.draw(st.sampled_from(SIDES))
    known, answer = (head, tail) if side == "tail" else (tail, head)
    is_wrong = _differ(*columns)
    queries = Queries(known.ids, r, side)
    width = None
    method = data.draw(st.sampled_from(METHODS))
    if method in ("loss", "test"):
        is_wrong |= head.size == 0
        call = {
            "loss": lambda: model.loss(h, r, t, data.draw(st.sampled_from(SIDES))),
            "test": lambda: model.test(h, r, t, 1),
        }[method]
    elif method in ("score_all", "entities"):
        is_wrong = _differ(known, rel)
        entities = None
        if method == "entities":
            column = Column(data, NUM_NODES, data.draw(st.integers(1, 4)))
            entities = column.ids
            repeats = isinstance(entities, Tensor) and entities.numel() > len(
                set(entities.to_dense().flatten().tolist())
            )
            is_wrong |= repeats or column.wrong not in ("", "none")
            width = 0 if is_wrong or entities is None else len(entities)
        call = lambda: model.score_all(queries, entities)  # noqa: E731
    elif method in ("score_tails", "score_heads"):
        is_wrong = _differ(rel, head if method == "score_tails" else tail)
        call = {
            "score_tails": lambda: model.score_tails(h, r),
            "score_heads": lambda: model.score_heads(r, t),
        }[method]
    else:
        candidates = answer.ids
        if answer.wrong in ("", "id", "float", "narrow"):
            candidates = candidates[:, None]
        call = {
            "forward": lambda: model(h, r, t),
            "own_evidence": lambda: model.own_evidence(h, r, t),
            "score_answers": lambda: model.score_answers(queries, answer.ids),
            "score_candidates": lambda: model.score_candidates(queries, candidates),
            "loader": lambda: len(list(model.loader(h, r, t, batch_size=2))),
        }[method]
        if method == "score_candidates" and answer.wrong == "dims":
            is_wrong = _differ(known, rel) or answer.size != rel.size
    with torch.no_grad():
        found = _refused(call, is_wrong)
    if found is None:
        return "refused"
    if isinstance(found, Tensor):
        assert found.isfinite().all()
        assert found.dim() < 2 or found.size(0) == rel.size
        assert not width or found.size(1) == width
    return "answered"


METHODS = (
    "forward",
    "own_evidence",
    "loss",
    "test",
    "loader",
    "score_all",
    "entities",
    "score_tails",
    "score_heads",
    "score_answers",
    "score_candidates",
)


def attack_experts(data: st.DataObject) -> str:
    """Calls the methods of experts, which a model would call with checked ids."""
    model = small_model(data.draw(st.sampled_from(tuple(EXPERTS))), "all")
    name = data.draw(st.sampled_from(tuple(model.experts)))
    expert: Any = model.experts[name]
    h, r, t = (column.ids for column in _draw_columns(data))
    side = data.draw(st.sampled_from(SIDES))
    known, answer = (h, t) if side == "tail" else (t, h)
    queries = Queries(known, r, side)
    rows, width = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 12))
    entities = data.draw(st.sampled_from([None, answer]))
    few = data.draw(st.lists(st.sampled_from([0, 1, *BAD]), min_size=3, max_size=3))
    many = torch.tensor([few * 30] * len(r)) if isinstance(r, Tensor) else answer
    method = data.draw(st.sampled_from(range(8)))
    try:
        with torch.no_grad():
            (
                lambda: expert(h, r, t),
                lambda: expert.score_candidates(queries, answer[:, None]),
                lambda: expert.score_candidates(queries, many),
                lambda: expert.score_answers(queries, answer),
                lambda: expert.score_all(queries, width, entities),
                lambda: expert.add_to(torch.zeros(rows, width), queries, entities),
                lambda: expert.own_evidence(h, r, t),
                lambda: expert.parts(*few, side),
            )[method]()
    except Exception as error:  # of torch, too; what matters is that none crashes
        return f"refused by {type(error).__name__}"
    return "answered"


def attack_features(data: st.DataObject) -> str:
    """Calls the methods of features, which are arrays in and arrays out."""
    model = small_model(data.draw(st.sampled_from(["lrne", "kinds"])), "all")
    evidence: Any = model.experts["evidence"].features
    paths: Any = model.experts["relational"].features
    columns = _draw_columns(data)
    h, r, t = (
        c.ids.to_dense().numpy() if isinstance(c.ids, Tensor) else c.ids
        for c in columns
    )
    side = data.draw(st.sampled_from([*SIDES, "both"]))
    rule, head, tail, rel = (
        data.draw(st.sampled_from([0, 1, 2, *BAD])) for _ in range(4)
    )
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 12)))
    scores = np.zeros(shape)
    weight = np.zeros(data.draw(st.sampled_from([0, 1, len(paths.rules)])))
    some = None if h is None else np.asarray(h).reshape(len(h), 1)
    calls = (
        lambda: paths.pairs(h, r, t, data.draw(st.booleans())),
        lambda: paths.tails(h, r),
        lambda: paths.heads(r, t),
        lambda: paths.reached(side, h, r),
        lambda: paths.reached_columns(side, h, r, t),
        lambda: paths.add_scores(side, h, r, weight, scores),
        lambda: paths.weight_gradient(side, h, r, scores),
        lambda: paths.add_to_columns(side, h, r, t, weight, scores),
        lambda: paths.own_evidence(h, r, t),
        lambda: paths.middles(rule, head, tail),
        lambda: paths.holds(rule, head, tail),
        lambda: evidence.pairs(h, r, t, data.draw(st.booleans())),
        lambda: evidence.own(h, r, t),
        lambda: evidence.queries(side, h, r, t),
        lambda: evidence.candidates(side, t, r, some),
        lambda: evidence.usual(side, t, r, some),
        lambda: evidence.best_rule(side, head, rel, tail),
        lambda: evidence.best_path(head, rel, tail),
    )
    try:
        data.draw(st.sampled_from(calls))()
    except (ValueError, TypeError, AttributeError) as error:
        return f"refused by {type(error).__name__}"
    return "answered"
