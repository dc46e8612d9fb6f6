"""The ranks of all true answers, one row each."""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data import DataError, Names
from kblrn_pyg.data.ids import check_ids
from kblrn_pyg.data.queries import SIDES, check_side
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.whole import write_bytes
from kblrn_pyg.evaluation.metrics import Metrics
from kblrn_pyg.frames import to_frame

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

ANSWERS = ("one", "many")

# What a zip archive without a comment ends with, and the size of our comment.
_END, _END_BYTES = b"PK\x05\x06", 22
_CHECKSUM_BYTES = len("sha256:") + 64

# What reading a damaged archive may raise.
_DAMAGE = (
    ValueError,
    EOFError,
    OSError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, eq=False)
class RankTable:
    r"""The ranks behind a result, from which every metric can be recomputed.

    A triple :math:`(h, r, t)` gives two rows: one for :math:`(?, r, t)`, whose
    true answer is :math:`h`, and one for :math:`(h, r, ?)`.

    Args:
        relations (list): The names of all relations.
        relation (numpy.ndarray): The relation of each row.
        side (numpy.ndarray): The side that the query asks for: 0 is the head, 1 the
            tail.
        head (numpy.ndarray): The head of the triple.
        tail (numpy.ndarray): The tail of the triple.
        rank (numpy.ndarray): The filtered, realistic rank: 1, plus the number
            of candidates with a higher score, plus half of the ties.
        num_candidates (numpy.ndarray): The number of candidates: entities that
            are not other known answers, including the true answer.
        num_answers (numpy.ndarray): The number of known answers of the query,
            including the true one. The query is of the kind :obj:`"one"` if
            that is 1, else of the kind :obj:`"many"`.
    """

    relations: list[str]
    relation: Ids
    side: Ids
    head: Ids
    tail: Ids
    rank: NDArray[np.float64]
    num_candidates: Ids
    num_answers: Ids

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            type_ = np.float64 if name == "rank" else np.int64
            given = np.asarray(getattr(self, name))
            if name != "rank" and given.size and given.dtype.kind not in "iu":
                raise ValueError(f"'{name}' must hold integers (got {given.dtype})")
            column = given.astype(type_, copy=False)
            if column.shape != (len(self.relation),):
                raise ValueError(
                    f"'{name}' must have {len(self.relation)} entries, one a row "
                    f"(got the shape {column.shape})"
                )
            object.__setattr__(self, name, column)
        check_ids({"relations": (self.relation, len(self.relations))})
        check_ids({"sides": (self.side, len(SIDES))})
        for name in ("head", "tail"):
            if len(self) and getattr(self, name).min() < 0:
                raise ValueError(f"'{name}' must not be negative")
        for name in ("rank", "num_candidates", "num_answers"):
            if not (getattr(self, name) >= 1).all():  # which NaN is not, either
                raise ValueError(f"'{name}' must be at least 1")

    def __len__(self) -> int:
        return len(self.relation)

    def metrics(self, mask: Mask | None = None) -> Metrics:
        r"""Computes the metrics of the ranks.

        Args:
            mask (numpy.ndarray, optional): The rows to include.
                (default: :obj:`None`, all)
        """
        if mask is None:
            return Metrics.of(self.rank, self.num_candidates)
        return Metrics.of(self.rank[mask], self.num_candidates[mask])

    def mask(
        self,
        relations: Iterable[int | str] | None = None,
        side: str | None = None,
        answers: str | None = None,
    ) -> Mask:
        r"""Returns which rows satisfy all conditions that are given.

        Args:
            relations (iterable, optional): Relations, by id or name.
                (default: :obj:`None`)
            side (str, optional): The side that the query asks for, :obj:`"head"` or
                :obj:`"tail"`. (default: :obj:`None`)
            answers (str, optional): :obj:`"one"` for queries that one entity
                completes, :obj:`"many"` for the others.
                (default: :obj:`None`)
        """
        mask = np.ones(len(self), np.bool_)
        if relations is not None:
            names = Names("relation", self.relations)
            mask &= np.isin(self.relation, relation_ids(relations, names))
        if side is not None:
            check_side(side)
            mask &= self.side == SIDES.index(side)
        if answers is not None:
            if answers not in ANSWERS:
                raise ValueError(f"'answers' must be 'one' or 'many' (got {answers!r})")
            mask &= (self.num_answers == 1) == (answers == "one")
        return mask

    def select(
        self,
        relations: Iterable[int | str] | None = None,
        side: str | None = None,
        answers: str | None = None,
    ) -> "RankTable":
        r"""Returns the rows that satisfy all conditions that are given.

        Args:
            relations (iterable, optional): See :meth:`mask`.
                (default: :obj:`None`)
            side (str, optional): See :meth:`mask`. (default: :obj:`None`)
            answers (str, optional): See :meth:`mask`. (default: :obj:`None`)
        """
        mask = self.mask(relations, side, answers)
        return replace(self, **{name: getattr(self, name)[mask] for name in _COLUMNS})

    def to_frame(self) -> Any:
        """Returns a :class:`pandas.DataFrame` with a row for each rank, relations and
        sides by name."""
        names = {
            "relation": [self.relations[i] for i in self.relation.tolist()],
            "side": [SIDES[i] for i in self.side.tolist()],
        }
        return to_frame({name: getattr(self, name) for name in _COLUMNS} | names)

    def _repr_html_(self) -> str:
        return self.metrics()._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Returns the names of the relations and the columns, by name."""
        return {"relations": self.relations} | {
            name: getattr(self, name) for name in _COLUMNS
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "RankTable":
        r"""Creates a table from the output of :meth:`to_dict`.

        Args:
            content (dict): The names of the relations and the columns.
        """
        expected = {field.name for field in fields(cls)}
        if set(content) != expected:
            raise DataError(
                f"not a rank table: expected {', '.join(sorted(expected))} "
                f"(got {', '.join(sorted(content)) or 'nothing'})"
            )
        relations = [str(name) for name in content["relations"]]
        return cls(relations, *(content[name] for name in _COLUMNS))

    def save(self, path: PathLike) -> None:
        r"""Saves the table as a NumPy archive, whole or not at all.

        Args:
            path (str): The file to write.
        """
        content = self.to_dict()
        # An empty list alone would become an array of numbers.
        content["relations"] = np.array(self.relations, np.str_)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **content)
        raw = _with_comment_size(buffer.getvalue())
        write_bytes(path, raw, _checksum(raw))

    @classmethod
    def load(cls, path: PathLike) -> "RankTable":
        r"""Loads a table that :meth:`save` wrote, without running code.

        Args:
            path (str): The file.
        """
        try:
            raw = Path(path).read_bytes()
            # Archives of older versions end without a checksum.
            if raw[-_END_BYTES:][:4] != _END and not _is_whole(raw):
                raise ValueError("another checksum")
            with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
                content = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise DataError("no such file", path) from None
        except (*_DAMAGE, TypeError):  # a TypeError if it is one array alone
            raise DataError("is damaged or not a rank table, delete it", path) from None
        try:
            return cls.from_dict(content)
        except ValueError as error:
            raise DataError(str(error), path) from None


def _with_comment_size(raw: bytes) -> bytes:
    """Announces a checksum as the comment of a zip archive, its very end."""
    return raw[:-2] + _CHECKSUM_BYTES.to_bytes(2, "little")


def _checksum(raw: bytes) -> bytes:
    return b"sha256:" + hashlib.sha256(raw).hexdigest().encode()


def _is_whole(raw: bytes) -> bool:
    content, comment = raw[:-_CHECKSUM_BYTES], raw[-_CHECKSUM_BYTES:]
    return comment == _checksum(content)


_COLUMNS = tuple(field.name for field in fields(RankTable) if field.name != "relations")


def relation_ids(relations: Iterable[int | str], names: Names) -> list[int]:
    r"""Returns the ids of relations, each once.

    Args:
        relations (iterable): The relations, by id or name.
        names (Names): The names of all relations.
    """
    if isinstance(relations, str):
        raise ValueError(f"'relations' must be a list of them (got {relations!r})")
    return list(dict.fromkeys(names.find(relation) for relation in relations))
