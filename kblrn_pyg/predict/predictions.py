"""Predicted triples with their names, as a table, as CSV and as JSON."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from kblrn_pyg.data import Vocabulary
from kblrn_pyg.table import format_table

# What formulas begin with.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

_HEADER = ("rank", "head", "relation", "tail", "probability", "score", "known")


@dataclass(frozen=True)
class Prediction:
    r"""A triple that a model predicts.

    Args:
        head (str): The name of the head, with its identifier behind it where
            several entities share the name.
        relation (str): The name of the relation.
        tail (str): The name of the tail.
        head_id (int): The id of the head.
        relation_id (int): The id of the relation.
        tail_id (int): The id of the tail.
        score (float): The score, the logarithm of the product of experts up to
            a constant.
        probability (float): See :meth:`predict_tails`, or :meth:`complete`.
        known (bool): Whether it is a known fact.
        rank (int): Its place in the list, from 1.
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


@dataclass(frozen=True, repr=False)
class Predictions:
    r"""Predicted triples, the best first; :obj:`print` shows a table.

    Args:
        predictions (tuple): A :class:`Prediction` for each triple.
    """

    predictions: tuple[Prediction, ...]

    @classmethod
    def of(
        cls,
        names: Vocabulary,
        triples: Sequence[tuple[int, int, int]],
        scores: Sequence[float],
        probabilities: Sequence[float],
        known: Sequence[bool],
    ) -> "Predictions":
        r"""Gives triples their names.

        Args:
            names (Vocabulary): All names.
            triples (sequence): The ids of each triple, the best first.
            scores (sequence): The score of each.
            probabilities (sequence): The probability of each.
            known (sequence): Whether each is a known fact.
        """
        found: list[Prediction] = []
        for (h, r, t), score, probability, is_known in zip(
            triples, scores, probabilities, known
        ):
            head, tail = names.entities.unique(h), names.entities.unique(t)
            ids = (head, names.relations.unique(r), tail, h, r, t)
            row = (score, probability, is_known, len(found) + 1)
            found.append(Prediction(*ids, *row))
        return cls(tuple(found))

    def __len__(self) -> int:
        return len(self.predictions)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.predictions)

    def __getitem__(self, i: int) -> Prediction:
        return self.predictions[i]

    def to_json(self) -> list[dict[str, Any]]:
        """Returns a plain dictionary for each prediction."""
        return [asdict(prediction) for prediction in self]

    def to_csv(self) -> str:
        """Returns a line of column names, and one for each prediction.

        Names that a spreadsheet would run as a formula, because of their first
        letter, begin with an apostrophe.
        """
        text = io.StringIO()
        columns = [field.name for field in fields(Prediction)]
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: _harmless(value) for key, value in row.items()}
            for row in self.to_json()
        )
        return text.getvalue()

    def __str__(self) -> str:
        return format_table(_HEADER, [_cells(one) for one in self])

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def _harmless(value: Any) -> Any:
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def _cells(one: Prediction) -> tuple[object, ...]:
    digits = ".4f" if one.probability >= 1e-4 else ".1e"
    probability = format(one.probability, digits)
    names = (one.head, one.relation, one.tail)
    return (one.rank, *names, probability, f"{one.score:.3f}", one.known)
