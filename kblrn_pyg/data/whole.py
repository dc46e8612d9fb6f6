"""Files that are written whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike


@contextmanager
def whole_file(path: PathLike, mode: str = "wb", **kwargs: Any) -> Iterator[IO[Any]]:
    r"""Opens a file for writing that replaces the one at its path when complete.

    Whatever goes wrong in between, even a loss of power, leaves the old file.

    Args:
        path (str): The file to write; missing parent directories are created.
        mode (str, optional): See :meth:`open`. (default: :obj:`"wb"`)
        **kwargs (optional): Additional arguments of :meth:`open`.

    Raises:
        DataError: If the file cannot be written.
    """
    path = Path(path)
    # Opened by name, because files of 'tempfile' are readable by their owner only.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, mode, **kwargs) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise DataError(
            f"cannot be written ({error.strerror or error}), what was there before is "
            "still there",
            path,
        ) from error
    # The new name lasts, where the file system can do that.
    with suppress(OSError):
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_text(path: PathLike, text: str) -> None:
    """Writes a UTF-8 text file; see :meth:`whole_file`."""
    write_bytes(path, text.encode())


def write_bytes(path: PathLike, *contents: bytes | memoryview) -> None:
    """Writes a binary file, in one or several pieces; see :meth:`whole_file`."""
    with whole_file(path) as file:
        for content in contents:
            file.write(content)
