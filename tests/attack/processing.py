"""Processes a data set: ``python -m attack.processing ROOT``."""

import sys

import torch

from kblrn_pyg.data import make_kb
from kblrn_pyg.data.store import save_splits
from kblrn_pyg.datasets.base import KBDataset
from kblrn_pyg.datasets.names import Counts

NUM_NODES, NUM_RELATIONS = 20_000, 30


class LargeDataset(KBDataset):
    """Random facts, which take a while to be written."""

    counts = Counts(NUM_NODES, NUM_RELATIONS, 0, 0, 0)

    def process(self):
        drawn = torch.Generator().manual_seed(0)
        sizes = NUM_NODES, NUM_RELATIONS, NUM_NODES
        ids = [torch.randint(size, (400_000,), generator=drawn) for size in sizes]
        names = [f"e{i}" for i in range(NUM_NODES)]
        kb = make_kb(names, [f"r{i}" for i in range(NUM_RELATIONS)], tuple(ids))
        save_splits(dict.fromkeys(self.splits, kb), self.processed_paths[0])

    def _download(self):
        pass


if __name__ == "__main__":
    print(LargeDataset(sys.argv[1]))
