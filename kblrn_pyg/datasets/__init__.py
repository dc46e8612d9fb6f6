"""The data sets of the paper, an embedded one, and a user's own."""

from kblrn_pyg.datasets.families import Families
from kblrn_pyg.datasets.freebase import FB15k, FB15k237, FB15k237Num, FB15kNum
from kblrn_pyg.datasets.kale import FB122, WN18
from kblrn_pyg.datasets.load import DATASETS, load_dataset
from kblrn_pyg.datasets.local import LocalKB, write_local_kb

__all__ = [
    "DATASETS",
    "FB122",
    "WN18",
    "FB15k",
    "FB15k237",
    "FB15k237Num",
    "FB15kNum",
    "Families",
    "LocalKB",
    "load_dataset",
    "write_local_kb",
]
