"""Files that are written whole or not at all."""

import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike


@contextmanager
def whole_file(path: PathLike, mode: str = "wb", **kwargs: Any) -> Iterator[IO[Any]]:
    r"""Opens a file for writing that replaces the existing file when it is
    complete.

    After any failure in between, even a loss of power, the old file is still there.

    Args:
        path (str): The file to write; missing parent directories are created.
        mode (str, optional): See :meth:`open`. (default: :obj:`"wb"`)
        **kwargs (optional): Additional arguments of :meth:`open`.

    Raises:
        DataError: If the file cannot be written.
    """
    path = Path(os.path.realpath(path))  # links stay, and so do devices and pipes
    mode_before = _mode(path)
    if mode_before is not None and not stat.S_ISREG(mode_before):
        with _told(path), open(path, mode, **kwargs) as file:
            yield file
        return
    # Opened by name, because files of 'tempfile' are readable by their owner only.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, mode, **kwargs) as file:
            if mode_before is not None:  # what is for few stays for few
                os.chmod(temporary, stat.S_IMODE(mode_before))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        raise _failed(path, error, ", what was there before is still there") from error
    # The new name lasts, where the file system can do that.
    with suppress(OSError):
        handle = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _mode(path: Path) -> int | None:
    """Returns the type and the permissions of an existing path."""
    try:
        mode = path.stat().st_mode
    except OSError:  # which writing tells, if it matters
        return None
    return None if stat.S_ISDIR(mode) else mode


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: Path, error: OSError, more: str = "") -> DataError:
    return DataError(f"cannot be written ({error.strerror or error}){more}", path)


def write_text(path: PathLike, text: str) -> None:
    """Writes a UTF-8 text file; see :meth:`whole_file`."""
    write_bytes(path, text.encode())


def write_bytes(path: PathLike, *contents: bytes | memoryview) -> None:
    """Writes a binary file, in one or several chunks; see :meth:`whole_file`."""
    with whole_file(path) as file:
        for content in contents:
            file.write(content)
