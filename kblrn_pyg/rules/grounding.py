"""Ground rules, with entities in place of variables."""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import HeteroData

from kblrn_pyg.rules.ruleset import RuleSet

logger = logging.getLogger(__name__)

Ids = NDArray[np.int64]

# The largest number of steps of a body that is grounded.
_MAX_STEPS = 2


@dataclass(frozen=True)
class Groundings:
    r"""Rules whose bodies are known facts.

    Args:
        rule (numpy.ndarray): The rule of each.
        premise (numpy.ndarray): The facts of each body, :obj:`[number, 2, 3]`; the
            second one is -1 for bodies of one step.
        conclusion (numpy.ndarray): The conclusion, :obj:`[number, 3]`.
    """

    rule: Ids
    premise: Ids
    conclusion: Ids

    def __len__(self) -> int:
        return len(self.rule)


def ground_rules(
    data: HeteroData, rules: RuleSet, max_groundings: int = 1_000_000
) -> Groundings:
    r"""Substitutes entities for the variables of rules, so that all facts of their
    bodies are known; the conclusions may be known or not.

    Bodies of more than two steps are left out.

    Args:
        data (HeteroData): The knowledge base.
        rules (RuleSet): The rules.
        max_groundings (int, optional): If there are more groundings, about this
            number of them is sampled, the same ones in every run.
            (default: :obj:`1_000_000`)
    """
    if not max_groundings >= 1:
        raise ValueError(f"'max_groundings' must be at least 1 (got {max_groundings})")
    facts = [_facts(data[one].edge_index.numpy(), rules) for one in data.edge_types]
    usable = [i for i in range(len(rules)) if rules.num_steps[i] <= _MAX_STEPS]
    joined = {i: _Body(facts, rules, i) for i in usable}
    total = sum(one.size for one in joined.values())
    share = min(1.0, max_groundings / max(total, 1))
    if share < 1:
        logger.info(
            f"{max_groundings:,} of the {total:,} groundings of rules are drawn"
        )
    rng, found = np.random.default_rng(0), [_nothing()]
    for i, body in joined.items():
        places = np.arange(body.size)
        if share < 1:
            number = int(np.ceil(share * body.size))
            places = np.unique(rng.integers(body.size, size=number))
        found.append(_ground(rules, i, *body.pick(places)))
    columns = zip(*((one.rule, one.premise, one.conclusion) for one in found))
    return Groundings(*map(np.concatenate, columns))


def _nothing() -> Groundings:
    shapes = (0,), (0, 2, 3), (0, 3)
    return Groundings(*(np.empty(shape, np.int64) for shape in shapes))


def _facts(edge_index: Ids, rules: RuleSet) -> Ids:
    """Returns the distinct facts that bodies may use."""
    edge_index = np.unique(edge_index, axis=1)
    if rules.semantics.self_loops:
        return edge_index
    return edge_index[:, edge_index[0] != edge_index[1]]


class _Body:
    """The pairs of facts that form a body, created on demand because there may be
    very many."""

    def __init__(self, facts: list[Ids], rules: RuleSet, i: int) -> None:
        first, *others = (_pairs(facts, int(code)) for code in _codes(rules, i))
        self.first, self.second, self.is_parallel = first, None, bool(rules.parallel[i])
        if others and self.is_parallel:
            size = 1 + max(int(pairs.max(initial=0)) for pairs in (first, *others))
            keys = [pairs[0] * size + pairs[1] for pairs in (first, *others)]
            self.first = first[:, np.isin(keys[0], keys[1])]
        elif others:
            self.second = others[0][:, np.argsort(others[0][0], kind="stable")]
            bounds = [
                np.searchsorted(self.second[0], first[1], side)
                for side in ("left", "right")
            ]
            self.begin = bounds[0]
            self.end = np.cumsum(bounds[1] - bounds[0])
        last = self.end[-1:].sum() if self.second is not None else self.first.shape[1]
        self.size = int(last)

    def pick(self, places: Ids) -> tuple[Ids, Ids, Ids]:
        """Returns heads, middles and tails; without a middle, it is the tail."""
        if self.second is None:
            head, tail = self.first[:, places]
            return head, tail, tail
        row = np.searchsorted(self.end, places, "right")
        begin_of_row = np.concatenate([[0], self.end])[row]
        head, middle = self.first[:, row]
        tail = self.second[1, self.begin[row] + places - begin_of_row]
        return head, middle, tail


def _codes(rules: RuleSet, i: int) -> Ids:
    return rules.steps[i, : rules.num_steps[i]]


def _pairs(facts: list[Ids], code: int) -> Ids:
    """Returns where a step begins and where it ends."""
    edges = facts[code >> 1]
    return edges[::-1] if code & 1 else edges


def _ground(rules: RuleSet, i: int, head: Ids, middle: Ids, tail: Ids) -> Groundings:
    """Creates triples of entities that the semantics of the rules allows."""
    semantics, codes = rules.semantics, _codes(rules, i)
    is_path = len(codes) == _MAX_STEPS and not rules.parallel[i]
    keep = np.ones(len(head), bool)
    if not semantics.equal_ends:
        keep &= head != tail
    if not semantics.equal_middle and is_path:
        keep &= (middle != head) & (middle != tail)
    head, middle, tail = head[keep], middle[keep], tail[keep]
    premise = np.full((len(head), _MAX_STEPS, 3), -1)
    ends = [(head, middle), (middle, tail)] if is_path else [(head, tail)] * 2
    for step, (code, (begin, end)) in enumerate(zip(codes, ends)):
        begin, end = (end, begin) if code & 1 else (begin, end)
        premise[:, step] = np.stack([begin, np.full_like(begin, code >> 1), end], 1)
    relation = np.full_like(head, rules.head[i])
    conclusion = np.stack([head, relation, tail], axis=1)
    return Groundings(np.full_like(head, i), premise, conclusion)
