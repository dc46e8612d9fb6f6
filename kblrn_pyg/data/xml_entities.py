"""Protection against XML entities that expand without limit."""

import io
import re
from pathlib import Path
from typing import Any, BinaryIO

from kblrn_pyg.data.errors import DataError

_AHEAD = 1 << 20
_BEGIN = re.compile(rb"<!ENTITY", re.IGNORECASE)
# A namespace, as OWL files abbreviate them: short, and without other entities.
_PLAIN = re.compile(
    rb"<!ENTITY\s+[^\s%&\"']{1,200}\s+(\"[^\"&]{0,1000}\"|'[^'&]{0,1000}')",
    re.IGNORECASE,
)
_LONGEST = 1500  # bytes of a plain one


def without_nested_entities(path: Path, file: BinaryIO) -> BinaryIO:
    r"""Returns a file that refuses nested entities, and long ones.

    Ten entities, each with ten times the previous one, expand a few hundred
    characters to ten billion.

    Args:
        path (Path): The name in error messages.
        file (file): The file, unzipped.
    """
    return io.BufferedReader(_PlainEntities(path, file), _AHEAD)


class _PlainEntities(io.RawIOBase):
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file
        self._rest = b""  # what may be the beginning of an entity
        self._line = 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        buffer[: len(content)] = content
        self._check(self._rest + content, is_end=not content)
        return len(content)

    def _check(self, content: bytes, is_end: bool) -> None:
        if b"\0" in content:
            raise DataError("is not UTF-8, expected RDF/XML", self._path, self._line)
        keep = len(content) - min(len(content), len(b"<!ENTITY") - 1)
        for match in _BEGIN.finditer(content):
            at = match.start()
            if _PLAIN.match(content, at) is None:
                if not is_end and len(content) - at < _LONGEST:
                    keep = at
                    break
                line = self._line + content.count(b"\n", 0, at)
                message = "an entity with entities in it, or a long one, expected none"
                raise DataError(message, self._path, line)
        self._line += content.count(b"\n", 0, keep)
        self._rest = content[keep:]
