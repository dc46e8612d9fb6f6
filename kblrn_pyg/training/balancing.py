"""Experts that have learned apart: how far to trust each of them."""

import copy
from collections.abc import Iterator, Sequence

from kblrn_pyg.evaluation import evaluate
from kblrn_pyg.nn.expert import Expert
from kblrn_pyg.nn.kblrn import KBLRN
from kblrn_pyg.progress import ProgressBar
from kblrn_pyg.training.validation import Graph

# Factors of all experts at once, of which some may be of no use, and then of one.
_OF_ALL = (0.0, 0.05, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5, 5.0)
_OF_ONE = (0.0, 0.6, 1.6)


def balance(
    model: KBLRN, val: Graph, filter_with: Sequence[Graph] = (), progress: bool = False
) -> dict[str, float]:
    r"""Chooses the exponents of a product of experts by the MRR of a validation set.

    Embeddings that were trained know almost all training triples, so that what
    other experts would learn beside them is not what they could do for triples
    that nobody has seen. Experts that have learned apart, of the same triples, each
    believe too much in themselves when they are multiplied. This multiplies the
    scores of all experts that can be scaled, see :meth:`Expert.scale`, by factors:
    first the same one for all of them, and then each by one of its own.

    Args:
        model (KBLRN): The model, whose experts are scaled.
        val (HeteroData or Data): The split to validate on.
        filter_with (sequence, optional): Further splits whose answers do not count
            as wrong. (default: :obj:`()`)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)

    Returns:
        The factor of each expert that was scaled.
    """
    experts: dict[str, Expert] = dict(model.experts.items())  # type: ignore[arg-type]
    names = [name for name, one in experts.items() if one.can_be_scaled]
    if len(names) == len(experts):
        names = names[1:]  # the scale of all scores does not matter to ranks
    weights = {name: copy.deepcopy(experts[name].state_dict()) for name in names}

    def scale(factors: dict[str, float]) -> None:
        for name, factor in factors.items():
            experts[name].load_state_dict(weights[name])
            experts[name].scale(factor)

    found, best = dict.fromkeys(names, 1.0), -1.0
    number = len(_OF_ALL) + (len(_OF_ONE) * len(names) if len(names) > 1 else 0)
    bar = ProgressBar(total=number, desc="balance", disable=not progress, leave=False)
    with bar:
        for factors in _trials(found):
            scale(factors)
            mrr = evaluate(model, val, filter_with).metrics().mrr
            bar.update()
            if mrr > best:
                best = mrr
                found.update(factors)
    scale(found)
    return found


def _trials(found: dict[str, float]) -> Iterator[dict[str, float]]:
    """Yields factors to try, which follow from what was found by then."""
    names = list(found)
    for factor in _OF_ALL if names else ():
        yield dict.fromkeys(names, factor)
    if len(names) > 1:
        for name in names:
            begin = found[name]
            for factor in _OF_ONE:
                yield found | {name: factor * begin}
