"""The bodies of rules as paths through the facts of a knowledge base."""

import numpy as np
from torch_geometric.data import Data, HeteroData

from kblrn_pyg.data import DataError, as_kb, flat_triples
from kblrn_pyg.data.ids import check_id, check_ids
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.data.queries import SIDES
from kblrn_pyg.kernels.adjacency import Adjacency, build_adjacency
from kblrn_pyg.kernels.holding import NO_FACT, holds, last_steps, middles
from kblrn_pyg.kernels.walking import Bodies, Paths, first_steps
from kblrn_pyg.rules.columns import Ids
from kblrn_pyg.rules.measure import reverse_steps
from kblrn_pyg.rules.ruleset import RuleSet


class RulePaths:
    r"""The bodies of rules as paths, which hold according to the :obj:`semantics`
    of the rules.

    Args:
        data (HeteroData or Data): The knowledge base, or what :meth:`as_kb`
            makes one of.
        rules (RuleSet): The rules.
    """

    def __init__(self, data: HeteroData | Data, rules: RuleSet) -> None:
        data = as_kb(data)
        relations = relation_names(data)
        rules.check_relations(relations)
        if rules.max_hops > 2:
            raise DataError(f"bodies must have at most 2 steps (got {rules.max_hops})")
        self.rules = rules
        self.num_entities = int(data["entity"].num_nodes)
        head, rel, tail = (index.numpy() for index in flat_triples(data))
        self._facts = head, rel, tail
        self.adjacency = self._build(rules.semantics.self_loops)
        # By the side that is asked for: tails are reached from heads.
        steps = {
            "head": reverse_steps(rules.steps, rules.parallel),
            "tail": rules.steps,
        }
        self._paths = {
            side: Paths(self.adjacency, _bodies(rules, steps[side])) for side in SIDES
        }

    @property
    def all_facts(self) -> Adjacency:
        """The facts of the knowledge base, even if bodies may not use self-loops."""
        return self.adjacency if self.rules.semantics.self_loops else self._build(True)

    def holds(self, rule: int, head: int, tail: int) -> bool:
        r"""Returns whether the body of a rule holds for a pair.

        Args:
            rule (int): The rule, by its position in the rule set.
            head (int): The head.
            tail (int): The tail.
        """
        rule = check_id(rule, "rule", len(self.rules))
        head = check_id(head, "head", self.num_entities)
        tail = check_id(tail, "tail", self.num_entities)
        given = (self._paths["tail"], rule, head, tail)
        return bool(holds(*given, NO_FACT, np.empty(1, np.int64)))

    def middles(self, rule: int, head: int, tail: int, limit: int | None = None) -> Ids:
        r"""Returns the entities in the middle of a two-hop body that holds.

        Args:
            rule (int): The rule, by its position in the rule set.
            head (int): The head.
            tail (int): The tail.
            limit (int, optional): The maximum number of them.
                (default: :obj:`None`, all)
        """
        if not self.holds(rule, head, tail):
            return np.empty(0, np.int64)
        paths = self._paths["tail"]
        if paths.bodies.second[rule] < 0 or paths.bodies.parallel[rule]:
            return np.empty(0, np.int64)
        limit = self.num_entities if limit is None else min(limit, self.num_entities)
        out = np.empty(limit, np.int64)
        rule, head, tail = int(rule), int(head), int(tail)
        groups = first_steps(*paths, rule, head), last_steps(*paths, rule, tail)
        count = middles(paths, rule, head, tail, groups, NO_FACT, out)
        return out[:count]

    def check_ids(self, rel: Ids, **entities: Ids) -> None:
        r"""Refuses ids that do not exist.

        Args:
            rel (numpy.ndarray): Relations.
            **entities (numpy.ndarray): As many entities, by The name in error messages.
        """
        kinds = {kind: (ids, self.num_entities) for kind, ids in entities.items()}
        check_ids({"relations": (rel, len(self.rules.relations)), **kinds})

    def _build(self, self_loops: bool) -> Adjacency:
        num_relations = len(self.rules.relations)
        return build_adjacency(
            *self._facts, self.num_entities, num_relations, self_loops
        )


def _bodies(rules: RuleSet, steps: Ids) -> Bodies:
    second = steps[:, 1] if rules.max_hops > 1 else np.full(len(rules), -1)
    return Bodies(
        rules.ptr,
        np.ascontiguousarray(steps[:, 0]),
        np.ascontiguousarray(second),
        rules.parallel,
        rules.semantics.choices,
    )
