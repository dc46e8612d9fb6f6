"""The separator between the fields of a delimited file."""

import csv
import stat
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

# Looked for in this order, behind the one that a file's name promises.
MARKS = ("\t", ";", ",", "|")

_SAMPLE_BYTES = 1 << 16


def split_line(line: str, mark: str) -> list[str]:
    r"""Splits one line into its fields.

    Example:
        >>> split_line('Ada; "Doe; Jo"', ";"), split_line("Ada\tspouse", "\t")
        (['Ada', 'Doe; Jo'], ['Ada', 'spouse'])
    """
    if mark == "\t":
        return line.rstrip("\r\n").split(mark)
    try:
        rows = csv.reader([line], delimiter=mark, skipinitialspace=True)
        return [field.strip() for field in next(rows, [])]
    except csv.Error:
        return []


def find_separator(line: str, usual: str, fits: Callable[[Sequence[str]], bool]) -> str:
    r"""Returns the separator of fields in a line.

    Args:
        line (str): The first line of a file.
        usual (str): The default separator of such files.
        fits (callable): Returns whether fields may be a row of the file.

    Example:
        >>> find_separator("Ada;age;1,5", ",", lambda fields: len(fields) == 3)
        ';'
    """
    marks = [usual, *(mark for mark in MARKS if mark != usual)]
    found = {mark: split_line(line, mark) for mark in marks}
    for mark in marks:
        if fits(found[mark]):
            return mark
    # None fits: errors are about the row with the most fields.
    return max(marks, key=lambda mark: len(found[mark]))


def sample_lines(path: Path, number: int = 100) -> list[str]:
    r"""Returns the first lines of a file that can be read again.

    There are none if it is not a regular file, or not text; reading it as a whole
    then raises the error.

    Args:
        path (pathlib.Path): The file, :obj:`.gz` or not.
        number (int, optional): The maximum number of lines. (default: :obj:`100`)
    """
    import gzip
    import zlib

    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        is_zipped = path.suffix == ".gz"
        with gzip.open(path) if is_zipped else open(path, "rb") as file:
            text = file.read(_SAMPLE_BYTES).decode("utf-8-sig", errors="ignore")
    except (OSError, EOFError, zlib.error):
        return []
    lines = text.splitlines(keepends=True)
    if len(text.encode()) >= _SAMPLE_BYTES - 4:
        lines = lines[:-1]  # which may be cut
    return list(islice((line for line in lines if line.strip()), number))
