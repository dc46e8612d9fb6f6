"""Body sizes, from which confidences are computed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.kernels.adjacency import Adjacency
from kblrn_pyg.kernels.body_sizes import (
    Scratch,
    body_sizes,
    new_scratch,
    walked_steps,
)
from kblrn_pyg.kernels.threads import cut, run_all
from kblrn_pyg.kernels.walking import Bodies
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.rules.columns import Ids
from kblrn_pyg.rules.estimate import SampledBody
from kblrn_pyg.rules.ruleset import RuleSet
from kblrn_pyg.rules.settings import MAX_BODY_PAIRS

# Bodies differ a lot in work, so there are many more parts than threads.
_NUM_PARTS = 64


def reverse_steps(steps: Ids, parallel: np.ndarray) -> Ids:
    """Returns the codes of the same bodies, walked from the tail to the head."""
    back = np.where(steps < 0, steps, steps ^ 1)
    turn = (steps[:, -1] >= 0) & ~parallel
    back[turn] = back[turn, ::-1]
    return back


def measure_bodies(
    rules: RuleSet,
    adjacency: Adjacency,
    domains: Adjacency,
    num_threads: int | None = None,
    max_body_pairs: int = MAX_BODY_PAIRS,
    progress: bool = False,
) -> RuleSet:
    """Measures body sizes under the semantics of the rules.

    A body is measured once, however many rules share it. It is walked from the end
    whose entities the partial completeness assumption considers. ``adjacency`` has
    the facts that bodies may use: all those of ``domains``, except for self-loops
    if these do not count. The sizes of bodies with more than ``max_body_pairs``
    pairs, counted once for each middle, are estimated; see :class:`SampledBody`.
    """
    num_entities_of_code = np.diff(domains.code_ptr)
    from_tail = num_entities_of_code[0::2] < num_entities_of_code[1::2]
    from_tail = from_tail[rules.head]
    steps = rules.steps.copy()
    steps[from_tail] = reverse_steps(steps[from_tail], rules.parallel[from_tail])
    rule_code = 2 * rules.head + from_tail

    # Second codes first: bodies that share one are measured together.
    keys = np.column_stack([steps[:, ::-1], rules.parallel])
    bodies, body_of_rule = np.unique(keys, axis=0, return_inverse=True)
    body_of_rule = body_of_rule.ravel()
    by_body = np.argsort(body_of_rule, kind="stable")
    rule_ptr = np.searchsorted(body_of_rule[by_body], np.arange(len(bodies) + 1))
    first, second = bodies[:, -2], bodies[:, 0]
    if rules.max_hops == 1:
        second = np.full(len(bodies), -1)
    parallel = bodies[:, -1].astype(bool)

    choices = rules.semantics.choices
    path = first, np.where(parallel, -1, second)
    is_large = walked_steps(adjacency, *path, max_body_pairs) > max_body_pairs
    measuring = _Measuring(
        adjacency,
        domains,
        Bodies(rule_ptr, first, second, parallel, choices),
        rule_code[by_body],
        is_large,
        max_body_pairs,
    )
    body_size = np.empty(len(bodies), np.int64)
    pca_body_size = np.empty(len(rules), np.int64)
    for part, sizes, pca_sizes in measuring.run(num_threads, progress):
        body_size[part] = sizes
        begin, end = rule_ptr[part.start], rule_ptr[part.stop]
        pca_body_size[by_body[begin:end]] = pca_sizes
    body_size, estimated = body_size[body_of_rule], is_large[body_of_rule]
    # No estimate lies below what is known to be there.
    least = np.where(estimated, rules.support, 0)
    pca_body_size = np.maximum(pca_body_size, least)
    body_size = np.maximum(body_size, pca_body_size)
    return replace(
        rules, body_size=body_size, pca_body_size=pca_body_size, estimated=estimated
    )


@dataclass(frozen=True)
class _Measuring:
    """Counts the pairs of bodies, or estimates their number."""

    adjacency: Adjacency
    domains: Adjacency
    bodies: Bodies  # 'ptr' is where the rules of each body begin
    rule_code: Ids
    is_large: NDArray[np.bool_]
    max_body_pairs: int

    def run(
        self, num_threads: int | None, progress: bool
    ) -> Iterator[tuple[slice, Ids, Ids]]:
        size = len(self.is_large)
        parts = cut(size, max(1, min(_NUM_PARTS, size)))
        large = np.flatnonzero(self.is_large).tolist()
        scratch = partial(new_scratch, self.adjacency.num_entities)
        counted = run_all(self._count, parts, scratch, num_threads)
        estimated = run_all(self._estimate, large, scratch, num_threads)
        yield from ProgressBar(
            chain(counted, estimated),
            total=len(parts) + len(large),
            desc="measuring",
            unit="part",
            disable=not progress,
            leave=False,
        )

    def _count(self, part: slice, scratch: Scratch) -> tuple[slice, Ids, Ids]:
        ptr, first, second, parallel, choices = self.bodies
        ptr = ptr[part.start : part.stop + 1]
        body = first[part], second[part], parallel[part]
        some = Bodies(ptr - ptr[0], *body, choices)
        codes = self.rule_code[ptr[0] : ptr[-1]]
        given = (self.adjacency, self.domains, some, codes)
        return part, *body_sizes(*given, self.is_large[part], scratch)

    def _estimate(self, i: int, scratch: Scratch) -> tuple[slice, Ids, Ids]:
        codes = self.bodies.first[i], self.bodies.second[i]
        body = SampledBody(self.adjacency, codes, self.bodies.choices, scratch)
        size = body.size(np.arange(len(body.entity)), self.max_body_pairs)
        pca_sizes = []
        ptr = self.domains.code_ptr
        for code in self.rule_code[self.bodies.ptr[i] : self.bodies.ptr[i + 1]]:
            domain = self.domains.group_entity[ptr[code] : ptr[code + 1]]
            sources = np.flatnonzero(np.isin(body.entity, domain))
            pca_sizes.append(body.size(sources, self.max_body_pairs))
        body.close()
        return slice(i, i + 1), np.array([size]), np.array(pca_sizes)
