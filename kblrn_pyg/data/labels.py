"""Names to display instead of identifiers."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from kblrn_pyg.data.header import LABELS, Columns
from kblrn_pyg.data.rdf import is_rdf
from kblrn_pyg.data.rdf_labels import read_rdf_labels
from kblrn_pyg.data.sources import Source, source_rows


def read_labels(
    source: Source,
    header: bool | None = None,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    progress: bool = False,
) -> dict[str, str]:
    r"""Reads (id, name) rows; of several names of an identifier, the first one is
    used.

    Args:
        source: A delimited file, an RDF file (see :meth:`read_rdf_labels`), a
            :class:`pandas.DataFrame`, or an iterable.
        header (bool, optional): Whether a file's first row is a header. If
            :obj:`None`, a row of known column names is one; any other header does
            no harm, because it is not an identifier. (default: :obj:`None`)
        columns (sequence, optional): The names of the two columns, if the file has
            other columns. (default: :obj:`None`)
        separator (str, optional): The separator of fields in a file.
            (default: :obj:`None`, detected from its first row)
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)

    Example:
        >>> read_labels([("Q42", "Douglas Adams"), ("Q5", None)])
        {'Q42': 'Douglas Adams'}
    """
    if isinstance(source, (str, os.PathLike)) and is_rdf(source):
        return read_rdf_labels(source, progress)
    wanted = Columns(LABELS, header, columns, separator=separator)
    labels: dict[str, str] = {}
    for block in source_rows(source, wanted, progress):
        for identifier, name in zip(*block.columns):
            if name.strip():
                labels.setdefault(identifier, name)
    return labels


def labelled(names: Sequence[str], labels: Mapping[str, str]) -> list[str]:
    r"""Replaces identifiers by labels, such that names stay distinct.

    Example:
        >>> labelled(["P22", "P25", "P40"], {"P22": "parent", "P25": "parent"})
        ['parent (P22)', 'parent (P25)', 'P40']
    """
    found = [labels.get(name, name) for name in names]
    owners = Counter(found)
    return [
        label if label == name or owners[label] == 1 else f"{label} ({name})"
        for name, label in zip(names, found)
    ]
