"""Splits delimited text into fields, and encodes names as numbers."""

from typing import NamedTuple

import numpy as np
from numba import njit

_NEWLINE, _RETURN, _QUOTE = ord("\n"), ord("\r"), ord('"')
# What 'cut_fields' stops at, to be looked at row by row.
UNUSUAL = (
    "",
    "quotes inside of fields",
    "a carriage return or NUL inside of a line",
    "lines that are not rows",
    "names with spaces around them, or without letters",
)
_QUOTES, _CONTROL, _NO_ROW, _BLANK = 1, 2, 3, 4
_BASIS, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_MIX, _HALF = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32)
_AT_ONCE = 256  # rows
_NO_ROOM = -2
_EXACT = 1 << 53  # up to here, integers are numbers in double precision
_POWERS = np.array([float(f"1e{i}") for i in range(23)])  # which are exact


class Fields(NamedTuple):
    r"""Fields of rows in a text, by columns.

    Args:
        begin: Where each field begins.
        end: Where it ends.
        digest: A hash of each.
        ending: The last eight letters of each, in one number.
    """

    begin: np.ndarray
    end: np.ndarray
    digest: np.ndarray
    ending: np.ndarray


class Table(NamedTuple):
    r"""A hash table of names.

    Args:
        slots: A part of the hash and the id of a name, or -1.
        digests: The hash of each name.
        endings: The last eight letters of each name.
        ptr: Where each name begins.
        letters: All names, one behind the other.
        size: The number of names, and of letters.
    """

    slots: np.ndarray
    digests: np.ndarray
    endings: np.ndarray
    ptr: np.ndarray
    letters: np.ndarray
    size: np.ndarray


@njit(cache=True, nogil=True)
def cut_fields(text, mark, is_csv, place_of, num_names, fields):
    r"""Cuts text into rows of fields, and stops at what is unusual.

    Args:
        text: Whole lines.
        mark: What separates fields.
        is_csv: Whether fields may be enclosed in quotes, and spaces around them do
            not count.
        place_of: Which of the wanted columns each column is, or -1.
        num_names: How many of the wanted ones are names.
        fields: Where to write the wanted ones.

    Returns:
        The number of rows, which of :obj:`UNUSUAL` was found, 0 for none, and
        whether all letters of wanted fields are ASCII.
    """
    size, width, at, row, letters = len(text), len(place_of), 0, 0, 0
    while at < size:
        if row == fields.begin.shape[1]:
            return row, _NO_ROW, letters < 128
        for column in range(width):
            is_quoted = is_csv and at < size and text[at] == _QUOTE
            if is_quoted:
                at += 1
                begin = at
                while at < size and text[at] != _QUOTE:
                    letter = text[at]
                    if letter == _NEWLINE or letter == _RETURN or letter == 0:
                        return row, _QUOTES, letters < 128
                    at += 1
                if at == size:
                    return row, _QUOTES, letters < 128
                end = at
                at += 1
            else:
                begin = at
                while at < size:
                    letter = text[at]
                    if letter == mark or letter == _NEWLINE or letter == _RETURN:
                        break
                    if letter == 0:
                        return row, _CONTROL, letters < 128
                    if is_csv and letter == _QUOTE:
                        return row, _QUOTES, letters < 128
                    at += 1
                end = at
            if at < size and text[at] == _RETURN:
                at += 1
                if at == size or text[at] != _NEWLINE:
                    return row, _CONTROL, letters < 128
            is_last = at == size or text[at] == _NEWLINE
            if not is_last and text[at] != mark:
                return row, _QUOTES, letters < 128
            if is_last != (column == width - 1):
                return row, _NO_ROW, letters < 128
            at += 1
            place = place_of[column]
            if place >= 0:
                if begin == end or (
                    place < num_names and _is_blank(text, begin, end, is_csv)
                ):
                    return row, _BLANK, letters < 128
                fields.begin[place, row] = begin
                fields.end[place, row] = end
                letters |= _digest(text, place, row, fields)
        row += 1
    return row, 0, letters < 128


@njit(cache=True, nogil=True)
def digest_fields(text, fields):
    """Hashes fields."""
    for place in range(fields.begin.shape[0]):
        for row in range(fields.begin.shape[1]):
            _digest(text, place, row, fields)


@njit(cache=True, nogil=True)
def number_fields(text, fields, columns, first, table, is_new, ids):
    r"""Gives names their ids, row by row, and new names the next ones.

    Args:
        text: The text of the fields.
        fields: The fields.
        columns: Which columns.
        first: The row to begin with.
        table: The names so far.
        is_new: Whether new names get ids; otherwise theirs is -1.
        ids: Where to write the ids.

    Returns:
        The row before which the table needs more room, or the number of rows.
    """
    # Arrays by themselves: handing over tuples of them takes longer than a look.
    begins, ends, digests, endings = fields
    num_rows = ids.shape[1]
    for first_row in range(first, num_rows, _AT_ONCE):
        last_row = min(first_row + _AT_ONCE, num_rows)
        for i, place in enumerate(columns):
            rows = slice(first_row, last_row)
            _look_up(
                text,
                begins[place, rows],
                ends[place, rows],
                digests[place, rows],
                endings[place, rows],
                table,
                ids[i, rows],
            )
        for row in range(first_row, last_row):
            for i, place in enumerate(columns):
                if ids[i, row] < 0:
                    name = text[begins[place, row] : ends[place, row]]
                    digest, ending = digests[place, row], endings[place, row]
                    ids[i, row] = _number(name, digest, ending, table, is_new)
                    if ids[i, row] == _NO_ROOM:
                        return row
    return num_rows


