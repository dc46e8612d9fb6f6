"""Loads data sets by name or path, as the commands accept them."""

from pathlib import Path

from torch_geometric.data import HeteroData

from kblrn_pyg.data import DataError
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.families import Families, FamiliesNum
from kblrn_pyg.datasets.freebase import FB15k, FB15k237, FB15k237Num, FB15kNum
from kblrn_pyg.datasets.kale import FB122, WN18
from kblrn_pyg.datasets.local import load_local_kb
from kblrn_pyg.datasets.names import (
    check_name,
    default_root,
    known_name,
    splits_path,
)

# By the names that the paper uses.
DATASETS: dict[str, type[KBDataset] | type[Families]] = {
    "Families": Families,
    "Families-num": FamiliesNum,
    "FB15k": FB15k,
    "FB15k-num": FB15kNum,
    "FB15k-237": FB15k237,
    "FB15k-237-num": FB15k237Num,
    "WN18": WN18,
    "FB122": FB122,
}


def load_dataset(
    name: str, root: str | None = None, make: bool = True
) -> dict[str, HeteroData]:
    r"""Loads all splits of a data set.

    Args:
        name (str): One of the names in :obj:`DATASETS`, or the directory of an
            imported data set.
        root (str, optional): The directory that holds the data sets.
            (default: :obj:`None`, the user's cache)
        make (bool, optional): Whether to download and write missing data sets at a
            given root. This should be disabled if only the settings of a run name
            the root, because these may not be trusted. (default: :obj:`True`)

    Returns:
        The knowledge base of each split.
    """
    check_name(name)
    known = known_name(name)
    if known is None:
        return dict(load_local_kb(name))
    path = str(Path(root or default_root()) / known)
    is_file = issubclass(DATASETS[known], KBDataset)  # others are in this package
    if root and not make and is_file and not splits_path(path).exists():
        raise DataError(
            f"the data set {known} is not in {root!r}, where the run says that it is"
        )
    return dict(DATASETS[known](path).kbs)
