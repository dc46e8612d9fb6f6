"""Predicted triples with their names, as a table, as CSV and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.data.write_ntriples import NamedTriple
from kblrn_pyg.predict.triple_table import TripleTable
from kblrn_pyg.table import format_table

# The columns of tables.
_HEADER = (
    *("rank", "head", "relation", "tail", "probability", "calibrated", "score"),
    *("experts", "known"),
)


@dataclass(frozen=True)
class Prediction:
    r"""A triple that a model predicts.

    Args:
        head (str): The name of the head, followed by its identifier if several
            entities share the name.
        relation (str): The name of the relation.
        tail (str): The name of the tail.
        head_id (int): The id of the head.
        relation_id (int): The id of the relation.
        tail_id (int): The id of the tail.
        score (float): The score, the logarithm of the product of experts up to
            a constant.
        probability (float): See :meth:`predict_tails`, or :meth:`complete`.
        known (bool): Whether it is a known fact.
        rank (int): Its position in the list, from 1.
        experts (str): The letters, or names, of the experts whose score of the
            triple is not zero. (default: :obj:`""`)
        calibrated (float, optional): The probability that the triple is true; see
            :meth:`~kblrn_pyg.evaluation.calibrate`. (default: :obj:`None`, the
            model is not calibrated)
    """

    head: str
    relation: str
    tail: str
    head_id: int
    relation_id: int
    tail_id: int
    score: float
    probability: float
    known: bool
    rank: int
    experts: str = ""
    calibrated: float | None = None


@dataclass(frozen=True, repr=False)
class Predictions(TripleTable):
    r"""Predicted triples, the best first; :obj:`print` shows a table.

    Args:
        predictions (tuple): A :class:`Prediction` for each triple.
        names (Vocabulary, optional): All names, with the identifiers that files for
            other programs need. (default: :obj:`None`)
    """

    predictions: tuple[Prediction, ...]
    names: Vocabulary | None = field(default=None, compare=False)

    @classmethod
    def of(
        cls,
        names: Vocabulary,
        triples: Sequence[tuple[int, int, int]],
        scores: Sequence[float],
        probabilities: Sequence[float],
        known: Sequence[bool],
        experts: Sequence[str] | None = None,
        calibrated: Sequence[float] | None = None,
    ) -> "Predictions":
        r"""Creates predictions from the ids of triples.

        Args:
            names (Vocabulary): All names.
            triples (sequence): The ids of each triple, the best first.
            scores (sequence): The score of each.
            probabilities (sequence): The probability of each.
            known (sequence): Whether each is a known fact.
            experts (sequence, optional): The experts with a non-zero score of each.
                (default: :obj:`None`, not known)
            calibrated (sequence, optional): The probability that each is true.
                (default: :obj:`None`, not known)
        """
        found: list[Prediction] = []
        spoke = [""] * len(triples) if experts is None else experts
        sure = [None] * len(triples) if calibrated is None else calibrated
        columns = zip(triples, scores, probabilities, known, spoke, sure)
        for (h, r, t), score, probability, is_known, *more in columns:
            head, tail = names.entities.unique(h), names.entities.unique(t)
            ids = (head, names.relations.unique(r), tail, h, r, t)
            row = (score, probability, is_known, len(found) + 1)
            found.append(Prediction(*ids, *row, *more))
        return cls(tuple(found), names)

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.predictions)

    def __getitem__(self, i: int) -> Prediction:
        return self.predictions[i]

    def columns(self) -> dict[str, Sequence[Any]]:
        """Returns the fields of predictions as columns."""
        return {
            one.name: [getattr(prediction, one.name) for prediction in self]
            for one in fields(Prediction)
        }

    def identified(self) -> Iterator[tuple[NamedTriple, float | None]]:
        """Returns the identifiers of each triple, and the probability that it is
        true."""
        for one in self:
            triple = one.head, one.relation, one.tail
            if self.names is not None:
                entities = self.names.entities.identifiers
                relation = self.names.relations.identifiers[one.relation_id]
                triple = entities[one.head_id], relation, entities[one.tail_id]
            yield triple, one.calibrated

    def __str__(self) -> str:
        return format_table(*self.shown())

    def shown(self) -> tuple[list[str], list[list[object]]]:
        """Returns the columns to display, without empty ones."""
        rows = [_cells(one) for one in self]
        is_calibrated = any(one.calibrated is not None for one in self)
        names = [n for n in _HEADER if is_calibrated or n != "calibrated"]
        return names, [[row[name] for name in names] for row in rows]

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def _cells(one: Prediction) -> dict[str, object]:
    """Returns what tables show of a prediction."""
    sure = None if one.calibrated is None else _fraction(one.calibrated)
    changed = {
        "probability": _fraction(one.probability),
        "calibrated": sure,
        "score": f"{one.score:.3f}",
        "experts": one.experts or "none",
    }
    return vars(one) | changed


def _fraction(value: float) -> str:
    return format(value, ".4f" if value >= 1e-4 else ".1e")
