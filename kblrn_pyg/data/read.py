"""One call from a user's files to a knowledge base."""

import os

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


def read_kb(
    train: Source,
    valid: Source | None = None,
    test: Source | None = None,
    numerical: Source | None = None,
    min_entities: int = 5,
    holdout: float | None = None,
    seed: int = 0,
    strict: bool = False,
    progress: bool = False,
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
        min_entities (int, optional): An attribute stays if at least so many
            entities have a value, as in the paper. (default: :obj:`5`)
        holdout (float, optional): If there are no validation and test triples,
            this fraction of the training triples becomes each of them.
            (default: :obj:`None`)
        seed (int, optional): The seed of that choice. (default: :obj:`0`)
        strict (bool, optional): If set to :obj:`True`, refuses two values for
            one (entity, attribute) instead of averaging them.
            (default: :obj:`False`)
        progress (bool, optional): Whether to show progress bars.
            (default: :obj:`False`)

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
            content = _read_ntriples(source, progress)
            splits[split] = content.triples
            tables.append(content.values)
            num_other_literals += content.num_other_literals
        else:
            splits[split] = read_triples(source, progress=progress)
        if len(splits[split]) == 0:
            raise DataError(f"no triples for the {split} split", **place(source, 1))
    if numerical is not None:
        tables.append(_read_numerical(numerical, strict, progress))
    values = _merge(tables, strict)
    if holdout is not None:
        splits = hold_out(splits["train"], holdout, seed)
    kbs, report = build_kb(splits, values, min_entities=min_entities)
    report.num_other_literals = num_other_literals
    return kbs, report


def _read_ntriples(source: Source, progress: bool) -> NTriples:
    assert isinstance(source, (str, os.PathLike))
    return read_ntriples(source, progress=progress, average=False)


def _read_numerical(source: Source, strict: bool, progress: bool) -> NamedValues:
    if _is_ntriples(source):
        return _read_ntriples(source, progress).values
    return read_values(source, strict=strict, progress=progress, average=False)


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
