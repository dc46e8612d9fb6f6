"""Reads a user's files into a knowledge base with a single call."""

import os
from collections.abc import Container, Sequence
from typing import Any, TypedDict, TypeGuard, Unpack

from torch_geometric.data import HeteroData

from kblrn_pyg.data.build import BuildReport, build_kb
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.folders import Splits, splits_of
from kblrn_pyg.data.holdout import hold_out
from kblrn_pyg.data.labels import read_labels
from kblrn_pyg.data.rdf import is_rdf, read_rdf
from kblrn_pyg.data.rows import PathLike
from kblrn_pyg.data.sources import Source, place
from kblrn_pyg.data.triples import NamedTriples, join_triples, read_triples
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
    numerical_header: bool | None
    separator: str | None
    decimal: str
    wide: bool | None
    labels: Source | None
    label_columns: Sequence[str] | None
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
        train: The training triples: a :obj:`.tsv`, :obj:`.csv`, :obj:`.nt`,
            :obj:`.ttl` or :obj:`.rdf` file (:obj:`.gz` or not), a :obj:`.parquet`
            file, a :class:`pandas.DataFrame`, or an iterable of tuples. Numbers in
            RDF files are read, too. A folder with files called :obj:`train`,
            :obj:`valid` and :obj:`test`, a dictionary of splits, a
            :obj:`DatasetDict` of Hugging Face and a :obj:`Dataset` of PyKEEN have
            all splits.
        valid (optional): The validation triples. (default: :obj:`None`)
        test (optional): The test triples. (default: :obj:`None`)
        numerical (optional): The :obj:`entity, attribute, value` rows.
            (default: :obj:`None`)
        min_entities (int, optional): The minimum number of entities with a value of
            an attribute to keep it, as in the paper. (default: :obj:`5`)
        holdout (float, optional): If there are no validation and test triples, each
            of them gets this fraction of the training triples.
            (default: :obj:`None`)
        seed (int, optional): The seed of that choice. (default: :obj:`0`)
        **options (optional): :obj:`strict`, to refuse two values for one (entity,
            attribute) instead of averaging them; :obj:`header` and :obj:`columns`,
            see :meth:`read_triples`; :obj:`numerical_columns` and
            :obj:`numerical_header` (default: :obj:`header`, unless
            :obj:`numerical_columns` are given), :obj:`decimal` and :obj:`wide`, see
            :meth:`read_values`; :obj:`separator`, what separates the fields of
            files; :obj:`labels` and :obj:`label_columns`, readable names of
            identifiers, see :meth:`read_labels`; :obj:`progress`, to show progress
            bars.

    Returns:
        The knowledge base of each split, by :obj:`"train"`, :obj:`"val"` and
        :obj:`"test"`, and a report.

    Example:
        >>> kbs, report = read_kb(train=[("Ada", "spouse", "Ben")])
        >>> kbs["train"]["entity", "spouse", "entity"].edge_index.tolist()
        [[0], [1]]
    """
    sources = _sources(train, valid, test, numerical, options.get("labels"))
    if holdout is not None and len(sources.triples) > 1:
        raise DataError("'holdout' must not be given beside validation or test triples")
    if holdout is not None and not 0 < holdout < 0.5:
        raise DataError(f"'holdout' must lie between 0 and 0.5 (got {holdout})")
    reader = _Reader(options)
    for split, parts in sources.triples.items():
        reader.read_split(split, parts)
    splits = reader.splits
    for source in sources.numbers:
        reader.read_numbers(source)
    labels = None
    if sources.labels:
        labels = reader.read_labels(sources.labels)
    values = None
    if any(map(len, reader.tables)):
        values = join_values(reader.tables)
        if options.get("strict", False):
            refuse_repeated(values)
        values = average_repeated(values)
    if holdout is not None:
        splits = hold_out(splits["train"], holdout, seed)
    # Names are kept as they are written, but for IRIs.
    kbs, report = build_kb(splits, values, labels, min_entities, reader.has_rdf)
    report.num_other_literals = reader.num_other_literals
    if labels is not None and report.num_labels == 0:
        message = "has labels of no identifier of the triples, expected id, name rows"
        raise DataError(message, place(sources.labels[0], 1)["path"])
    return kbs, report


def _sources(
    train: Any,
    valid: Source | None,
    test: Source | None,
    numerical: Source | None,
    labels: Source | None,
) -> Splits:
    found = splits_of(train)
    if found is None:
        found = Splits({"train": [train]})
    elif valid is not None or test is not None:
        raise DataError("'train' has all splits, expected no 'valid' and 'test'")
    for split, source in (("val", valid), ("test", test)):
        if source is not None:
            found.triples[split] = [source]
    order = [split for split in ("train", "val", "test") if split in found.triples]
    return Splits(
        {split: found.triples[split] for split in order},
        found.numbers if numerical is None else [numerical],
        found.labels if labels is None else [labels],
    )


class _Reader:
    """Reads one source after the other."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.progress = options.get("progress", False)
        self.splits: dict[str, NamedTriples] = {}
        self.tables: list[NamedValues] = []
        self.num_other_literals = 0
        self.has_rdf = False

    def read_split(self, split: str, sources: Sequence[Source]) -> None:
        """Reads the triples of a split, and the numbers among them."""
        parts = [self._read_triples(source) for source in sources]
        self.splits[split] = join_triples(parts)
        if len(self.splits[split]) == 0:
            raise DataError(f"no triples for the {split} split", **place(sources[0], 1))

    def _read_triples(self, source: Source) -> NamedTriples:
        if _is_rdf(source):
            content = read_rdf(source, progress=self.progress, average=False)
            self.tables.append(content.values)
            self.num_other_literals += content.num_other_literals
            self.has_rdf = True
            return content.triples
        # The few rows of a small split may share names with training only.
        first = self.splits.get("train")
        names = _EitherOf(first.entities, first.relations) if first else ()
        return read_triples(
            source,
            self.options.get("header"),
            self.options.get("columns"),
            names,
            self.progress,
            self.options.get("separator"),
        )

    def read_numbers(self, source: Source) -> None:
        """Reads numbers beside the triples."""
        options = self.options
        if _is_rdf(source):
            content = read_rdf(source, progress=self.progress, average=False)
            self.tables.append(content.values)
            self.has_rdf = True
            return
        columns = options.get("numerical_columns")
        # Columns by names tell that numbers have a header, even if triples have none.
        header = options.get("header") if columns is None else None
        found = read_values(
            source,
            strict=options.get("strict", False),
            header=options.get("numerical_header", header),
            columns=columns,
            progress=self.progress,
            average=False,
            names=self.splits["train"].entities,
            separator=options.get("separator"),
            decimal=options.get("decimal", "."),
            wide=options.get("wide"),
        )
        self.tables.append(found)

    def read_labels(self, sources: Sequence[Source]) -> dict[str, str]:
        """Reads labels; of several of an identifier, the first counts."""
        labels: dict[str, str] = {}
        for source in sources:
            found = read_labels(
                source,
                columns=self.options.get("label_columns"),
                separator=self.options.get("separator"),
                progress=self.progress,
            )
            labels = found | labels
        return labels


class _EitherOf:
    """What is in one of some containers."""

    def __init__(self, *containers: Container[str]) -> None:
        self.containers = containers

    def __contains__(self, name: object) -> bool:
        return any(name in container for container in self.containers)


def _is_rdf(source: Source) -> TypeGuard[PathLike]:
    return isinstance(source, (str, os.PathLike)) and is_rdf(source)
