"""One call from a user's files to a knowledge base."""

import os
from collections.abc import Container, Sequence
from typing import TypedDict, TypeGuard, Unpack

from torch_geometric.data import HeteroData

from kblrn_pyg.data.build import BuildReport, build_kb
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.holdout import hold_out
from kblrn_pyg.data.ntriples import read_ntriples
from kblrn_pyg.data.rows import PathLike, ending
from kblrn_pyg.data.sources import Source, place
from kblrn_pyg.data.triples import NamedTriples, read_triples
from kblrn_pyg.data.values import (
    NamedValues,
    average_repeated,
    join_values,
    read_values,
    refuse_repeated,
)


class ReadOptions(TypedDict, total=False):
    """The options of :meth:`read_kb` about single files."""

    strict: bool
    header: bool | None
    columns: Sequence[str] | None
    numerical_columns: Sequence[str] | None
    progress: bool


def read_kb(
    train: Source,
    valid: Source | None = None,
    test: Source | None = None,
    numerical: Source | None = None,
    min_entities: int = 5,
    holdout: float | None = None,
    seed: int = 0,
    **options: Unpack[ReadOptions],
) -> tuple[dict[str, HeteroData], BuildReport]:
    r"""Reads a knowledge base from files, data frames or tuples.

    Args:
        train: The training triples: a :obj:`.tsv`, :obj:`.csv` or :obj:`.nt`
            file (:obj:`.gz` or not), a :obj:`.parquet` file, a
            :class:`pandas.DataFrame`, or an iterable of tuples. Numbers in an
            :obj:`.nt` file are kept, too.
        valid (optional): The validation triples. (default: :obj:`None`)
        test (optional): The test triples. (default: :obj:`None`)
        numerical (optional): The :obj:`entity, attribute, value` rows.
            (default: :obj:`None`)
        min_entities (int, optional): The least number of entities that must
            have a value of an attribute to keep it, as in the paper.
            (default: :obj:`5`)
        holdout (float, optional): If there are no validation and test triples,
            this fraction of the training triples becomes each of them.
            (default: :obj:`None`)
        seed (int, optional): The seed of that choice. (default: :obj:`0`)
        **options (optional): :obj:`strict`, to refuse two values for one
            (entity, attribute) instead of averaging them; :obj:`header` and
            :obj:`columns`, see :meth:`read_triples`; :obj:`numerical_columns`,
            the :obj:`columns` of :meth:`read_values`; :obj:`progress`, to show
            progress bars.

    Returns:
        The knowledge base of each split, by :obj:`"train"`, :obj:`"val"` and
        :obj:`"test"`, and a report of what was noticed.

    Example:
        >>> kbs, report = read_kb(train=[("Ada", "spouse", "Ben")])
        >>> kbs["train"]["entity", "spouse", "entity"].edge_index.tolist()
        [[0], [1]]
    """
    if holdout is not None and (valid is not None or test is not None):
        raise DataError("'holdout' must not be given beside validation or test triples")
    progress = options.get("progress", False)
    splits: dict[str, NamedTriples] = {}
    tables: list[NamedValues] = []
    num_other_literals = 0
    for split, source in (("train", train), ("val", valid), ("test", test)):
        if source is None:
            continue
        if _is_ntriples(source):
            content = read_ntriples(source, progress=progress, average=False)
            splits[split] = content.triples
            tables.append(content.values)
            num_other_literals += content.num_other_literals
        else:
            # The few rows of a small split may share names with training only.
            first = splits.get("train")
            names = _EitherOf(first.entities, first.relations) if first else ()
            header, columns = options.get("header"), options.get("columns")
            splits[split] = read_triples(source, header, columns, names, progress)
        if len(splits[split]) == 0:
            raise DataError(f"no triples for the {split} split", **place(source, 1))
    if numerical is not None:
        tables.append(_read_numerical(numerical, options, splits["train"].entities))
    values = None
    if any(map(len, tables)):
        values = join_values(tables)
        if options.get("strict", False):
            refuse_repeated(values)
        values = average_repeated(values)
    if holdout is not None:
        splits = hold_out(splits["train"], holdout, seed)
    kbs, report = build_kb(splits, values, min_entities=min_entities)
    report.num_other_literals = num_other_literals
    return kbs, report


def _read_numerical(
    source: Source, options: ReadOptions, names: Sequence[str]
) -> NamedValues:
    progress = options.get("progress", False)
    if _is_ntriples(source):
        return read_ntriples(source, progress=progress, average=False).values
    return read_values(
        source,
        strict=options.get("strict", False),
        header=options.get("header"),
        columns=options.get("numerical_columns"),
        progress=progress,
        average=False,
        names=names,
    )


class _EitherOf:
    """What is in one of some containers."""

    def __init__(self, *containers: Container[str]) -> None:
        self.containers = containers

    def __contains__(self, name: object) -> bool:
        return any(name in container for container in self.containers)


def _is_ntriples(source: Source) -> TypeGuard[PathLike]:
    return isinstance(source, (str, os.PathLike)) and ending(source) == ".nt"
