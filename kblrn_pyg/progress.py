"""Progress bars, or lines if there is no terminal."""

import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

# How often a line is written to what is not a terminal.
LINE_SECONDS = 60.0


class ProgressBar(tqdm):
    r"""A progress bar of :obj:`tqdm`; if standard error is not a terminal, one line
    per minute.

    Tasks that finish within a minute then print nothing.

    Args:
        *args (optional): See :class:`tqdm.tqdm`.
        **kwargs (optional): See :class:`tqdm.tqdm`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not sys.stderr.isatty():
            seconds = LINE_SECONDS
            kwargs |= {"mininterval": seconds, "maxinterval": seconds + 1}
            kwargs |= {"delay": seconds, "miniters": 1, "ncols": 100}
        super().__init__(*args, **kwargs)

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        """Returns a function that shows a bar in place of the last one, or below."""
        if sys.stderr.isatty():
            return tqdm.status_printer(file)

        def write(text: str) -> None:
            if text.strip():
                file.write(f"{text.rstrip()}\n")
                file.flush()

        return write
