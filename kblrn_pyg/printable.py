"""Replaces control characters in untrusted text before it is printed."""

import re
from typing import Any, TextIO

# Control characters, line and paragraph ends, and what turns the direction of text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LONGEST = 2000


def printable(text: str, keep: str = "") -> str:
    r"""Replaces control characters by their codes.

    Args:
        text (str): The text.
        keep (str, optional): Control characters that stay. (default: :obj:`""`)

    Example:
        >>> print(printable("a\x1b[2Jb"))
        a\x1b[2Jb
    """

    def code(found: re.Match[str]) -> str:
        one = found[0]
        return one if one in keep else one.encode("unicode_escape").decode()

    return _CONTROLS.sub(code, text)


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""Leaves out the middle of a long text.

    Args:
        text (str): The text.
        longest (int, optional): How long it may be. (default: :obj:`2000`)
    """
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    half = longest // 2
    return f"{text[:half]} ... ({left_out:,} characters) ... {text[-half:]}"


class PrintableStream:
    r"""A stream to a terminal, which gets no commands but line ends and tabs.

    Args:
        stream (file): The stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Writes a text without control characters."""
        self._stream.write(printable(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