@njit(cache=True, nogil=True)
def _look_up(text, begin, end, digest, ending, table, ids):
    """Finds most of the names that are in a table.

    Tables are larger than caches. Looking for many names at the same time hides
    how long each access takes.
    """
    slots, _, name_ending, ptr, letters, _ = table
    mask = np.uint64(len(slots) - 1)
    for i in range(len(ids)):
        slot, part = digest[i] & mask, _part(digest[i])
        entry = slots[slot]
        while entry >= 0 and entry >> 32 != part:
            slot = (slot + np.uint64(1)) & mask
            entry = slots[slot]
        ids[i] = entry & 0xFFFFFFFF if entry >= 0 else -1
    for i in range(len(ids)):
        found, length = ids[i], end[i] - begin[i]
        if found < 0:
            continue
        start = ptr[found]
        is_same = name_ending[found] == ending[i] and ptr[found + 1] - start == length
        if is_same and length > 8:  # there is more than the ending tells
            for j in range(length - 8):
                is_same &= letters[start + j] == text[begin[i] + j]
        if not is_same:
            ids[i] = -1


@njit(inline="always")
def _number(name, digest, ending, table, is_new):
    """Looks for a name wherever it may be, and adds it if it is new."""
    slots, digests, endings, ptr, letters, size = table
    mask, part = np.uint64(len(slots) - 1), _part(digest)
    slot = digest & mask
    while slots[slot] >= 0:
        found = slots[slot] & 0xFFFFFFFF
        is_likely = digests[found] == digest and endings[found] == ending
        if is_likely and np.array_equal(letters[ptr[found] : ptr[found + 1]], name):
            return found
        slot = (slot + np.uint64(1)) & mask
    if not is_new:
        return -1
    number, start = size
    if (
        8 * number >= 5 * len(slots)
        or number == len(digests)
        or start + len(name) > len(letters)
    ):
        return _NO_ROOM
    letters[start : start + len(name)] = name
    slots[slot] = part << 32 | number
    digests[number], endings[number] = digest, ending
    ptr[number + 1] = start + len(name)
    size[0], size[1] = number + 1, start + len(name)
    return number


@njit(cache=True, nogil=True)
def fill_slots(digests, slots):
    """Puts all names into empty slots."""
    mask = np.uint64(len(slots) - 1)
    for i in range(len(digests)):
        slot = digests[i] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = _part(digests[i]) << 32 | i


@njit(cache=True, nogil=True)
def join_letters(ptr, letters, mark, out):
    """Joins names by a mark."""
    at = 0
    for i in range(len(ptr) - 1):
        if i > 0:
            out[at] = mark
            at += 1
        for j in range(ptr[i], ptr[i + 1]):
            out[at] = letters[j]
            at += 1


@njit(cache=True, nogil=True)
def read_numbers(text, begin, end, values, is_hard):
    """Reads numbers whose digits tell them exactly, and notes the other ones."""
    for row in range(len(begin)):
        values[row], is_hard[row] = _read_number(text, begin[row], end[row])


@njit(inline="always")
def _read_number(text, at, end):
    is_negative = text[at] == ord("-")
    if is_negative or text[at] == ord("+"):
        at += 1
    number, power, num_digits, is_behind = 0, 0, 0, False
    while at < end:
        letter = text[at]
        if ord("0") <= letter <= ord("9"):
            number = 10 * number + (letter - ord("0"))
            if number > _EXACT:
                return 0.0, True
            num_digits += 1
            power -= is_behind
        elif letter == ord(".") and not is_behind:
            is_behind = True
        else:  # an exponent, or no number
            return 0.0, True
        at += 1
    if num_digits == 0 or power < -22:
        return 0.0, True
    value = number / _POWERS[-power]
    return -value if is_negative else value, False


@njit(inline="always")
def _digest(text, place, row, fields):
    """Hashes a field, and returns the bits that any of its letters has."""
    digest, ending, seen = _BASIS, np.uint64(0), np.uint8(0)
    for i in range(fields.begin[place, row], fields.end[place, row]):
        digest = (digest ^ np.uint64(text[i])) * _PRIME
        ending = ending << np.uint64(8) | np.uint64(text[i])
        seen |= text[i]
    digest = (digest ^ (digest >> _HALF)) * _MIX
    fields.digest[place, row] = digest ^ (digest >> _HALF)
    fields.ending[place, row] = ending
    return seen


@njit(cache=True, nogil=True)
def _part(digest):
    """The bits of a hash that are kept beside ids; they are not negative."""
    return np.int64(digest >> np.uint64(33))


@njit(inline="always")
def _is_blank(text, begin, end, strips):
    """Returns whether a name has no letters, or, if it strips, spaces around it."""
    if strips:
        return _is_space(text[begin]) or _is_space(text[end - 1])
    num_spaces = 0
    for i in range(begin, end):
        num_spaces += _is_space(text[i])
    return num_spaces == end - begin


@njit(cache=True, nogil=True)
def _is_space(letter):
    return letter == 32 or 9 <= letter <= 13 or 28 <= letter <= 31
