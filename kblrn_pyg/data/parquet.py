"""Triples, numbers and other columns in Parquet files."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.encode import Encoded, encode
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.header import VALUES, Columns
from kblrn_pyg.data.rows import PathLike, open_source
from kblrn_pyg.data.whole import whole_file


def read_parquet(path: Path, wanted: Columns, progress: bool = False) -> Encoded:
    r"""Reads a :obj:`.parquet` file, with columns selected by their names.

    Names are strings or integers, values are numbers. The line of an error is
    the number of the row, from 1.

    Args:
        path (pathlib.Path): The file.
        wanted (Columns): The columns to read.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    _require_pyarrow()
    wanted.check()
    source = open_source(path, progress, has_lines=False)
    with source as (file, tick), _decoding(path):
        columns = _columns(file, wanted, path)
        tick()
        encoded = encode(columns, wanted)
    _refuse_unusable(encoded, wanted, path)
    return encoded


def _columns(file: Any, wanted: Columns, path: Path) -> list[Any]:
    content = _open(file)
    found = content.schema_arrow.names
    order = wanted.find(found)
    if order is None:
        names = ", ".join(wanted.given or wanted.names)
        message = f"the columns are {', '.join(found)}, expected {names}"
        raise DataError(message, path, 1)
    if content.metadata.num_rows == 0:
        raise DataError(f"the file is empty, expected {wanted}", path, 1)
    table = content.read([found[place] for place in order])
    columns = [table[found[place]] for place in order]
    return [_convert(column, name, path) for column, name in zip(columns, wanted.names)]


def read_table(path: Path, wanted: Columns) -> Iterator[dict[str, Any]]:
    r"""Reads some columns of a :obj:`.parquet` file row by row.

    Args:
        path (pathlib.Path): The file.
        wanted (Columns): The columns to read.
    """
    _require_pyarrow()
    with open_source(path, has_lines=False) as (file, _), _decoding(path):
        for batch in _open(file).iter_batches(columns=list(wanted.names)):
            yield from batch.to_pylist()


def column_names(path: Path) -> list[str]:
    """Returns the names of the columns of a :obj:`.parquet` file."""
    _require_pyarrow()
    with open_source(path, has_lines=False) as (file, _), _decoding(path):
        return list(_open(file).schema_arrow.names)


def _open(file: Any) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(file, page_checksum_verification=True)


def _require_pyarrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError(
            "reading Parquet needs pyarrow: pip install 'kblrn_pyg[arrow]'"
        ) from None


@contextmanager
def _decoding(path: Path) -> Iterator[None]:
    """Converts the exceptions of pyarrow and Python about a file to one-line
    errors. Names that are not UTF-8, for instance, do not raise one of pyarrow's
    own errors.
    """
    from pyarrow import ArrowException

    kinds = (ArrowException, OSError, LookupError, OverflowError, TypeError, ValueError)
    try:
        yield
    except DataError:
        raise
    except kinds as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"broken Parquet: {reason}", path, 1) from None


def _convert(column: Any, name: str, path: Path) -> Any:
    """Converts names to dictionaries of strings, and values to doubles."""
    from pyarrow import float64, string, types

    is_value = name == VALUES[-1]
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if is_value:
        is_right = types.is_integer(kind) or types.is_floating(kind)
        is_right |= types.is_decimal(kind)
    else:
        is_right = types.is_string(kind) or types.is_large_string(kind)
        is_right |= types.is_integer(kind)
    if not is_right:
        expected = "numbers" if is_value else "strings or integers"
        message = f"the type of the {name} is {column.type}, expected {expected}"
        raise DataError(message, path, 1)
    if is_value:
        return column.cast(kind).cast(float64(), safe=False).fill_null(float("nan"))
    if column.null_count:
        _refuse(column.is_null().to_numpy(), f"the {name} is empty", path)
    return column.cast(kind).cast(string()).dictionary_encode()


def _refuse_unusable(encoded: Encoded, wanted: Columns, path: Path) -> None:
    """Refuses names without letters, and infinite values."""
    entities, kinds, columns, _ = encoded
    for name, names, column in zip(wanted.names, (entities, kinds, entities), columns):
        if name == VALUES[-1]:
            message = "the value is not a finite number, expected one"
            _refuse(np.isinf(column), message, path)
        elif not all(map(str.strip, names)):
            is_blank = np.array([not one.strip() for one in names])
            _refuse(is_blank[column], f"the {name} is empty", path)


def _refuse(is_bad: NDArray[np.bool_], message: str, path: Path) -> None:
    """Raises an error about the first bad row, if there is one."""
    if is_bad.any():
        raise DataError(message, path, int(is_bad.argmax()) + 1)


def write_parquet(path: PathLike, columns: Mapping[str, Any]) -> None:
    r"""Writes columns to a :obj:`.parquet` file, whole or not at all.

    Args:
        path (str): The file.
        columns (dict): The columns by name.
    """
    try:
        import pyarrow
        from pyarrow.parquet import write_table
    except ImportError:
        raise ImportError(
            "writing Parquet needs pyarrow: pip install 'kblrn_pyg[arrow]'"
        ) from None
    table = pyarrow.table({name: pyarrow.array(one) for name, one in columns.items()})
    with whole_file(path) as file:
        write_table(table, file, write_page_checksum=True)
