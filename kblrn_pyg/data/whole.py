"""Files that appear whole or not at all."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from kblrn_pyg.data.rows import PathLike


@contextmanager
def whole_file(path: PathLike, mode: str = "wb", **kwargs: Any) -> Iterator[IO[Any]]:
    r"""Opens a file for writing that gets its name when it is complete.

    Args:
        path (str): The file to write; its folder is made if need be.
        mode (str, optional): See :meth:`open`. (default: :obj:`"wb"`)
        **kwargs (optional): Further arguments of :meth:`open`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Opened by name, because files of 'tempfile' are for their owner alone.
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, mode, **kwargs) as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
