"""Mines the rules of a knowledge base."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch_geometric.data import Data, HeteroData
from torch_geometric.transforms import BaseTransform

from kblrn_pyg.data import as_kb, flat_triples
from kblrn_pyg.data.names import relation_names
from kblrn_pyg.kernels.adjacency import Adjacency, build_adjacency
from kblrn_pyg.kernels.mining import (
    Scratch,
    direct_supports,
    new_scratch,
    order_facts,
    path_supports,
)
from kblrn_pyg.kernels.threads import run_all
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.rules.columns import UNKNOWN, Ids
from kblrn_pyg.rules.measure import measure_bodies
from kblrn_pyg.rules.ruleset import RuleSet, join
from kblrn_pyg.rules.semantics import Semantics
from kblrn_pyg.rules.settings import MAX_BODY_PAIRS, MineSettings
from kblrn_pyg.shard import num_processes, process_rank, told_all

# Bodies are counted in a table of pairs of codes, which has at most this size.
_MAX_TABLE = 1 << 24


def mine_rules(
    data: HeteroData | Data,
    max_hops: int = 2,
    min_head_coverage: float = 0.01,
    min_support: int = 1,
    min_confidence: float = 0.0,
    min_pca_confidence: float = 0.0,
    max_rules_per_relation: int | None = None,
    parallel: bool = False,
    skyline: bool = False,
    confidences: bool = True,
    max_body_pairs: int = MAX_BODY_PAIRS,
    equal_ends: bool = True,
    equal_middle: bool = True,
    self_loops: bool = True,
    head_in_body: bool = True,
    num_threads: int | None = None,
    progress: bool = False,
) -> RuleSet:
    r"""Mines the path rules of a knowledge base from its known triples.

    For a relation :math:`r`, a body is a path of one step, :math:`a(h, t)` or
    :math:`a(t, h)`, or of two, :math:`a(h, x) \wedge b(x, t)` in all four
    orientations, and, if :obj:`parallel`, two steps :math:`a(h, t) \wedge
    b(h, t)` in either direction of each. The measures are those of `"Fast
    Rule Mining in Ontological Knowledge Bases with AMIE+"
    <https://doi.org/10.1007/s00778-015-0394-1>`_:

    * *support*: the distinct pairs :math:`(h, t)` of :math:`r` for which the body
      holds, regardless of the number of middles :math:`x`;
    * *head coverage*: support divided by the facts of :math:`r`;
    * *standard confidence*: support divided by the distinct pairs for which
      the body holds;
    * *PCA confidence*: the same, but only pairs count whose :math:`h` has a
      fact of :math:`r`, or, if :math:`r` has fewer distinct heads than tails,
      whose :math:`t` has one.

    Repeated triples count once. :math:`r(h, t)` is never a body of :math:`r`, nor
    one of the steps of a parallel body. :obj:`equal_ends`, :obj:`equal_middle`,
    :obj:`self_loops` and :obj:`head_in_body` determine what else counts; their
    defaults agree with AMIE. The rule set stores them, so that its bodies are
    evaluated in the same way as they were mined.

    Args:
        data (HeteroData or Data): The knowledge base, or what :meth:`as_kb`
            makes one of.
        max_hops (int, optional): The maximum number of steps, 1 or 2.
            (default: :obj:`2`)
        min_head_coverage (float, optional): The minimum head coverage.
            (default: :obj:`0.01`)
        min_support (int, optional): The minimum support. (default: :obj:`1`)
        min_confidence (float, optional): The minimum standard confidence.
            (default: :obj:`0.0`)
        min_pca_confidence (float, optional): The minimum PCA confidence.
            (default: :obj:`0.0`)
        max_rules_per_relation (int, optional): The maximum number of rules of
            each relation; those with the largest support are kept.
            (default: :obj:`None`, all)
        parallel (bool, optional): Whether to also mine parallel bodies.
            (default: :obj:`False`)
        skyline (bool, optional): Whether a parallel rule must have a larger
            PCA confidence than each of the two one-hop rules that it joins, as
            AMIE requires. (default: :obj:`False`)
        confidences (bool, optional): Whether to measure body sizes. If set to
            :obj:`False`, confidences are unknown. (default: :obj:`True`)
        max_body_pairs (int, optional): The maximum number of pairs, counted once
            for each middle, up to which body sizes are exact. The sizes of larger
            bodies, which lead through hubs, are estimated from a sample with a
            standard error of 2 %, the same sample in every run, and marked as
            :obj:`estimated`. (default: :obj:`10_000_000`)
        equal_ends (bool, optional): See :class:`Semantics`.
            (default: :obj:`True`)
        equal_middle (bool, optional): See :class:`Semantics`.
            (default: :obj:`True`)
        self_loops (bool, optional): See :class:`Semantics`.
            (default: :obj:`True`)
        head_in_body (bool, optional): See :class:`Semantics`.
            (default: :obj:`True`)
        num_threads (int, optional): The number of threads.
            (default: :obj:`None`, all cores)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)
    """
    MineSettings(  # which refuses wrong ones
        max_hops,
        min_head_coverage,
        min_support,
        min_confidence,
        min_pca_confidence,
        max_body_pairs=max_body_pairs,
    )
    if not confidences and (min_confidence or min_pca_confidence or skyline):
        raise ValueError("'confidences' must be True to compare confidences")
    data = as_kb(data)
    relations = relation_names(data)
    head, rel, tail = (index.numpy() for index in flat_triples(data))
    facts = head, rel, tail, data["entity"].num_nodes, len(relations)
    everything = adjacency = build_adjacency(*facts)
    if not self_loops:
        adjacency = build_adjacency(*facts, self_loops=False)
    semantics = Semantics(equal_ends, equal_middle, self_loops, head_in_body)
    miner = _Miner(
        RuleSet.build(relations, head=[], steps=[], semantics=semantics),
        everything,
        adjacency,
        max_hops,
        parallel,
        min_head_coverage,
        min_support,
    )
    rules = miner.mine(num_threads, progress)
    if confidences:
        rules = measure_bodies(
            rules, adjacency, everything, num_threads, max_body_pairs, progress
        )
    if skyline:
        rules = _above_parents(rules)
    return rules.filter(
        min_confidence=min_confidence,
        min_pca_confidence=min_pca_confidence,
        max_rules_per_relation=max_rules_per_relation,
    )


class MineRules(BaseTransform):
    r"""Mines the rules of a knowledge base and stores them as :obj:`data.rules`,
    for :meth:`RuleSet.of_data`. As a :obj:`pre_transform`, it runs once, and its
    result is saved with the data set.

    Args:
        **kwargs (optional): The arguments of :meth:`mine_rules`.

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> from kblrn_pyg.rules import RuleSet
        >>> data = Families(pre_transform=MineRules(max_hops=1))[0]
        >>> RuleSet.of_data(data).max_hops
        1
    """

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs

    def forward(self, data: HeteroData) -> HeteroData:
        data.rules = mine_rules(data, **self.kwargs).to_dict()
        return data

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.kwargs.items())
        return f"{self.__class__.__name__}({arguments})"


@dataclass(frozen=True)
class _Miner:
    """Counts supports, relation by relation."""

    no_rules: RuleSet  # with the relations and the semantics
    everything: Adjacency
    adjacency: Adjacency  # what bodies may use
    max_hops: int
    parallel: bool
    min_head_coverage: float
    min_support: int

    def mine(self, num_threads: int | None, progress: bool) -> RuleSet:
        num_facts = np.diff(self.everything.group_start[self.everything.code_ptr])[::2]
        busiest = np.argsort(-num_facts, kind="stable")[: np.count_nonzero(num_facts)]
        busiest = busiest[process_rank() :: num_processes()]  # each does its share
        found = run_all(
            self._mine_relation, busiest.tolist(), self._new_scratch, num_threads
        )
        bar = ProgressBar(
            found,
            total=len(busiest),
            desc="mining",
            unit="relation",
            disable=not progress,
            leave=False,
        )
        mined = join([self.no_rules, *bar])
        if num_processes() == 1:
            return mined
        return join([RuleSet.from_dict(part) for part in told_all(mined.to_dict())])

    def _mine_relation(self, relation: int, scratch: Scratch) -> RuleSet:
        facts = order_facts(relation, self.everything, self.adjacency)
        # The least support that reaches the least head coverage, exactly.
        coverages = np.arange(len(facts.pivot) + 1) / len(facts.pivot)
        least = int(np.searchsorted(coverages, self.min_head_coverage))
        least = max(least, self.min_support, 1)
        choices = self.no_rules.semantics.choices
        found = []
        for chunk in self._chunks():
            given = (facts, self.adjacency, chunk, choices, least, scratch)
            keys, support = direct_supports(*given)
            pairs = self._split_keys(keys, chunk)
            is_single = pairs[:, 0] == pairs[:, 1]
            pairs[is_single, 1] = -1
            keep = is_single | self.parallel
            found.append((pairs[keep], ~is_single[keep], support[keep]))
            if self.max_hops > 1:
                keys, support = path_supports(*given)
                paths = self._split_keys(keys, chunk)
                found.append((paths, np.zeros(len(keys), bool), support))
        steps, parallel, support = map(np.concatenate, zip(*found))
        steps = steps[:, : max(self.max_hops, 1 + self.parallel)]
        order = np.lexsort((*steps.T[::-1], steps[:, -1] >= 0, parallel))
        return replace(
            self.no_rules,
            head=np.full(len(order), relation),
            steps=steps[order],
            parallel=parallel[order],
            support=support[order],
            head_size=np.full(len(order), len(facts.pivot)),
            body_size=np.full(len(order), UNKNOWN),
            pca_body_size=np.full(len(order), UNKNOWN),
            estimated=np.zeros(len(order), bool),
        )

    def _chunks(self) -> Iterator[tuple[int, int, int]]:
        num_codes = self.adjacency.num_codes
        step = max(1, _MAX_TABLE // max(num_codes, 1))
        for first in range(0, num_codes, step):
            yield first, min(first + step, num_codes), num_codes

    def _split_keys(self, keys: Ids, chunk: tuple[int, int, int]) -> Ids:
        first, second = np.divmod(keys, self.adjacency.num_codes)
        return np.column_stack([first + chunk[0], second])

    def _new_scratch(self) -> Scratch:
        num_rows = next(self._chunks(), (0, 0, 0))[1]
        num_bodies = num_rows * self.adjacency.num_codes
        return new_scratch(self.adjacency.num_entities, num_bodies)


def _above_parents(rules: RuleSet) -> RuleSet:
    """Drops parallel rules whose confidence is not higher than that of both rules
    that they join."""
    confidence = rules.pca_confidence
    single = {
        (head, codes[0]): confidence[i]
        for i, (head, (_, codes)) in enumerate(zip(rules.head.tolist(), rules.bodies()))
        if len(codes) == 1
    }
    keep = np.ones(len(rules), bool)
    for i in np.flatnonzero(rules.parallel).tolist():
        head = int(rules.head[i])
        parents = (single.get((head, int(code)), -1.0) for code in rules.steps[i])
        keep[i] = confidence[i] > max(parents)
    return rules.select(keep)
