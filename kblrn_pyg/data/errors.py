"""The one error of everything that reads what a user wrote."""

import os
from collections.abc import Sequence

from kblrn_pyg.printable import printable, shortened


class DataError(ValueError):
    r"""Raised when an input file, a name or a knowledge base cannot be used.

    The message is one line, meant for the person who wrote the input:
    :obj:`path:line: what is wrong and what was expected`.

    Args:
        message (str): What is wrong and what was expected.
        path (str, optional): The file. (default: :obj:`None`)
        line (int, optional): The line of the file, from 1.
            (default: :obj:`None`)
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
    ) -> None:
        self.path = None if path is None else os.fspath(path)
        self.line = line
        # Quoted input may hold line ends, commands to a terminal, or a whole book.
        message = shortened(printable(message))
        place = "".join(f"{part}:" for part in (self.path, line) if part is not None)
        super().__init__(f"{place} {message}" if place else message)


class HeaderError(DataError):
    r"""Raised when the first row of a file may be a header, of unknown names.

    Whoever asks the person that wrote the file gets by with what it says.

    Args:
        message (str): What is wrong and what was expected.
        path (str, optional): The file. (default: :obj:`None`)
        line (int, optional): The line of the file, from 1.
            (default: :obj:`None`)
        row (sequence, optional): The row. (default: :obj:`()`)
        expected (sequence, optional): What its columns must be.
            (default: :obj:`()`)
    """

    def __init__(
        self,
        message: str,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        row: Sequence[str] = (),
        expected: Sequence[str] = (),
    ) -> None:
        super().__init__(message, path, line)
        self.row, self.expected = list(row), tuple(expected)
