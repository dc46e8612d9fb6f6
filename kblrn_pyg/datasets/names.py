"""The names and counts of the data sets, available without loading one."""

import os
from pathlib import Path
from typing import NamedTuple

from kblrn_pyg.data.errors import DataError
from kblrn_pyg.data.rows import PathLike


class Counts(NamedTuple):
    """The expected counts of a data set, with triples by split."""

    entities: int
    relations: int
    train: int
    val: int
    test: int


# By the names that the paper uses.
COUNTS = {
    "Families": Counts(2232, 12, 15092, 1659, 1659),
    "Families-num": Counts(2237, 16, 18376, 2020, 2020),
    "FB15k": Counts(14951, 1345, 483142, 50000, 59071),
    "FB15k-num": Counts(14951, 1345, 483142, 5156, 6012),
    "FB15k-237": Counts(14541, 237, 272115, 17535, 20466),
    "FB15k-237-num": Counts(14541, 237, 272115, 1058, 1215),
    "WN18": Counts(40943, 18, 141442, 5000, 5000),
    "FB122": Counts(9738, 122, 91638, 9595, 11243),
}

# The splits of an imported data set, and the file of all splits of any.
SPLITS = ("train", "val", "test")
SPLITS_FILE = "splits.kb"


def default_root() -> Path:
    """Returns the default directory of data sets."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kblrn_pyg"


def known_name(name: str) -> str | None:
    r"""Returns the data set with a name, or :obj:`None` if there is none.

    Args:
        name (str): One of the names in :obj:`COUNTS`, in any case.
    """
    return {known.lower(): known for known in COUNTS}.get(name.lower())


def splits_path(root: PathLike) -> Path:
    """Returns the file of all splits of an imported data set."""
    return Path(root) / "processed" / SPLITS_FILE


def check_name(name: str) -> None:
    r"""Refuses a name that is neither that of a data set nor that of a directory.

    Args:
        name (str): One of the names in :obj:`COUNTS`, in any case, or the
            directory of an imported data set.
    """
    known = known_name(name)
    if known is not None and splits_path(name).exists():
        raise DataError(
            f"{name!r} is the data set {known} and a directory here, expected "
            f"{os.path.join(os.curdir, name)!r} for the directory"
        )
    if known is None and not Path(name).is_dir():
        raise DataError(
            f"unknown data set {name!r}, expected one of {', '.join(COUNTS)} or "
            "the directory of an imported one"
        )
