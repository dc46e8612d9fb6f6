"""Triples and numbers in Parquet files."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kblrn_pyg.data.encode import Encoded, encode
from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import VALUES, Columns, open_source


def read_parquet(path: Path, wanted: Columns, progress: bool = False) -> Encoded:
    r"""Reads a :obj:`.parquet` file, whose columns are found by their names.

    Names are strings or integers, values are numbers. The line of an error is
    the number of the row, from 1.

    Args:
        path (pathlib.Path): The file.
        wanted (Columns): The columns to read.
        progress (bool, optional): Whether to show a progress bar.
            (default: :obj:`False`)
    """
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "reading Parquet needs pyarrow: pip install 'kblrn_pyg[arrow]'"
        ) from None
    wanted.check()
    with open_source(path, progress, has_lines=False) as (file, tick):
        try:
            columns = _columns(file, wanted, path)
            tick()
            encoded = encode(columns, wanted)
        except (pyarrow.ArrowException, OSError, KeyError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"broken Parquet: {reason}", path, 1) from None
    _refuse_unusable(encoded, wanted, path)
    return encoded


def _columns(file: Any, wanted: Columns, path: Path) -> list[Any]:
    from pyarrow.parquet import ParquetFile

    content = ParquetFile(file)
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


def _convert(column: Any, name: str, path: Path) -> Any:
    """Makes names dictionaries of strings, and values doubles."""
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
    if column.null_count:
        _refuse(column.is_null().to_numpy(), f"the {name} is empty", path)
    if is_value:
        return column.cast(kind).cast(float64(), safe=False)
    return column.cast(kind).cast(string()).dictionary_encode()


def _refuse_unusable(encoded: Encoded, wanted: Columns, path: Path) -> None:
    """Refuses names without letters, and values that are not finite."""
    entities, kinds, columns, _ = encoded
    for name, names, column in zip(wanted.names, (entities, kinds, entities), columns):
        if name == VALUES[-1]:
            message = "the value is not a finite number, expected one"
            _refuse(~np.isfinite(column), message, path)
        elif not all(map(str.strip, names)):
            is_blank = np.array([not one.strip() for one in names])
            _refuse(is_blank[column], f"the {name} is empty", path)


def _refuse(is_bad: NDArray[np.bool_], message: str, path: Path) -> None:
    """Raises an error about the first bad row, if there is one."""
    if is_bad.any():
        raise DataError(message, path, int(is_bad.argmax()) + 1)
