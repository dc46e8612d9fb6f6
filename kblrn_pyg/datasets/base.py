"""What all data sets share."""

from collections.abc import Callable
from pathlib import Path

from torch_geometric.data import HeteroData, InMemoryDataset

from kblrn_pyg.data import DataError, flat_triples, load_kb, save_kb, validate_kb
from kblrn_pyg.datasets.files import RawFile
from kblrn_pyg.datasets.names import Counts

Transform = Callable[[HeteroData], HeteroData]


def check_counts(kbs: dict[str, HeteroData], expected: Counts, name: str) -> None:
    """Refuses a data set whose numbers differ from the expected ones."""
    train = kbs["train"]
    found = [train["entity"].num_nodes, len(train.edge_types)]
    for split in ("train", "val", "test"):
        found.append(flat_triples(kbs[split], "edge_label_index")[0].numel())
    for kind, number, wanted in zip(Counts._fields, found, expected):
        if number != wanted:
            raise DataError(f"{name} has {number:,} {kind}, expected {wanted:,}")


class KBDataset(InMemoryDataset):
    r"""Base class of data sets with a training, a validation and a test split.

    Raw files are looked for below the directory that the environment variable
    :obj:`KBLRN_DATA` names, else in :obj:`root/raw`, else downloaded there.

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
        self._data = load_kb(self.processed_paths[self.splits.index(split)])

    @property
    def raw_paths(self) -> list[str]:
        return [str(file.locate(self.raw_dir)) for file in self.files]

    @property
    def processed_file_names(self) -> list[str]:
        return [f"{split}.kb" for split in self.splits]

    def _download(self) -> None:
        # PyG asks for the raw files even where all is processed already.
        processed = all(Path(path).exists() for path in self.processed_paths)
        if self.force_reload or not processed:
            super()._download()

    def download(self) -> None:
        for file in self.files:
            file.fetch(self.raw_dir)

    def process(self) -> None:
        for file, path in zip(self.files, self.raw_paths):
            file.verify(Path(path))
        kbs = self.build(dict(zip((file.name for file in self.files), self.raw_paths)))
        check_counts(kbs, self.counts, type(self).__name__)
        for split, path in zip(self.splits, self.processed_paths):
            validate_kb(kbs[split])
            data = kbs[split]
            if self.pre_transform is not None:
                data = self.pre_transform(data)
            save_kb(data, path)

    def build(self, paths: dict[str, str]) -> dict[str, HeteroData]:
        r"""Builds the knowledge base of each split.

        Args:
            paths (dict): The path of each raw file, by the name of the file.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.split!r})"
