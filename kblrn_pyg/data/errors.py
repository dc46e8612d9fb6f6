"""The error that is raised for all problems in the user's data."""

import os
from collections.abc import Sequence

from kblrn_pyg.printable import printable, shortened


class DataError(ValueError):
    r"""Raised when an input file, a name or a knowledge base cannot be used.

    The message is a single line for the author of the input:
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
        shown = None if self.path is None else shortened(printable(self.path))
        place = "".join(f"{part}:" for part in (shown, line) if part is not None)
        super().__init__(f"{place} {message}" if place else message)


class HeaderError(DataError):
    r"""Raised when the first row of a file may be a header with unknown names.

    It has the information that is needed to ask the user.

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
