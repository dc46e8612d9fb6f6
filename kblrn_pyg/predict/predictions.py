"""Predicted triples with their names, for people and for programs."""

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from kblrn_pyg.data import Vocabulary

_HEADER = ("rank", "head", "relation", "tail", "probability", "score", "known")
_WORDS = {"head", "relation", "tail", "known"}


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

    @classmethod
    def of(
        cls,
        names: Vocabulary,
        triple: tuple[int, int, int],
        score: float,
        probability: float,
        known: bool,
        rank: int,
    ) -> "Prediction":
        r"""Gives a triple its names.

        Args:
            names (Vocabulary): All names.
            triple (tuple): The ids.
            score (float): See :class:`Prediction`.
            probability (float): See :class:`Prediction`.
            known (bool): See :class:`Prediction`.
            rank (int): See :class:`Prediction`.
        """
        head, rel, tail = triple
        return cls(
            names.entities.unique(head),
            names.relations.unique(rel),
            names.entities.unique(tail),
            *triple,
            score,
            probability,
            known,
            rank,
        )


@dataclass(frozen=True, repr=False)
class Predictions:
    r"""Predicted triples, the best first; :obj:`print` shows a table.

    Args:
        predictions (tuple): A :class:`Prediction` for each triple.
    """

    predictions: tuple[Prediction, ...]

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
        """Returns a line of column names, and one for each prediction."""
        text = io.StringIO()
        writer = csv.DictWriter(
            text, [field.name for field in fields(Prediction)], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(self.to_json())
        return text.getvalue()

    def __str__(self) -> str:
        rows = [_HEADER, *map(_cells, self)]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            "  ".join(
                cell.ljust(width) if name in _WORDS else cell.rjust(width)
                for name, cell, width in zip(_HEADER, row, widths)
            )
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({len(self)})"


def _cells(one: Prediction) -> tuple[str, ...]:
    return (
        f"{one.rank:,}",
        one.head,
        one.relation,
        one.tail,
        f"{one.probability:.4f}"
        if one.probability >= 1e-4
        else f"{one.probability:.1e}",
        f"{one.score:.3f}",
        "yes" if one.known else "no",
    )
