"""Files whose lines fit into memory."""

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO

from kblrn_pyg.data.errors import DataError

# The longest line of a file that is read.
MAX_LINE_BYTES = 1 << 24

_AHEAD = 1 << 20  # how much is read at once


def read_settings_text(path: Path) -> str:
    r"""Returns a text of settings, which is never longer than a line may be.

    Args:
        path (Path): The file, which may be one without an end.
    """
    with path.open("rb") as file:
        raw = file.read(MAX_LINE_BYTES + 1)
    if len(raw) > MAX_LINE_BYTES:
        raise DataError(f"is longer than {MAX_LINE_BYTES >> 20} MB", path)
    return io.StringIO(raw.decode("utf-8"), newline=None).read()


def short_lines(path: Path, file: BinaryIO) -> BinaryIO:
    r"""Returns a file that refuses lines that are too long.

    Args:
        path (Path): The name in error messages.
        file (file): The file, unzipped.
    """
    return io.BufferedReader(_ShortLines(path, file), _AHEAD)


class _ShortLines(io.RawIOBase):
    """A file that limits the length of lines."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._num_read = self._behind_line_end = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        end = content.rfind(b"\n")
        if end >= 0:
            self._behind_line_end = self._num_read + end + 1
        self._num_read += len(content)
        if self._num_read - self._behind_line_end > MAX_LINE_BYTES:
            message = f"the line is longer than {MAX_LINE_BYTES >> 20} MB"
            raise DataError(message, self._path, self._line())
        return len(content)

    def _line(self) -> int | None:
        """Counts lines, which takes time only where one of them is refused."""
        if self._behind_line_end == 0:
            return 1
        if not self._path.is_file():
            return None
        is_zipped = self._path.suffix == ".gz"
        line, left = 1, self._behind_line_end
        with gzip.open(self._path) if is_zipped else open(self._path, "rb") as file:
            while left > 0 and (content := file.read(min(left, _AHEAD))):
                line, left = line + content.count(b"\n"), left - len(content)
        return line
