"""One call from a user's files to a knowledge base."""

import os
from collections.abc import Sequence
from typing import TypedDict, Unpack

from torch_geometric.data import HeteroData

from kblrn_pyg.data.build import BuildReport, build_kb
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.holdout import hold_out
from kblrn_pyg.data.ntriples import NTriples, read_ntriples
from kblrn_pyg.data.rows import ending
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
            file (:obj:`.gz` or not), a :class:`pandas.DataFrame`, or an
            iterable of tuples. Numbers in an :obj:`.nt` file are kept, too.
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
    given = {"train": train, "val": valid, "test": test}
    splits: dict[str, NamedTriples] = {}
    tables: list[NamedValues] = []
    num_other_literals = 0
    for split, source in given.items():
        if source is None:
            continue
        if _is_ntriples(source):
            content = _read_ntriples(source, options)
            splits[split] = content.triples
            tables.append(content.values)
            num_other_literals += content.num_other_literals
        else:
            splits[split] = _read_triples(source, splits.get("train"), options)
        if len(splits[split]) == 0:
            raise DataError(f"no triples for the {split} split", **place(source, 1))
    if numerical is not None:
        tables.append(_read_numerical(numerical, options))
    values = _merge(tables, options.get("strict", False))
    if holdout is not None:
        splits = hold_out(splits["train"], holdout, seed)
    kbs, report = build_kb(splits, values, min_entities=min_entities)
    report.num_other_literals = num_other_literals
    return kbs, report


def _read_triples(
    source: Source, train: NamedTriples | None, options: ReadOptions
) -> NamedTriples:
    return read_triples(
        source,
        options.get("header"),
        options.get("columns"),
        # The few rows of a small split may share names with training only.
        [] if train is None else [*train.entities, *train.relations],
        options.get("progress", False),
    )


def _read_ntriples(source: Source, options: ReadOptions) -> NTriples:
    assert isinstance(source, (str, os.PathLike))
    return read_ntriples(source, progress=options.get("progress", False), average=False)


def _read_numerical(source: Source, options: ReadOptions) -> NamedValues:
    if _is_ntriples(source):
        return _read_ntriples(source, options).values
    return read_values(
        source,
        strict=options.get("strict", False),
        header=options.get("header"),
        columns=options.get("numerical_columns"),
        progress=options.get("progress", False),
        average=False,
    )


def _merge(tables: list[NamedValues], strict: bool) -> NamedValues | None:
    tables = [table for table in tables if len(table)]
    if not tables:
        return None
    values = tables[0] if len(tables) == 1 else join_values(tables)
    if strict:
        refuse_repeated(values)
    return average_repeated(values)


def _is_ntriples(source: Source) -> bool:
    if not isinstance(source, (str, os.PathLike)):
        return False
    return ending(source) == ".nt"
