"""Validation and test triples for a knowledge base without splits."""

from dataclasses import replace

import numpy as np

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.triples import NamedTriples


def hold_out(
    triples: NamedTriples, fraction: float, seed: int = 0
) -> dict[str, NamedTriples]:
    r"""Splits triples at random into training, validation and test triples.

    Every entity and every relation keeps a training triple, so no query is about
    anything unseen in training.

    Args:
        triples (NamedTriples): The triples.
        fraction (float): The fraction for validation, and for test.
        seed (int, optional): The seed of the choice. (default: :obj:`0`)
    """
    if not 0 < fraction < 0.5:
        raise DataError(f"'fraction' must lie between 0 and 0.5 (got {fraction})")
    if seed < 0:
        raise DataError(f"'seed' must not be negative (got {seed})")
    wanted = 2 * max(1, round(fraction * len(triples)))
    held = _spare_triples(triples, wanted, np.random.default_rng(seed))
    if len(held) < wanted:
        raise DataError(
            f"only {len(held):,} of {len(triples):,} triples can be held out without "
            f"losing an entity or relation from training, {wanted:,} were asked for"
        )
    is_held = np.zeros(len(triples), dtype=bool)
    is_held[held] = True
    parts = {
        "train": np.flatnonzero(~is_held),
        "val": np.sort(held[0::2]),
        "test": np.sort(held[1::2]),
    }
    return {
        split: replace(
            triples,
            head=triples.head[part],
            rel=triples.rel[part],
            tail=triples.tail[part],
            num_duplicates=triples.num_duplicates if split == "train" else 0,
        )
        for split, part in parts.items()
    }


def _spare_triples(
    triples: NamedTriples, wanted: int, rng: np.random.Generator
) -> np.ndarray:
    """Picks triples whose entities and relation occur in others that stay."""
    degree = np.bincount(
        np.concatenate([triples.head, triples.tail]), minlength=len(triples.entities)
    ).tolist()
    frequency = np.bincount(triples.rel, minlength=len(triples.relations)).tolist()
    head, rel, tail = triples.head.tolist(), triples.rel.tolist(), triples.tail.tolist()
    held: list[int] = []
    for i in rng.permutation(len(triples)).tolist():
        if len(held) == wanted:
            break
        h, r, t = head[i], rel[i], tail[i]
        needed = 2 if h == t else 1  # a self-loop counts twice in its degree
        if degree[h] > needed and degree[t] > needed and frequency[r] > 1:
            degree[h] -= 1
            degree[t] -= 1
            frequency[r] -= 1
            held.append(i)
    return np.array(held, dtype=np.int64)
