"""Data sets by name or path, as the commands take them."""

import os
from pathlib import Path

from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.families import Families
from kblrn_pyg.datasets.freebase import FB15k, FB15k237, FB15k237Num, FB15kNum
from kblrn_pyg.datasets.kale import FB122, WN18
from kblrn_pyg.datasets.local import LocalKB, split_path

# By the names that the paper uses.
DATASETS: dict[str, type[KBDataset] | type[Families]] = {
    "Families": Families,
    "FB15k": FB15k,
    "FB15k-num": FB15kNum,
    "FB15k-237": FB15k237,
    "FB15k-237-num": FB15k237Num,
    "WN18": WN18,
    "FB122": FB122,
}


def default_root() -> Path:
    """Returns where data sets live unless someone says otherwise."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "kblrn_pyg"


def known_name(name: str) -> str | None:
    r"""Returns the data set that a name means, :obj:`None` if it means none.

    Args:
        name (str): One of the names in :obj:`DATASETS`, in any case.
    """
    return {known.lower(): known for known in DATASETS}.get(name.lower())


def load_dataset(name: str, root: str | None = None) -> dict[str, HeteroData]:
    r"""Loads all splits of a data set.

    Args:
        name (str): One of the names in :obj:`DATASETS`, or the directory of an
            imported data set.
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, the user's cache)

    Returns:
        The knowledge base of each split.
    """
    known = known_name(name)
    if known is not None:
        if split_path(name, "train").exists():
            raise DataError(
                f"{name!r} is the data set {known} and a directory here, expected "
                f"{os.path.join(os.curdir, name)!r} for the directory"
            )
        cls = DATASETS[known]
        path = str(Path(root or default_root()) / known)
        return {split: cls(path, split)[0] for split in cls.splits}
    if not Path(name).is_dir():
        raise DataError(
            f"unknown data set {name!r}, expected one of {', '.join(DATASETS)} or "
            "the directory of an imported one"
        )
    return {split: LocalKB(name, split)[0] for split in ("train", "val", "test")}
