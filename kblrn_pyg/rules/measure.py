"""Body sizes, from which confidences follow."""

from dataclasses import replace

import numpy as np

from kblrn_pyg.kernels.adjacency import Adjacency
from kblrn_pyg.kernels.body_sizes import body_sizes
from kblrn_pyg.kernels.threads import cut, run_all
from kblrn_pyg.kernels.walking import Bodies
from kblrn_pyg.rules.ruleset import Ids, RuleSet

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
) -> RuleSet:
    """Measures body sizes under the semantics of the rules.

    A body is measured once, however many rules share it. It is walked from the
    end whose entities the partial completeness assumption looks at. ``adjacency``
    has the facts that bodies may use: all those of ``domains``, but for self-loops
    if these do not count.
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

    def measure(part: slice, scratch: tuple[Ids, Ids]) -> tuple[slice, Ids, Ids]:
        scratch[0].fill(-1)
        ptr = rule_ptr[part.start : part.stop + 1]
        codes = rule_code[by_body[ptr[0] : ptr[-1]]]
        body = first[part], second[part], parallel[part]
        some = Bodies(ptr - ptr[0], *body, rules.semantics.choices)
        return part, *body_sizes(adjacency, domains, some, codes, *scratch)

    def new_scratch() -> tuple[Ids, Ids]:
        size = adjacency.num_entities
        return np.empty(size, np.int64), np.zeros(size, np.int64)

    body_size = np.empty(len(bodies), np.int64)
    pca_body_size = np.empty(len(rules), np.int64)
    parts = cut(len(bodies), max(1, min(_NUM_PARTS, len(bodies))))
    for part, sizes, pca_sizes in run_all(measure, parts, new_scratch, num_threads):
        body_size[part] = sizes
        begin, end = rule_ptr[part.start], rule_ptr[part.stop]
        pca_body_size[by_body[begin:end]] = pca_sizes
    body_size = body_size[body_of_rule]
    return replace(rules, body_size=body_size, pca_body_size=pca_body_size)
