"""Scores of given triples, with names, probabilities and contributions of experts."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kblrn_pyg.data import DataError, Names, Vocabulary, read_triples
from kblrn_pyg.data.sources import Source
from kblrn_pyg.data.write_ntriples import NamedTriple
from kblrn_pyg.evaluation import expert_scores
from kblrn_pyg.nn import KBLRN
from kblrn_pyg.predict.triple_table import TripleTable
from kblrn_pyg.table import format_table

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]
# Longer tables are not printed by accident.
_MAX_PRINTED = 1000


@dataclass(frozen=True, eq=False, repr=False)
class ScoredTriples(TripleTable):
    r"""Triples with their scores.

    Args:
        names (Vocabulary): All names.
        head (numpy.ndarray): The head of each triple.
        rel (numpy.ndarray): The relation of each triple.
        tail (numpy.ndarray): The tail of each triple.
        parts (dict): The score of each triple by each expert.
        calibrated (numpy.ndarray, optional): The probability that each is true.
        known (numpy.ndarray): Whether each is a known fact.
        num_unknown (int, optional): The number of triples that were left out
            because of unknown names. (default: :obj:`0`)
    """

    names: Vocabulary
    head: Ids
    rel: Ids
    tail: Ids
    parts: dict[str, Floats]
    calibrated: Floats | None
    known: NDArray[np.bool_]
    num_unknown: int = 0

    def __len__(self) -> int:
        return len(self.head)

    @property
    def score(self) -> Floats:
        """The score of each triple, the sum of its parts."""
        return np.sum(list(self.parts.values()), axis=0)

    def columns(self) -> dict[str, Sequence[Any]]:
        """Returns names, score, probability, and the contribution of each
        expert."""
        entities = _Unique(self.names.entities)
        relations = _Unique(self.names.relations)
        columns: dict[str, Any] = {
            "head": entities.of(self.head),
            "relation": relations.of(self.rel),
            "tail": entities.of(self.tail),
            "score": self.score,
        }
        if self.calibrated is not None:
            columns["calibrated"] = self.calibrated
        columns |= {f"score_{name}": part for name, part in self.parts.items()}
        return columns | {"known": self.known}

    def identified(self) -> Iterator[tuple[NamedTriple, float | None]]:
        """Returns the identifiers of each triple, and the probability that it is
        true."""
        entities = self.names.entities.identifiers
        relations = self.names.relations.identifiers
        sure = [None] * len(self) if self.calibrated is None else self.calibrated
        ids = (column.tolist() for column in (self.head, self.rel, self.tail))
        for h, r, t, p in zip(*ids, sure):
            probability = None if p is None else float(p)
            yield (entities[h], relations[r], entities[t]), probability

    def shown(self) -> tuple[list[str], list[list[object]]]:
        """Returns the header and the cells of a readable table, which may be
        shortened."""
        few = slice(_MAX_PRINTED)
        sure = None if self.calibrated is None else self.calibrated[few]
        parts = {name: part[few] for name, part in self.parts.items()}
        ids = self.head[few], self.rel[few], self.tail[few]
        columns = ScoredTriples(
            self.names, *ids, parts, sure, self.known[few]
        ).columns()
        rows = [list(map(_cell, row)) for row in zip(*columns.values())]
        return list(columns), rows

    def __str__(self) -> str:
        text = format_table(*self.shown())
        more = len(self) - _MAX_PRINTED
        return f"{text}\n{more:,} more triples" if more > 0 else text

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def score_triples(
    model: KBLRN,
    triples: Source,
    header: bool | None = None,
    skip_unknown: bool = False,
    progress: bool = False,
) -> ScoredTriples:
    r"""Scores triples that are given by their names, in the order given.

    With reciprocal relations, a triple has two scores, and the result is their
    mean. Known facts may be evidence for themselves.

    Args:
        model (KBLRN): The model.
        triples: A file, a data frame or tuples, see
            :meth:`~kblrn_pyg.data.read_triples`; repeated ones are scored again.
        header (bool, optional): Whether a file begins with a header.
            (default: :obj:`None`)
        skip_unknown (bool, optional): If set to :obj:`True`, triples with unknown
            names are left out, and counted. (default: :obj:`False`)
        progress (bool, optional): If set to :obj:`True`, shows progress bars.
            (default: :obj:`False`)

    Example:
        >>> from kblrn_pyg.datasets import Families
        >>> model = KBLRN.from_data(Families()[0], experts="ln", hidden_channels=8)
        >>> found = score_triples(model, [("Ada Crowgarth", "born_in", "Quarstead")])
        >>> list(found.columns())[3:]
        ['score', 'score_latent', 'score_numerical', 'known']
    """
    names = model.vocabulary
    given = read_triples(triples, header, progress=progress, distinct=False)
    try:
        entity = _ids(names.entities, given.entities, skip_unknown)
        relation = _ids(names.relations, given.relations, skip_unknown)
    except DataError as error:
        way_out = "skip_unknown=True, or --skip-unknown, leaves out such triples"
        raise DataError(f"{error}; {way_out}", **_file(triples)) from None
    head, rel, tail = entity[given.head], relation[given.rel], entity[given.tail]
    keep = (head >= 0) & (rel >= 0) & (tail >= 0)
    if not keep.any():
        raise DataError("no triple has known names only, expected at least one")
    head, rel, tail = head[keep], rel[keep], tail[keep]
    parts = expert_scores(model, head, rel, tail, progress)
    sure = None
    if model.calibration is not None:
        total = torch.from_numpy(np.sum(list(parts.values()), axis=0))
        sure = model.calibration.probability(total, torch.from_numpy(rel)).numpy()
    known = model.known_facts.contains(head, rel, tail)
    num_unknown = len(keep) - int(keep.sum())
    return ScoredTriples(names, head, rel, tail, parts, sure, known, num_unknown)


def _file(source: Source) -> dict[str, Any]:
    return {"path": source} if isinstance(source, str | os.PathLike) else {}


def _ids(names: Names, given: Sequence[str], skip_unknown: bool) -> Ids:
    """Returns the id of each name, -1 for an unknown one."""
    found = np.full(len(given), -1)
    for i, name in enumerate(given):
        exact = names.exact(name)
        if len(exact) == 1:
            found[i] = exact[0]
        elif exact or not skip_unknown:
            found[i] = names.resolve(name)  # or says what is wrong
    return found


class _Unique:
    """Readable names, each of which is created once."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def of(self, ids: Ids) -> list[str]:
        distinct, place = np.unique(ids, return_inverse=True)
        texts = [self._names.unique(i) for i in distinct.tolist()]
        return [texts[i] for i in place.tolist()]


def _cell(value: object) -> object:
    if isinstance(value, np.bool_):
        return bool(value)
    return f"{value:.4f}" if isinstance(value, float) else value
