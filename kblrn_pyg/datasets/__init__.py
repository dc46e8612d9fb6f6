"""The data sets of the paper, an embedded one, and a user's own."""

from typing import TYPE_CHECKING

from kblrn_pyg.lazy import lazy_imports

if TYPE_CHECKING:
    from kblrn_pyg.datasets.families import Families, FamiliesNum
    from kblrn_pyg.datasets.freebase import FB15k, FB15k237, FB15k237Num, FB15kNum
    from kblrn_pyg.datasets.kale import FB122, WN18
    from kblrn_pyg.datasets.load import DATASETS, load_dataset
    from kblrn_pyg.datasets.local import LocalKB, write_local_kb
else:
    __getattr__, __dir__ = lazy_imports(__name__)

__all__ = [
    "DATASETS",
    "FB122",
    "WN18",
    "FB15k",
    "FB15k237",
    "FB15k237Num",
    "FB15kNum",
    "Families",
    "FamiliesNum",
    "LocalKB",
    "load_dataset",
    "write_local_kb",
]
