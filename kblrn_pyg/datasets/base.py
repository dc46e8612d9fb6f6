"""The base class of all data sets."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path

from torch_geometric.data import HeteroData, InMemoryDataset

from kblrn_pyg.data import DataError, validate_kb
from kblrn_pyg.data.kb import num_edges
from kblrn_pyg.data.store import load_splits, save_splits
from kblrn_pyg.data.whole import write_text
from kblrn_pyg.datasets.files import RawFile
from kblrn_pyg.datasets.names import SPLITS_FILE, Counts

Transform = Callable[[HeteroData], HeteroData]


# Beside the data set: by which 'pre_transform' it was made.
_NOTE = "pre_transform.txt"


def check_counts(kbs: dict[str, HeteroData], expected: Counts, name: str) -> None:
    """Refuses a data set whose counts differ from the expected ones."""
    train = kbs["train"]
    found = [train["entity"].num_nodes, len(train.edge_types)]
    for split in ("train", "val", "test"):
        found.append(num_edges(kbs[split], "edge_label_index"))
    for kind, number, wanted in zip(Counts._fields, found, expected):
        if number != wanted:
            raise DataError(f"{name} has {number:,} {kind}, expected {wanted:,}")


def _name_of(transform: Transform | None) -> str:
    """Returns a description of a transform that is the same in every process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(transform))


class KBDataset(InMemoryDataset):
    r"""Base class of data sets with a training, a validation and a test split.

    Raw files are looked up below the directory in the environment variable
    :obj:`KBLRN_DATA`, then in :obj:`root/raw`, and otherwise downloaded to the
    latter.

    Args:
        root (str): Root directory where the data set should be saved.
        split (str, optional): :obj:`"train"`, :obj:`"val"` or :obj:`"test"`.
            (default: :obj:`"train"`)
        transform (callable, optional): A function that takes in a
            :class:`~torch_geometric.data.HeteroData` and returns a
            transformed version, before every access. (default: :obj:`None`)
        pre_transform (callable, optional): The same, applied once to each
            split before it is saved. (default: :obj:`None`)
        force_reload (bool, optional): Whether to process the raw files again.
            (default: :obj:`False`)
    """

    files: tuple[RawFile, ...] = ()
    splits: tuple[str, ...] = ("train", "val", "test")
    counts: Counts

    def __init__(
        self,
        root: str,
        split: str = "train",
        transform: Transform | None = None,
        pre_transform: Transform | None = None,
        force_reload: bool = False,
    ) -> None:
        if split not in self.splits:
            raise ValueError(f"'split' must be one of {self.splits} (got {split!r})")
        super().__init__(str(root), transform, pre_transform, force_reload=force_reload)
        self.split = split
        self.kbs = load_splits(self.processed_paths[0])  # of all splits
        if split not in self.kbs:
            raise DataError(
                f"the {split} split is missing, delete it and load again",
                self.processed_paths[0],
            )
        self._data = self.kbs[split]

    @property
    def raw_paths(self) -> list[str]:
        return [str(file.locate(self.raw_dir)) for file in self.files]

    @property
    def processed_file_names(self) -> list[str]:
        return [SPLITS_FILE]

    def _download(self) -> None:
        # PyG asks for the raw files even where all is processed already.
        processed = all(Path(path).exists() for path in self.processed_paths)
        if self.force_reload or not processed:
            super()._download()

    def _process(self) -> None:
        # PyG's own unpickles what it finds beside the data set, which may be code.
        note, now = Path(self.processed_dir) / _NOTE, _name_of(self.pre_transform)
        if not self.force_reload and Path(self.processed_paths[0]).exists():
            then = note.read_text(encoding="utf-8") if note.exists() else now
            if then != now:
                warnings.warn(
                    f"the data set was processed with the 'pre_transform' {then}, not "
                    f"{now}; 'force_reload=True' processes it again",
                    stacklevel=2,
                )
            return
        self.process()
        write_text(note, now)

    def download(self) -> None:
        for file in self.files:
            file.fetch(self.raw_dir)

    def process(self) -> None:
        for file, path in zip(self.files, self.raw_paths):
            file.verify(Path(path))
        kbs = self.build(dict(zip((file.name for file in self.files), self.raw_paths)))
        check_counts(kbs, self.counts, type(self).__name__)
        for split in self.splits:
            validate_kb(kbs[split])
            if self.pre_transform is not None:
                kbs[split] = self.pre_transform(kbs[split])
        kbs = {split: kbs[split] for split in self.splits}
        save_splits(kbs, self.processed_paths[0])

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        r"""Builds the knowledge base of each split.

        Args:
            paths (dict): The path of each raw file, by the name of the file.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.split!r})"
